"""Operators of codes whose scales are far apart, and what they truly make of the reals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.one_op import Array, T, one_op_model
from tflite_ort import schema
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

UINT8, INT8, INT16 = TensorType.UINT8, TensorType.INT8, TensorType.INT16
BYTES, SIGNED, CODES = (UINT8, INT8), (INT8, INT16), (UINT8, INT8, INT16)
SCALES = (1e-30, 1e-12, 1e-6, 2.0**-7, 0.037, 1.0, 1e3, 1e6, 1e12, 1e30)
_A = schema.ActivationFunctionType
# In the middle, and at both ends of the type; TFLite takes none for 16 bits.
ZERO_POINTS = {UINT8: (120, 0, 255), INT8: (-5, -128, 127), INT16: (0,)}

# By type, where TFLite knows one scale and zero point of the result alone.
Units = dict[TensorType, tuple[float, int]]
SHARES = {UINT8: (1 / 256, 0), INT8: (1 / 256, -128), INT16: (2.0**-15, 0)}
SIGNED_SHARES = {UINT8: (1 / 128, 128), INT8: (1 / 128, 0), INT16: (2.0**-15, 0)}
LOGARITHMS = {UINT8: (1 / 16, 255), INT8: (1 / 16, 127)}


@dataclass(frozen=True)
class Function:
    """An operator of codes.

    Args:
        true: its results, of the reals of its inputs, in float64.
        inputs: how many tensors of codes it takes.
        constants: further inputs, after these.
        shape: of each tensor of codes; made, of the result, where that is another one.
        units: of the result, where they are not drawn.
        alike: whether all tensors have the quantisation of the first one.
        positive: whether the codes have to be above the zero point.
        filter, axis: the shape of the weights of a layer, and the axis of its channels.
        made_type: of a result that is no codes.
        quanta: how far off results may be: tables of 16-bit codes are coarse, and HARD_SWISH,
            SQUARED_DIFFERENCE and multipliers of layers have 15 bits.
    """

    op: Op
    types: Sequence[TensorType]
    true: Callable[..., Array]
    options: Any = None
    inputs: int = 1
    constants: Sequence[T] = ()
    shape: tuple[int, ...] = (512,)
    made: tuple[int, ...] | None = None
    units: Units = field(default_factory=dict)
    alike: bool = False
    positive: bool = False
    filter: tuple[int, ...] = ()
    axis: int = 0
    version: int = 1
    quanta: float = 1.01
    made_type: TensorType | None = None


@dataclass(frozen=True)
class Drawn:
    """A model with inputs, and its true results: codes before they are rounded and cut."""

    name: str
    model: bytes
    feeds: list[Array]
    want: Array
    made: T

    def true_codes(self) -> Array:
        return np.clip(np.rint(self.want), *quantized_range(self.made.type))

    def distance(self, got: Array) -> float:
        """By how many quanta results are off; of other types than codes, infinitely many."""
        if self.made.scale is None:
            same = np.allclose(got.astype(np.float64), self.want, rtol=1e-6, atol=0)
            return 0.0 if same else np.inf
        want = np.clip(self.want, *quantized_range(self.made.type))
        return float(np.abs(got.astype(np.float64) - want).max())


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _normalised(x: Array) -> Array:
    steps = x / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-35)
    return np.asarray(steps / np.maximum(np.sqrt((steps**2).sum(-1, keepdims=True)), 1e-6))


def _limited(true: Callable[..., Array], low: float, high: float) -> Callable[..., Array]:
    """A function with a fused activation."""
    return lambda *reals: np.clip(true(*reals), low, high)


def _leaky(slope: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < 0, np.float64(np.float32(slope)) * x, x)


def _gelu(x: Array) -> Array:
    return np.asarray(x / 2 * np.vectorize(math.erfc)(-x / math.sqrt(2)))


def _gelu_by_tanh(x: Array) -> Array:
    return np.asarray(x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _doubled(x: Array) -> Array:
    """An image of twice the height and width; new pixels are means of their neighbours."""
    for axis in (1, 2):
        after = np.concatenate([np.delete(x, 0, axis), np.take(x, [-1], axis)], axis)
        shape = [size * (1 + (n == axis)) for n, size in enumerate(x.shape)]
        x = np.stack([x, (x + after) / 2], axis + 1).reshape(shape)
    return x


def _windows(x: Array) -> Array:
    return x.reshape(1, 8, 2, 8, 2, 2)


def _compared(compare: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """TFLite compares codes in units of 1/256."""
    return lambda x, y: compare(np.rint(256 * x), np.rint(256 * y))


def _rows(x: Array, weights: Array, bias: Array) -> Array:
    return np.asarray(x @ weights.T + bias)


def _cells(x: Array, weights: Array, bias: Array) -> Array:
    """A convolution of one cell."""
    return np.asarray(np.einsum("nhwi,okli->nhwo", x, weights) + bias)


def _channels(x: Array, weights: Array, bias: Array) -> Array:
    return np.asarray(x * weights[0, 0, 0] + bias)


POOL = schema.Pool2DOptions(stride_w=2, stride_h=2, filter_width=2, filter_height=2)
IMAGE, WIDER = (1, 16, 16, 2), (1, 16, 16, 4)
POOLED = {"shape": IMAGE, "made": (1, 8, 8, 2), "alike": True}
ROWS = {"shape": (64, 8), "units": SHARES}
ALONG = T.constant(np.array([1], np.int32))
UP = {"constants": [T.constant(np.array([32, 32], np.int32))], "made": (1, 32, 32, 2)}
UP |= {"shape": IMAGE, "alike": True}
ROWS_AND_COLUMNS = T.constant(np.array([1, 2], np.int32))
SUMMED_MAPS = {"constants": [ROWS_AND_COLUMNS], "shape": IMAGE, "made": (1, 2)}
NORMALISED = {"shape": (64, 8), "units": SIGNED_SHARES}
SUMMED = {"constants": [ALONG], "shape": (64, 8), "made": (64,)}
REDUCED = schema.ReducerOptions()
SAME = {"padding": schema.Padding.SAME, "stride_w": 1, "stride_h": 1}
JOINED = schema.ConcatenationOptions(axis=0)
TRUTHS = {"made_type": TensorType.BOOL}
F = Function

ONE_OPERAND = [
    F(Op.ABS, SIGNED, np.abs),
    F(Op.RELU, CODES, lambda x: np.maximum(x, 0)),
    F(Op.RELU6, CODES, lambda x: np.clip(x, 0, 6)),
    F(Op.RELU_N1_TO_1, BYTES, lambda x: np.clip(x, -1, 1)),
    F(Op.RELU_0_TO_1, BYTES, lambda x: np.clip(x, 0, 1)),
    *(
        F(Op.LEAKY_RELU, CODES, _leaky(slope), schema.LeakyReluOptions(slope))
        for slope in (0.125, 0.0, 1.0, -1.0, 1e-5, 300.0)
    ),
    F(Op.GELU, BYTES, _gelu, schema.GeluOptions(approximate=False)),
    F(Op.GELU, BYTES, _gelu_by_tanh, schema.GeluOptions(approximate=True)),
    F(Op.ELU, (INT8,), lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x)),
    F(Op.HARD_SWISH, BYTES, lambda x: x * np.clip(x + 3, 0, 6) / 6, quanta=2.0),
    F(Op.LOGISTIC, CODES, lambda x: 1 / (1 + np.exp(-x)), units=SHARES, quanta=2.0),
    F(Op.TANH, CODES, np.tanh, units=SIGNED_SHARES, quanta=4.0),
    F(Op.EXP, (INT8,), np.exp),
    F(Op.LOG, (INT8,), np.log, positive=True),
    F(Op.RSQRT, (INT8,), lambda x: 1 / np.sqrt(x), positive=True),
    F(Op.SQRT, SIGNED, np.sqrt, positive=True),
    F(Op.QUANTIZE, CODES, lambda x: x),
    F(Op.DEQUANTIZE, CODES, lambda x: x, made_type=TensorType.FLOAT32),
    F(Op.L2_NORMALIZATION, BYTES, _normalised, schema.L2NormOptions(), **NORMALISED),
    F(Op.RESIZE_BILINEAR, CODES, _doubled, schema.ResizeBilinearOptions(), **UP),
    F(Op.SOFTMAX, CODES, _softmax, schema.SoftmaxOptions(1.0), quanta=16.0, **ROWS),
    F(Op.LOG_SOFTMAX, BYTES, lambda x: np.log(_softmax(x)), shape=(64, 8), units=LOGARITHMS),
    F(Op.MEAN, CODES, lambda x: x.mean(1), REDUCED, **SUMMED),
    F(Op.SUM, CODES, lambda x: x.sum(1), REDUCED, **SUMMED),
    F(Op.MEAN, CODES, lambda x: x.mean((1, 2)), REDUCED, **SUMMED_MAPS),
    F(Op.SUM, CODES, lambda x: x.sum((1, 2)), REDUCED, **SUMMED_MAPS),
    F(Op.REDUCE_MAX, CODES, lambda x: x.max(1), REDUCED, alike=True, **SUMMED),
    F(Op.AVERAGE_POOL_2D, CODES, lambda x: _windows(x).mean((2, 4)), POOL, **POOLED),
    F(Op.MAX_POOL_2D, CODES, lambda x: _windows(x).max((2, 4)), POOL, **POOLED),
]
LIMITS = {_A.RELU: (0, np.inf), _A.RELU6: (0, 6), _A.RELU_N1_TO_1: (-1, 1)}
# Operands are rounded first, to units of up to a quantum of the result.
ROUNDED_TWICE = {"quanta": 2.0}
SQUARES = {"shape": (16, 16), "quanta": 1.6}
TWO_OPERANDS = [
    F(Op.ADD, CODES, np.add, schema.AddOptions(pot_scale_int16=False), 2, **ROUNDED_TWICE),
    F(Op.SUB, CODES, np.subtract, schema.SubOptions(pot_scale_int16=False), 2, **ROUNDED_TWICE),
    F(Op.MUL, CODES, np.multiply, schema.MulOptions(), 2),
    F(Op.DIV, BYTES, np.divide, schema.DivOptions(), 2),
    F(Op.SQUARED_DIFFERENCE, (INT8,), lambda x, y: (x - y) ** 2, None, 2, quanta=4.0),
    *(
        F(op, types, _limited(true, *bounds), options(fused_activation_function=kind), 2, **quanta)
        for op, types, true, options, quanta in (
            (Op.ADD, BYTES, np.add, schema.AddOptions, ROUNDED_TWICE),
            (Op.SUB, BYTES, np.subtract, schema.SubOptions, ROUNDED_TWICE),
            (Op.MUL, CODES, np.multiply, schema.MulOptions, {}),
            (Op.DIV, BYTES, np.divide, schema.DivOptions, {}),
        )
        for kind, bounds in LIMITS.items()
    ),
    F(Op.MAXIMUM, CODES, np.maximum, None, 2, alike=True),
    F(Op.LESS, BYTES, _compared(np.less), None, 2, **TRUTHS),
    F(Op.GREATER_EQUAL, BYTES, _compared(np.greater_equal), None, 2, **TRUTHS),
    F(Op.EQUAL, CODES, _compared(np.equal), None, 2, **TRUTHS),
    F(Op.PRELU, BYTES, lambda x, y: np.where(x < 0, x * y, x), None, 2),
    F(Op.CONCATENATION, (UINT8,), lambda *all: np.concatenate(all), JOINED, 2, made=(1024,)),
    F(Op.BATCH_MATMUL, SIGNED, np.matmul, schema.BatchMatMulOptions(), 2, **SQUARES),
]
LAYERS = [
    F(
        *(Op.FULLY_CONNECTED, SIGNED, _rows, schema.FullyConnectedOptions()),
        filter=(4, 8),
        shape=(64, 8),
        made=(64, 4),
        version=7,
        quanta=1.6,
    ),
    F(
        *(Op.CONV_2D, SIGNED, _cells, schema.Conv2DOptions(**SAME)),
        filter=(4, 1, 1, 2),
        shape=IMAGE,
        made=WIDER,
        version=3,
        quanta=1.6,
    ),
    F(
        *(Op.DEPTHWISE_CONV_2D, SIGNED, _channels),
        schema.DepthwiseConv2DOptions(depth_multiplier=1, **SAME),
        filter=(1, 1, 1, 2),
        axis=3,
        shape=IMAGE,
        version=3,
        quanta=1.6,
    ),
    F(
        *(Op.TRANSPOSE_CONV, SIGNED, _cells, schema.TransposeConvOptions(**SAME)),
        filter=(4, 1, 1, 2),
        shape=IMAGE,
        made=WIDER,
        version=3,
        quanta=1.6,
    ),
]
LIMITED_LAYERS = [
    replace(
        layer,
        true=_limited(layer.true, 0, 6),
        options=replace(layer.options, fused_activation_function=_A.RELU6),
    )
    for layer in LAYERS
]
FUNCTIONS = [*ONE_OPERAND, *TWO_OPERANDS, *LAYERS, *LIMITED_LAYERS]


def named(functions: Sequence[Function]) -> list[str]:
    """A name for each: its operator's, and a number where the operator has several."""
    seen = Counter[Op]()
    names = []
    for function in functions:
        seen[function.op] += 1
        several = seen[function.op] > 1
        names.append(f"{function.op.name}-{seen[function.op]}" if several else function.op.name)
    return names


