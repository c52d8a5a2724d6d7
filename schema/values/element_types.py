"""The element types that TFLite's kernels take, of the input that holds an operator's data."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.view import OperatorView

_TYPES = {
    "f32": TensorType.FLOAT32,
    "f16": TensorType.FLOAT16,
    "f64": TensorType.FLOAT64,
    "bf16": TensorType.BFLOAT16,
    "i8": TensorType.INT8,
    "u8": TensorType.UINT8,
    "i16": TensorType.INT16,
    "u16": TensorType.UINT16,
    "i32": TensorType.INT32,
    "u32": TensorType.UINT32,
    "i64": TensorType.INT64,
    "u64": TensorType.UINT64,
    "bool": TensorType.BOOL,
    "c64": TensorType.COMPLEX64,
    "c128": TensorType.COMPLEX128,
    "str": TensorType.STRING,
    "i4": TensorType.INT4,
}
_ANY = "f32 f16 f64 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool c64"

# What runs in LiteRT's one-operator models. Not here: operators with rules of their own (CAST,
# QUANTIZE, convolutions, products, lookups, recurrent and complex ones) or none (RESHAPE, ...).
_ROWS = {
    "bool": "LOGICAL_NOT LOGICAL_AND LOGICAL_OR REDUCE_ANY REDUCE_ALL",
    "f32": "CEIL SQUARE L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION",
    "f32 f16": "COS SIN",
    "f32 f16 bf16": "FLOOR ROUND",
    "f32 f16 bf16 i8 i16 i32 i64": "NEG",
    "f32 f16 bf16 i8 u8 i16": "LOGISTIC TANH",
    "f32 f16 bf16 i8 u8 i16 i32 bool": "UNPACK",
    "f32 f16 bf16 i8 u8 i16 i32 i64": "MAXIMUM MINIMUM LESS GREATER",
    "f32 f16 bf16 i8 u8 i16 i32 i64 bool": "PAD PADV2 REVERSE_V2",
    "f32 f16 i8 u8 i16": "GELU SOFTMAX",
    "f32 f16 i8 u8 i16 i32 i64": "ADD LESS_EQUAL GREATER_EQUAL",
    "f32 f16 i8 u8 i16 i32 i64 bool str": "EQUAL NOT_EQUAL",
    "f32 f16 i8 u8 i16 i32 u32 i64 c64": "MUL",
    "f32 f64 i32": "SIGN",
    "f32 f64 i32 i64": "BUCKETIZE",
    "f32 i32": (
        "POW ADD_N SEGMENT_SUM UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD "
        "UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_MAX"
    ),
    "f32 i32 i64": "ZEROS_LIKE CUMSUM RANGE",
    "f32 i8": "ELU",
    "f32 i8 i16": "EXP LOG RSQRT SQRT",
    "f32 i8 i16 i32": "ABS FLOOR_DIV",
    "f32 i8 i16 i32 i64": "FLOOR_MOD",
    "f32 i8 i32": "SQUARED_DIFFERENCE",
    "f32 i8 u8": "HARD_SWISH LOG_SOFTMAX RELU_0_TO_1 RELU_N1_TO_1 L2_NORMALIZATION",
    "f32 i8 u8 i16": "RELU RELU6 LEAKY_RELU PRELU RESIZE_BILINEAR AVERAGE_POOL_2D MAX_POOL_2D",
    "f32 i8 u8 i16 i32": "DIV",
    "f32 i8 u8 i16 i32 i64": "SUB MEAN SPLIT SPLIT_V TOPK_V2 UNIQUE",
    "f32 i8 u8 i16 i32 i64 bool": "SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN",
    "f32 i8 u8 i16 i32 u32 i64": "PACK",
    "f32 i8 u8 i32 bool": "ARG_MAX ARG_MIN",
    "f32 i8 u8 i32 i64": "SPARSE_TO_DENSE DEPTH_TO_SPACE SPACE_TO_DEPTH",
    "f32 i8 u8 i32 i64 bool": "SCATTER_ND ONE_HOT",
    "f32 i8 u8 i32 u32 i64 bool": "WHERE",
    "f32 u8 i16 i32 i64": "REVERSE_SEQUENCE",
    "i8 u8 i16 u16 i32 u32": "BITWISE_XOR RIGHT_SHIFT",
    "f32 f16 bf16 i8 u8 i16 i32 i64 bool i4 str": "GATHER",
    "f32 f16 bf16 i8 u8 i16 i32 i64 bool str": "GATHER_ND",
    "f32 f16 bf16 i8 u8 i16 i32 u32 i64 bool i4": "CONCATENATION",
    "f32 f16 bf16 i8 u8 i16 u16 i32 u32 bool": "RESIZE_NEAREST_NEIGHBOR",
    f"{_ANY}": "MIRROR_PAD SELECT SELECT_V2 BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND",
    f"{_ANY} str": "STRIDED_SLICE TILE FILL",
    f"{_ANY} str i4": "SLICE",
    f"{_ANY} i4": "TRANSPOSE",
    f"{_ANY} c128 i4": "BROADCAST_TO DYNAMIC_UPDATE_SLICE",
}
ELEMENT_TYPES = {
    Op[name]: frozenset(_TYPES[type] for type in types.split())
    for types, names in _ROWS.items()
    for name in names.split()
}
JUDGED = frozenset(_TYPES.values())
# Where the data is not the first input.
DATA_INPUT = {
    Op.EMBEDDING_LOOKUP: 1,
    Op.LSH_PROJECTION: 1,
    Op.HASHTABLE_FIND: 1,
    Op.SPLIT: 1,
    Op.FILL: 1,
    Op.SCATTER_ND: 1,
    Op.SELECT: 1,
    Op.SELECT_V2: 1,
    Op.HASHTABLE_LOOKUP: 2,
    Op.ONE_HOT: 2,
    Op.SPARSE_TO_DENSE: 2,
}


# Where the bias is, and of which type beside each type of data.
_BIAS_INPUT = {
    Op.CONV_2D: 2,
    Op.CONV_3D: 2,
    Op.CONV_3D_TRANSPOSE: 3,
    Op.DEPTHWISE_CONV_2D: 2,
    Op.FULLY_CONNECTED: 2,
    Op.TRANSPOSE_CONV: 3,
}
_BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT32, TensorType.INT64),
}


def _check_bias(op: OperatorView[Any]) -> None:
    position = _BIAS_INPUT.get(op.op, len(op.inputs))
    bias = op.inputs[position] if position < len(op.inputs) else None
    data = op.inputs[2 if position == 3 else 0] if bias is not None else None
    accepted = () if data is None else _BIAS_TYPES.get(data.type, ())
    if bias is None or data is None or not accepted or bias.type in accepted:
        return
    names = " or ".join(type.name for type in accepted)
    raise ModelError(
        f"{op.label}: a bias of {bias.type.name} beside {data.type.name} data, expected {names}"
    )


def check_element_type(op: OperatorView[Any]) -> None:
    """Refuse data of a type that TFLite has no kernel for, and biases of another type than goes
    with it.

    Raises:
        ModelError: names the type, and those that are taken.
    """
    if op.op in _BIAS_INPUT:
        _check_bias(op)
    position, accepted = DATA_INPUT.get(op.op, 0), ELEMENT_TYPES.get(op.op)
    data = op.inputs[position] if position < len(op.inputs) else None
    if accepted is None or data is None or data.type in accepted or data.type not in JUDGED:
        return
    names = ", ".join(sorted(type.name for type in accepted))
    raise ModelError(f"{op.label}: {data.type.name} is not one of the types accepted: {names}")
