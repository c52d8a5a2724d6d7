"""Version rules of what works on arrays: arithmetic, comparison, reduction, shape, gathering."""

from __future__ import annotations

from tflite_ort.schema import Op
from tflite_ort.versioning.conditions import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    FLOAT8,
    FLOAT16,
    FLOAT32,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT32,
    Rule,
    both_ends,
    broadcast_above_rank_4,
    either,
    first,
    free_scales,
    multiplier_from_one,
    no,
    option,
    quantized,
    rank_above,
    rank_is,
    rule,
    second,
    second_result,
    some_rank_is_5,
    third,
    unquantized_int16,
)

_INT8_ONLY = rule((2, first(INT8)))
_FLOAT16_ONLY = rule((2, first(FLOAT16)))
_ANY_INTEGER = rule((2, first(INT8, INT16)))
_INT8_THEN_INT16 = rule((3, first(INT16)), (2, first(INT8)))
_INT8_THEN_BOOL = rule((3, first(BOOL)), (2, first(INT8)))
_EXTREME = rule((4, both_ends(INT16)), (3, broadcast_above_rank_4), (2, first(INT8)))
_PAD = rule(
    (6, first(*FLOAT8)), (5, first(BOOL)), (4, rank_above(4)), (3, first(INT16)), (2, first(INT8))
)
_BLOCKS = rule((4, first(INT16)), (3, no(rank_is(4))), (2, first(INT8)))