def count_of_scales(function: Function) -> int:
    """How many scales are drawn: of the inputs, and of a result that has one of its own."""
    inputs = 2 if function.filter else function.inputs
    fixed = function.alike or bool(function.units) or function.made_type is not None
    return inputs + (not fixed)


def drawn(function: Function, type: TensorType, rng: np.random.Generator) -> Drawn:
    """Scales, zero points and codes from all of their ranges."""
    scales = rng.choice(SCALES, count_of_scales(function)).tolist()
    zeros = rng.choice(ZERO_POINTS[type], len(scales) + 1).tolist()
    return (_layer if function.filter else _operation)(function, type, scales, zeros, rng)


def _operation(
    function: Function,
    type: TensorType,
    scales: list[float],
    zeros: list[int],
    rng: np.random.Generator,
) -> Drawn:
    if function.alike:
        scales, zeros = scales[:1] * function.inputs, zeros[:1] * (function.inputs + 1)
    pairs = list(zip(scales, zeros, strict=False))[: function.inputs]
    tensors = [T(function.shape, type, scale=scale, zero_point=zero) for scale, zero in pairs]
    feeds = [_codes(tensor, rng) for tensor in tensors]
    if function.positive or function.op is Op.DIV:
        tensors[-1], feeds[-1] = _above_zero(tensors[-1], feeds[-1])
    unit, zero = function.units.get(type, (scales[-1], zeros[-1]))
    shape = function.made or function.shape
    made = T(shape, type, scale=unit, zero_point=zero)
    if function.made_type is not None:
        made = T(shape, function.made_type)
    inputs = [*tensors, *function.constants]
    model = one_op_model(function.op, inputs, [made], function.options, function.version)
    want = _want(made, function.true(*map(_reals, tensors, feeds)))
    if function.op is Op.MUL and type is not INT16 and _shifts_all_out([*tensors, made]):
        want = np.full(shape, float(zero))
    return Drawn(f"{scales}, {zeros}", model, feeds, want, made)


