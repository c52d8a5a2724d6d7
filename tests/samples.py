"""Small models of one operator for each element type of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.one_op import Array, T, one_op_model
from tflite_ort import schema
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS, named_types
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.versioning.known import known_versions

Shape = tuple[int, ...]


@dataclass(frozen=True)
class D:
    """A tensor of the type that is tried.

    Args:
        values: the value of all elements, which makes it a constant.
        beside: the type of this tensor for a type that is tried, where the two differ.
    """

    shape: Shape
    values: float | None = None
    beside: Mapping[TensorType, TensorType] = field(default_factory=dict)


Tensor = D | T
INT32, INT64, BOOL = TensorType.INT32, TensorType.INT64, TensorType.BOOL


def ints(*values: Any) -> T:
    return T.constant(np.array(values, np.int32))


def same(*shape: int) -> tuple[list[Tensor], list[Tensor]]:
    return [D(shape)], [D(shape)]


def pair(*, result: Tensor | None = None) -> tuple[list[Tensor], list[Tensor]]:
    return [D((2, 3, 4)), D((3, 4))], [result or D((2, 3, 4))]


def reduced(axis: int) -> tuple[list[Tensor], list[Tensor]]:
    return [D((2, 3, 4)), ints(axis)], [D((2, 4))]


WINDOW = schema.Pool2DOptions(stride_w=2, stride_h=1, filter_width=3, filter_height=2)
PADDINGS = T.constant(np.array([[0, 0], [1, 1], [0, 2], [0, 0]], np.int32))

# Operators that differ in nothing but the name of their options.
_UNARY = (
    "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOG LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_0_TO_1 "
    "RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE TANH ZEROS_LIKE LOGICAL_NOT L2_NORMALIZATION"
)
_BINARY = (
    "MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD POW BITWISE_XOR RIGHT_SHIFT "
    "LOGICAL_AND LOGICAL_OR"
)
_COMPARISON = "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL"
_REDUCTION = "SUM MEAN REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL"
_SEGMENT = "UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_MAX"
_POOL = "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D"

# Operator: inputs, outputs, options.
SAMPLES: dict[Op, tuple[Sequence[Tensor], Sequence[Tensor], Any]] = {
    **{Op[name]: (*same(2, 3, 4), None) for name in _UNARY.split()},
    **{Op[name]: (*pair(), None) for name in _BINARY.split()},
    **{Op[name]: (*pair(result=T((2, 3, 4), BOOL)), None) for name in _COMPARISON.split()},
    **{Op[name]: (*reduced(1), schema.ReducerOptions()) for name in _REDUCTION.split()},
    **{
        Op[name]: ([D((4, 3)), ints(0, 2, 1, 2), T.constant(np.int32(3))], [D((3, 3))], None)
        for name in _SEGMENT.split()
    },
    **{Op[name]: ([D((1, 5, 6, 3))], [D((1, 5, 3, 3))], WINDOW) for name in _POOL.split()},
    Op.ADD: (*pair(), schema.AddOptions()),
    Op.SUB: (*pair(), schema.SubOptions()),
    Op.MUL: (*pair(), schema.MulOptions()),
    Op.DIV: (*pair(), schema.DivOptions()),
    Op.GELU: (*same(2, 3, 4), schema.GeluOptions()),
    Op.SOFTMAX: (*same(2, 8), schema.SoftmaxOptions(beta=1.0)),
    Op.LEAKY_RELU: (*same(2, 8), schema.LeakyReluOptions(alpha=0.2)),
    Op.PRELU: (
        [D((2, 3, 3, 4)), D((1, 1, 4), 2, {TensorType.INT16: TensorType.INT8})],
        [D((2, 3, 3, 4))],
        None,
    ),
    Op.LOCAL_RESPONSE_NORMALIZATION: (
        *same(1, 2, 2, 8),
        schema.LocalResponseNormalizationOptions(radius=2, bias=1, alpha=0.1, beta=0.5),
    ),
    Op.ADD_N: ([D((2, 3))] * 3, [D((2, 3))], None),
    Op.ARG_MAX: (
        [D((2, 3, 4)), T.constant(np.int32(2))],
        [T((2, 3), INT32)],
        schema.ArgMaxOptions(INT32),
    ),
    Op.ARG_MIN: (
        [D((2, 3, 4)), T.constant(np.int32(1))],
        [T((2, 4), INT32)],
        schema.ArgMinOptions(INT32),
    ),
    Op.CUMSUM: ([D((2, 3, 4)), T.constant(np.int32(1))], [D((2, 3, 4))], schema.CumsumOptions()),
    Op.SEGMENT_SUM: ([D((4, 3)), ints(0, 0, 1, 2)], [D((3, 3))], None),
    Op.BUCKETIZE: (
        [D((3, 4))],
        [T((3, 4), INT32)],
        schema.BucketizeOptions(boundaries=(-1.0, 0.0, 2.5)),
    ),
    Op.RANGE: ([D((), 1), D((), 9), D((), 2)], [D((4,))], None),
    Op.TRANSPOSE: ([D((2, 3, 4)), ints(2, 0, 1)], [D((4, 2, 3))], None),
    Op.PACK: ([D((3, 4))] * 2, [D((2, 3, 4))], schema.PackOptions(values_count=2)),
    Op.UNPACK: ([D((2, 3, 4))], [D((3, 4))] * 2, schema.UnpackOptions(num=2)),
    Op.CONCATENATION: (
        [D((2, 3, 4)), D((2, 1, 4))],
        [D((2, 4, 4))],
        schema.ConcatenationOptions(axis=1),
    ),
    Op.SPLIT: (
        [T.constant(np.int32(1)), D((2, 4, 4))],
        [D((2, 2, 4))] * 2,
        schema.SplitOptions(num_splits=2),
    ),
    Op.SPLIT_V: (
        [D((2, 5, 4)), ints(2, 3), T.constant(np.int32(1))],
        [D((2, 2, 4)), D((2, 3, 4))],
        schema.SplitVOptions(num_splits=2),
    ),
    Op.SLICE: ([D((2, 5, 4)), ints(0, 1, 0), ints(2, 3, 2)], [D((2, 3, 2))], None),
    Op.STRIDED_SLICE: (
        [D((2, 5, 4)), ints(0, 1, 0), ints(2, 5, 4), ints(1, 2, 1)],
        [D((2, 2, 4))],
        schema.StridedSliceOptions(),
    ),
    Op.PAD: ([D((2, 3, 3, 4)), PADDINGS], [D((2, 5, 5, 4))], None),
    Op.PADV2: ([D((2, 3, 3, 4)), PADDINGS, D((1,), 1)], [D((2, 5, 5, 4))], None),
    Op.MIRROR_PAD: (
        [D((3, 4)), T.constant(np.array([[1, 1], [2, 0]], np.int32))],
        [D((5, 6))],
        schema.MirrorPadOptions(),
    ),
    Op.TILE: ([D((2, 3)), ints(2, 2)], [D((4, 6))], None),
    Op.GATHER: ([D((5,)), ints(3, 1, 0)], [D((3,))], schema.GatherOptions()),
    Op.GATHER_ND: ([D((5, 4)), ints([3, 1], [0, 2])], [D((2,))], None),
    Op.SCATTER_ND: ([ints([3], [1]), D((2, 4)), ints(5, 4)], [D((5, 4))], None),
    Op.SELECT: ([T((2, 3), BOOL), D((2, 3)), D((2, 3))], [D((2, 3))], None),
    Op.SELECT_V2: ([T((2, 1), BOOL), D((2, 3)), D((1, 3))], [D((2, 3))], None),
    Op.REVERSE_V2: ([D((2, 3, 4)), ints(1)], [D((2, 3, 4))], None),
    Op.REVERSE_SEQUENCE: (
        [D((2, 3, 4)), ints(2, 3)],
        [D((2, 3, 4))],
        schema.ReverseSequenceOptions(seq_dim=1),
    ),
    Op.BROADCAST_TO: ([D((3, 1)), ints(2, 3, 4)], [D((2, 3, 4))], None),
    Op.FILL: ([ints(2, 3), D(())], [D((2, 3))], None),
    Op.ONE_HOT: (
        [ints(0, 2, 1), T.constant(np.int32(4)), D((), 1), D((), 0)],
        [D((3, 4))],
        schema.OneHotOptions(axis=-1),
    ),
    Op.TOPK_V2: ([D((3, 8)), T.constant(np.int32(3))], [D((3, 3)), T((3, 3), INT32)], None),
    Op.WHERE: ([D((3, 4))], [T((0, 2), INT64)], None),
    Op.UNIQUE: ([D((8,))], [D((8,)), T((8,), INT32)], schema.UniqueOptions(idx_out_type=INT32)),
    Op.SPARSE_TO_DENSE: (
        [ints([0, 1], [2, 0]), ints(3, 4), D((2,)), D(())],
        [D((3, 4))],
        schema.SparseToDenseOptions(),
    ),
    Op.DYNAMIC_UPDATE_SLICE: ([D((4, 5)), D((2, 2)), ints(1, 1)], [D((4, 5))], None),
    Op.BATCH_TO_SPACE_ND: (
        [D((4, 2, 2, 3)), ints(2, 2), ints([0, 0], [0, 1])],
        [D((1, 4, 3, 3))],
        None,
    ),
    Op.SPACE_TO_BATCH_ND: (
        [D((1, 4, 4, 3)), ints(2, 2), ints([0, 0], [0, 0])],
        [D((4, 2, 2, 3))],
        None,
    ),
    Op.DEPTH_TO_SPACE: ([D((1, 2, 2, 8))], [D((1, 4, 4, 2))], schema.DepthToSpaceOptions(2)),
    Op.SPACE_TO_DEPTH: ([D((1, 4, 4, 2))], [D((1, 2, 2, 8))], schema.SpaceToDepthOptions(2)),
    Op.RESIZE_BILINEAR: (
        [D((1, 3, 3, 2)), ints(6, 5)],
        [D((1, 6, 5, 2))],
        schema.ResizeBilinearOptions(),
    ),
    Op.RESIZE_NEAREST_NEIGHBOR: (
        [D((1, 3, 3, 2)), ints(6, 5)],
        [D((1, 6, 5, 2))],
        schema.ResizeNearestNeighborOptions(),
    ),
}

# Scale and zero point that TFLite insists on, by type; else QUANTIZATION.
_WHOLE = {TensorType.INT8: -128, TensorType.UINT8: 0, TensorType.INT16: 0}
_AROUND_0 = {TensorType.INT8: 0, TensorType.UINT8: 128, TensorType.INT16: 0}
_FIXED = {
    Op.LOGISTIC: (1 / 256, _WHOLE),
    Op.SOFTMAX: (1 / 256, _WHOLE),
    Op.TANH: (1 / 128, _AROUND_0),
    Op.L2_NORMALIZATION: (1 / 128, _AROUND_0),
    Op.LOG_SOFTMAX: (16 / 256, {TensorType.INT8: 127, TensorType.UINT8: 255}),
}
QUANTIZATION = {
    TensorType.INT8: (0.03, -5),
    TensorType.UINT8: (0.03, 121),
    TensorType.INT16: (1e-3, 0),
}


# Types taken without a scale only.
_PLAIN = {(Op.REDUCE_PROD, TensorType.UINT8)}


def types(op: Op) -> Sequence[TensorType]:
    """The types that `sample` can make a model of. LiteRT's Python interface does not hand over
    8-bit floats, nothing is computed with handles, and it makes no constants of strings."""
    constants = any(isinstance(t, D) and t.values is not None for t in SAMPLES[op][0])
    left_out = {TensorType.STRING} if constants else set()
    return sorted(set(TensorType) - named_types("f8 resource variant") - left_out)


def sample(op: Op, type: TensorType) -> tuple[bytes, list[Array]]:
    """A model of the newest version of `op` with data of `type`, and what to feed it."""
    inputs, outputs, options = SAMPLES[op]
    plain = (op, type) in _PLAIN
    given = [_tensor(tensor, type, {} if plain else QUANTIZATION) for tensor in inputs]
    made = [_tensor(tensor, type, {} if plain else _results(op)) for tensor in outputs]
    model = one_op_model(op, given, made, options, max(known_versions(op)))
    return model, [_values(t) for t in given if not t.is_constant]


def _results(op: Op) -> dict[TensorType, tuple[float, int]]:
    if op not in _FIXED:
        return QUANTIZATION
    scale, zero_points = _FIXED[op]
    return {
        type: (1 / 32768 if type is TensorType.INT16 else scale, zero_point)
        for type, zero_point in zero_points.items()
    }


def _tensor(tensor: Tensor, type: TensorType, scales: dict[TensorType, tuple[float, int]]) -> T:
    if isinstance(tensor, T):
        return tensor
    type = tensor.beside.get(type, type)
    scale, zero_point = scales.get(type, (None, 0))
    t = T(tensor.shape, type, scale, zero_point)
    if tensor.values is None:
        return t
    data = np.full(tensor.shape, tensor.values)
    if type in PACKED_BITS:
        data = data.clip(*quantized_range(type))
    return T(tensor.shape, type, scale, zero_point, data=data.astype(NUMPY_DTYPE[type]))


def _values(t: T) -> Array:
    rng = np.random.default_rng(0)
    dtype = NUMPY_DTYPE[t.type]
    if t.type is TensorType.STRING:
        values = np.empty(t.shape, np.object_)
        values.fill(b"text")
        return values
    if t.scale is not None:  # above the zero point: SQRT, LOG and DIV take it too
        return rng.integers(122, quantized_range(t.type)[1] + 1, t.shape).astype(dtype)
    return np.asarray(rng.integers(1, 5, t.shape)).astype(dtype)