# Those of SELECT and SELECT_V2 on types look at the condition, which is bool where they run.
RULES: dict[Op, Rule] = {
    # Arithmetic
    Op.ADD: rule(
        (6, first(FLOAT16)),
        (5, first(INT16), no(quantized)),
        (4, first(INT64)),
        (3, both_ends(INT16), free_scales),
        (2, first(INT8)),
    ),
    Op.SUB: rule(
        (5, both_ends(INT16), free_scales),
        (4, first(INT64)),
        (3, broadcast_above_rank_4),
        (2, first(INT8)),
    ),
    Op.MUL: rule(
        (8, first(FLOAT16)),
        (7, either(first(UINT32), unquantized_int16)),
        (6, first(COMPLEX64)),
        (5, first(INT64)),
        (4, first(INT16)),
        (3, multiplier_from_one),
        (2, first(INT8)),
    ),
    Op.DIV: rule((2, broadcast_above_rank_4)),
    Op.MAXIMUM: _EXTREME,
    Op.MINIMUM: _EXTREME,
    Op.SQUARED_DIFFERENCE: _INT8_ONLY,
    Op.FLOOR_DIV: rule((3, first(INT16, INT8)), (2, first(FLOAT32))),
    Op.FLOOR_MOD: _ANY_INTEGER,
    Op.ABS: rule(
        (5, first(INT32)), (3, first(INT16), quantized), (4, first(INT16)), (2, first(INT8, UINT8))
    ),
    Op.SIGN: rule((2, first(INT32))),
    Op.EXP: _ANY_INTEGER,
    Op.LOG: _ANY_INTEGER,
    Op.SQRT: _ANY_INTEGER,
    Op.RSQRT: _INT8_THEN_INT16,
    Op.SIN: _FLOAT16_ONLY,
    Op.COS: _FLOAT16_ONLY,
    # Comparison and choice
    Op.EQUAL: rule((5, first(INT16)), (3, first(STRING)), (2, first(INT8))),
    Op.NOT_EQUAL: rule((4, first(INT16)), (3, first(STRING)), (2, first(INT8))),
    Op.LESS: _INT8_THEN_INT16,
    Op.GREATER_EQUAL: _INT8_THEN_INT16,
    Op.GREATER: _INT8_ONLY,
    Op.LESS_EQUAL: _INT8_ONLY,
    Op.SELECT: rule((4, first(UINT32)), (3, some_rank_is_5), (2, first(INT8))),
    Op.SELECT_V2: rule((2, first(UINT32))),
    # Reduction
    Op.MEAN: _INT8_THEN_INT16,
    Op.SUM: _INT8_ONLY,
    Op.REDUCE_PROD: _ANY_INTEGER,
    Op.REDUCE_MAX: _INT8_THEN_INT16,
    Op.REDUCE_MIN: _INT8_THEN_INT16,
    Op.ARG_MAX: _INT8_THEN_BOOL,
    Op.ARG_MIN: _INT8_THEN_BOOL,
    Op.TOPK_V2: rule(
        (3, either(first(INT16), second(INT16), second_result(INT16))), (2, first(INT8))
    ),
    # Shape
    Op.CONCATENATION: rule(
        (7, first(*FLOAT8)),
        (6, first(FLOAT16)),
        (5, first(INT4)),
        (4, first(UINT32)),
        (3, first(INT16)),
        (2, first(INT8)),
    ),
    Op.SPLIT: rule((5, second(*FLOAT8)), (4, second(INT16)), (3, second(INT32)), (2, second(INT8))),
    Op.SPLIT_V: rule((3, first(*FLOAT8)), (2, first(INT8))),
    Op.PACK: rule((5, first(*FLOAT8)), (2, first(INT8)), (3, both_ends(INT16)), (4, first(UINT32))),
    Op.UNPACK: rule(
        (6, first(*FLOAT8)),
        (2, first(INT8, UINT8)),
        (3, first(BOOL)),
        (4, both_ends(INT16)),
        (5, first(FLOAT16, BFLOAT16)),
    ),
    Op.TRANSPOSE: rule(
        (9, first(FLOAT16)),
        (8, either(rank_above(6), first(BFLOAT16))),
        (7, first(INT4)),
        (6, rank_above(5)),
        (5, first(INT16)),
        (4, rank_above(4)),
        (3, first(BOOL)),
        (2, first(INT8)),
    ),
    Op.SQUEEZE: rule((2, first(STRING))),
    Op.PAD: _PAD,
    Op.PADV2: _PAD,
    Op.MIRROR_PAD: _INT8_THEN_INT16,
    Op.REVERSE_V2: rule((4, first(*FLOAT8)), (3, first(INT8)), (2, first(BOOL))),
    Op.TILE: rule((3, first(INT8)), (2, first(STRING))),
    Op.BROADCAST_TO: rule((4, first(*FLOAT8)), (3, first(INT8, INT16)), otherwise=2),
    Op.FILL: rule(
        (5, second(*FLOAT8)),
        (4, second(FLOAT16)),
        (3, second(INT8, INT16)),
        (2, second(BOOL, STRING)),
    ),
    Op.RANGE: rule((2, first(INT64))),
    Op.DEPTH_TO_SPACE: _INT8_ONLY,
    Op.SPACE_TO_DEPTH: _INT8_ONLY,
    Op.BATCH_TO_SPACE_ND: _BLOCKS,
    Op.SPACE_TO_BATCH_ND: _BLOCKS,
    # Parts of arrays
    Op.SLICE: rule(
        (8, first(FLOAT16)),
        (7, first(INT4)),
        (6, first(UINT32)),
        (5, rank_above(4)),
        (4, first(INT16)),
        (3, first(STRING)),
        (2, first(INT8)),
    ),
    Op.STRIDED_SLICE: rule(
        (8, option("offset")),
        (7, first(UINT32)),
        (6, either(option("ellipsis_mask"), option("new_axis_mask"))),
        (5, first(STRING)),
        (4, rank_above(4)),
        (3, first(BOOL)),
        (2, first(INT8)),
    ),
    Op.DYNAMIC_UPDATE_SLICE: rule(
        (6, first(BFLOAT16)),
        (5, first(INT4)),
        (4, first(INT16)),
        (3, first(FLOAT16)),
        (2, third(INT64)),
    ),
    Op.GATHER: rule(
        (8, first(*FLOAT8)),
        (7, first(INT4)),
        (6, second(INT16)),
        (5, option("batch_dims")),
        (4, first(INT16)),
        (3, first(BOOL)),
        (2, first(INT8)),
    ),
    Op.GATHER_ND: rule(
        (6, first(*FLOAT8)),
        (5, first(BOOL)),
        (4, second(INT16)),
        (3, first(INT16)),
        (2, first(STRING)),
    ),
    Op.SPARSE_TO_DENSE: rule((3, third(INT8, UINT8)), (2, third(INT64))),
}