def _shifts_all_out(tensors: Sequence[T]) -> bool:
    """Whether the vectors of LiteRT's MUL shift all bits of a product out: it makes zero points of
    them. There is a network whose products are so."""
    first, second, made = (np.float32(tensor.scale) for tensor in tensors)
    return bool(first * second / made >= 2.0**31)


def _layer(
    function: Function,
    type: TensorType,
    scales: list[float],
    zeros: list[int],
    rng: np.random.Generator,
) -> Drawn:
    """Weights have one scale, or one for each channel."""
    x = T(function.shape, type, scale=scales[0], zero_point=zeros[0])
    feed, channels = _codes(x, rng), function.filter[function.axis]
    several = function.op is Op.DEPTHWISE_CONV_2D or rng.random() < 0.5
    factors = [1, 1e-3, 1e3, 0.7][:channels] if several else [1]
    units = (np.array(factors) * scales[1]).astype(np.float32)
    codes = rng.integers(-127, 128, function.filter).astype(np.int8)
    each = {"zero_point": [0] * len(units), "axis": function.axis}
    weights = T.constant(codes, INT8, scale=units.tolist(), **each)
    wide = np.int64 if type is INT16 else np.int32
    counts = rng.integers(-1000, 1000, channels).astype(wide)
    sums = float(np.float32(scales[0])) * units.astype(np.float64)
    stored = np.clip(sums, 1e-37, 1e37).tolist()  # TFLite does not look at it
    bias = T.constant(counts, scale=stored, zero_point=[0] * len(units))
    made = T(function.made or function.shape, type, scale=scales[2], zero_point=zeros[2])
    along = [-1 if axis == function.axis else 1 for axis in range(codes.ndim)]
    reals = _reals(x, feed), codes * units.astype(np.float64).reshape(along), counts * sums
    inputs = [x, weights, bias]
    if function.op is Op.TRANSPOSE_CONV:
        inputs = [T.constant(np.array(made.shape, np.int32)), weights, x, bias]
    model = one_op_model(function.op, inputs, [made], function.options, function.version)
    want = _want(made, function.true(*reals))
    return Drawn(f"{scales}, {zeros}, {len(units)} units", model, [feed], want, made)


def _codes(tensor: T, rng: np.random.Generator) -> Array:
    """A quarter of them are the ends of the type, and those next to the zero point."""
    (low, high), zero = quantized_range(tensor.type), tensor.zero_point
    assert isinstance(zero, int)
    codes = rng.integers(low, high + 1, tensor.shape)
    ends = np.clip([low, high, zero - 1, zero, zero + 1], low, high)
    codes.reshape(-1)[::4] = rng.choice(ends, codes.reshape(-1)[::4].shape)
    return codes.astype(NUMPY_DTYPE[tensor.type])


def _above_zero(tensor: T, codes: Array) -> tuple[T, Array]:
    """The tensor with a zero point below the highest code, and codes above it."""
    high = quantized_range(tensor.type)[1]
    zero = min(int(np.ravel(tensor.zero_point)[0]), high - 1)
    moved = T(tensor.shape, tensor.type, scale=tensor.scale, zero_point=zero)
    return moved, np.maximum(codes, codes.dtype.type(zero + 1))


def _reals(tensor: T, codes: Array) -> Array:
    steps = codes.astype(np.float64) - np.float64(np.ravel(tensor.zero_point)[0])
    return steps * np.float64(np.float32(tensor.scale))


def _want(made: T, reals: Array) -> Array:
    if made.scale is None:
        return reals.astype(np.float64)
    unit, zero = np.float64(np.float32(made.scale)), np.ravel(made.zero_point)[0]
    return np.asarray(reals / unit + zero)
