"""What each ONNX operator that translators use has to give at the edges of each type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper

from tflite_ort.providers.trials import exact_weight_type

Array = npt.NDArray[Any]
Wanted = Callable[..., Any]
Trials = Callable[[np.dtype[Any]], Iterator["Trial"]]

FLOATS = tuple(np.dtype(name) for name in ("float32", "float64", "float16"))
INTEGERS = tuple(np.dtype(f"{sign}int{bits}") for bits in (8, 16, 32, 64) for sign in ("", "u"))
BOOL = np.dtype(np.bool_)
TYPES = (*FLOATS, *INTEGERS, BOOL)
_POWERS = (7, 8, 15, 16, 23, 24, 31, 32, 33, 52, 53, 62, 63)
_SHAPES = ((1,), (3,), (8,), (17,), (4, 9), (9, 4), (2, 3, 5), (5, 4, 6))


def edges(dtype: np.dtype[Any]) -> Array:
    """The numbers of a type at which kernels may go wrong."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        near = [sign * 2**n + step for n in _POWERS for step in (-1, 0, 1) for sign in (-1, 1)]
        numbers = {-5, -2, -1, 0, 1, 2, 5, 3 * 10**9, bounds.min, bounds.min + 1, bounds.max}
        held = {n for n in (*numbers, *near) if bounds.min <= n <= bounds.max}
        return np.array(sorted(held), dtype)
    bounds = np.finfo(dtype)
    tiny = [bounds.smallest_subnormal, bounds.tiny, bounds.eps]
    sizes = [0.0, *tiny, 0.4, 0.5, 1.0, 1.5, 2.0, 2.5, 7.0, 100.0, 1e4, bounds.max, np.inf]
    with np.errstate(over="ignore"):
        powers = [2.0**n + step for n in (11, 24, 31, 32, 53) for step in (-1, 0, 1)]
        both = np.array([*sizes, *powers], np.float64).astype(dtype)
    return np.concatenate([both, -both, np.array([np.nan], dtype)])


@dataclass(frozen=True, slots=True)
class Trial:
    """Inputs of an operator, its attributes and what it has to give."""

    arrays: Sequence[Array]
    wanted: Array
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """How an operator is tried.

    Args:
        trials: the trials of a type, made from its edges.
        types: those whose results are defined.
        tolerance: of floats, relative.
        zeros: the sign of a zero is defined.
    """

    trials: Callable[[np.dtype[Any]], Iterator[Trial]]
    types: Sequence[np.dtype[Any]] = TYPES
    tolerance: float = 0.0
    zeros: bool = False


def _trial(wanted: Any, *arrays: Array, **attributes: Any) -> Trial:
    return Trial([np.asarray(array) for array in arrays], np.asarray(wanted), attributes)


def _drawn(dtype: np.dtype[Any], *shapes: tuple[int, ...], seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.choice(edges(dtype), shape) for shape in shapes]


def unary(wanted: Wanted, dtype: np.dtype[Any]) -> Iterator[Trial]:
    values = edges(dtype)
    for shape in (values.shape, (1,), (3,), (4, 9)):
        x = np.resize(values, shape)
        made = np.asarray(wanted(x))
        yield _trial(made if made.dtype.kind == "b" else made.astype(dtype), x)


def binary(wanted: Wanted, dtype: np.dtype[Any]) -> Iterator[Trial]:
    """Every pair of edges, in one array and in each kind of broadcasting."""
    values = edges(dtype)
    rows, columns = values[:, np.newaxis], values[np.newaxis]
    a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(rows, columns))
    pairs = [(a, b), (rows, columns), (rows, values), (a, values), (values, a)]
    pairs += [(np.array(x), values) for x in values] + [(values, np.array(x)) for x in values]
    pairs += [(a.ravel()[i :: len(values) + 1], b.ravel()[:: len(values) + 1]) for i in (1, 2)]
    for x, y in pairs:
        if x.ndim == 1 and y.ndim == 1:
            size = min(len(x), len(y))
            x, y = x[:size], y[:size]
        made = np.asarray(wanted(x, y))
        yield _trial(made if made.dtype.kind == "b" else made.astype(dtype), x, y)


def divided(wanted: Wanted, dtype: np.dtype[Any]) -> Iterator[Trial]:
    """Of integers without what has no result: a divisor of 0, the lowest number over -1."""
    for trial in binary(wanted, dtype):
        a, b = np.broadcast_arrays(*trial.arrays)
        if dtype.kind == "f":
            yield trial
            continue
        kept = b != 0
        if dtype.kind == "i":
            kept &= (a != np.iinfo(dtype).min) | (b != -1)
        yield _trial(wanted(a[kept], b[kept]).astype(dtype), a[kept], b[kept])


def truncated(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    quotient = np.floor_divide(a, b)
    return np.asarray(quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype))


def remainder(dtype: np.dtype[Any]) -> Iterator[Trial]:
    wanted = np.fmod if dtype.kind == "f" else np.remainder
    for trial in divided(wanted, dtype):
        yield _trial(trial.wanted, *trial.arrays, fmod=int(dtype.kind == "f"))


def shifted(dtype: np.dtype[Any]) -> Iterator[Trial]:
    values = edges(dtype)
    counts = np.arange(8 * dtype.itemsize, dtype=dtype)
    for direction, wanted in (("LEFT", np.left_shift), ("RIGHT", np.right_shift)):
        x, y = values[:, np.newaxis], counts
        yield _trial(wanted(x, y), x, y, direction=direction)


def reduced(wanted: Wanted, dtype: np.dtype[Any], **attributes: Any) -> Iterator[Trial]:
    """Along each axis, along pairs of them and along all."""
    for seed in range(4):
        for shape in _SHAPES:
            (x,) = _drawn(dtype, shape, seed=seed)
            every = [(axis,) for axis in range(x.ndim)] + [tuple(range(x.ndim))]
            for axes in [*every, (0, 1), (1, 2)] if x.ndim == 3 else every:
                made = np.asarray(wanted(x, axis=axes, keepdims=True)).astype(dtype)
                yield _trial(made, x, np.array(axes, np.int64), keepdims=1)


def nearest(wanted: Wanted, dtype: np.dtype[Any]) -> Iterator[Trial]:
    """ArgMax and ArgMin: the first of equals; not of what has no order."""
    for seed in range(4):
        for shape in _SHAPES:
            (x,) = _drawn(dtype, shape, seed=seed)
            x = np.nan_to_num(x, copy=False) if dtype.kind == "f" else x
            for axis in range(x.ndim):
                yield _trial(np.expand_dims(wanted(x, axis=axis), axis), x, axis=axis)


def chosen(dtype: np.dtype[Any]) -> Iterator[Trial]:
    for seed in range(3):
        a, b = _drawn(dtype, (7, 9), (7, 9), seed=seed)
        (condition,) = _drawn(BOOL, (7, 9), seed=seed + 9)
        for x, y in ((a, b), (a[:1], b), (a, b[:, :1]), (a[0, 0], b), (a, b[0, 0])):
            yield _trial(np.where(condition, x, y), condition, np.asarray(x), np.asarray(y))


def clipped(dtype: np.dtype[Any]) -> Iterator[Trial]:
    values = edges(dtype)
    finite = np.unique(values[np.isfinite(values)]) if dtype.kind == "f" else values
    for low, high in ((finite[0], finite[-1]), (finite[3], finite[-4]), (finite[-5], finite[-2])):
        bounds = np.array(low, dtype), np.array(high, dtype)
        yield _trial(np.clip(values, *bounds), values, *bounds)


def cast(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """To each other type, where it holds the number, and integers wrap."""
    for target in TYPES:
        values = edges(dtype)
        if dtype.kind == "f" and target.kind in "iu":
            bounds = np.iinfo(target)
            with np.errstate(invalid="ignore"):
                wide = values.astype(np.float64)
                values = values[(wide >= bounds.min) & (wide < 2.0 ** np.ceil(np.log2(bounds.max)))]
        with np.errstate(over="ignore"):
            wanted = values.astype(target)
        yield _trial(wanted, values, to=int(helper.np_dtype_to_tensor_dtype(target)))


def summed(dtype: np.dtype[Any]) -> Iterator[Trial]:
    for shape in _SHAPES:
        (x,) = _drawn(dtype, shape)
        for axis in range(x.ndim):
            yield _trial(np.cumsum(x, axis=axis, dtype=dtype), x, np.array(axis))


def moved(wanted: Callable[[Array], tuple[Any, Sequence[Array], dict[str, Any]]]) -> Any:
    """Trials of an operator that moves elements: `wanted` gives result, inputs and attributes."""

    def trials(dtype: np.dtype[Any]) -> Iterator[Trial]:
        for seed in range(2):
            (x,) = _drawn(dtype, (4, 6, 5), seed=seed)
            made, others, attributes = wanted(x)
            yield _trial(np.ascontiguousarray(made), x, *others, **attributes)

    return trials


def _ints(*values: Any) -> Array:
    return np.array(values, np.int64)


def _scattered(reduction: str, wanted: Any) -> Callable[[np.dtype[Any]], Iterator[Trial]]:
    """Rows combined at indices that come once and twice."""

    def trials(dtype: np.dtype[Any]) -> Iterator[Trial]:
        for seed in range(3):
            base, updates = _drawn(dtype, (5, 7), (4, 7), seed=seed)
            places = np.repeat(_ints(3, 0, 1, 4)[:, np.newaxis], 7, axis=1)
            made = base.copy()
            made[places[:, 0]] = wanted(base[places[:, 0]], updates)
            yield _trial(made, base, places, updates, axis=0, reduction=reduction)

    return trials


def highest(dtype: np.dtype[Any]) -> Iterator[Trial]:
    for seed in range(3):
        (x,) = _drawn(dtype, (6, 11), seed=seed)
        x = np.nan_to_num(x, copy=False) if dtype.kind == "f" else x
        x = x + dtype.type(0)  # no -0.0, which is as large as 0
        yield _trial(np.sort(x, axis=1)[:, ::-1][:, :4], x, _ints(4), axis=1)


def products(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """Of whole numbers whose sums every type holds, or wraps."""
    rng = np.random.default_rng(0)
    for m, k, n in ((1, 3, 4), (5, 9, 7), (1, 70, 33)):
        a, b = rng.choice(edges(dtype), (m, k)), rng.choice(edges(dtype), (k, n))
        if dtype.kind == "f":
            a, b = (np.clip(np.nan_to_num(x), -100, 100).round() for x in (a, b))
        yield _trial((a @ b).astype(dtype), a, b)


def rounded_codes(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """QuantizeLinear: halves to even, held at the ends."""
    x = edges(np.dtype(np.float32))
    x = x[~np.isnan(x)]
    bounds = np.iinfo(dtype)
    for scale, zero in ((1.0, 0), (0.5, 3), (1e-30, 0), (1e30, 0)):
        with np.errstate(over="ignore"):
            codes = np.rint(x / np.float32(scale)).astype(np.float64) + zero
        wanted = np.clip(codes, bounds.min, bounds.max).astype(dtype)
        yield _trial(wanted, x, np.array(scale, np.float32), np.array(zero, dtype))


def real_codes(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """DequantizeLinear."""
    x = edges(dtype)
    for scale, zero in ((1.0, 0), (0.5, 3 if dtype.itemsize < 4 else 0)):
        wanted = (x.astype(np.int64) - zero).astype(np.float32) * np.float32(scale)
        yield _trial(wanted, x, np.array(scale, np.float32), np.array(zero, dtype))


def extended(wanted: Callable[[Any], Any]) -> Wanted:
    """`wanted` by way of float64."""
    return lambda x: wanted(x.astype(np.float64)).astype(x.dtype)


def squeezed(dtype: np.dtype[Any]) -> Iterator[Trial]:
    (x,) = _drawn(dtype, (1, 6, 9))
    yield _trial(x[0], x, _ints(0))


def counted(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """Range."""
    for start, limit, step in ((0, 7, 1), (5, -3, -2), (100, 120, 7)):
        if dtype.kind == "i" or step > 0:
            bounds = (np.array(value, dtype) for value in (start, limit, step))
            yield _trial(np.arange(start, limit, step).astype(dtype), *bounds)


def raised(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """Pow of whole numbers, whose results wrap."""
    values = edges(dtype)
    for power in (0, 1, 2, 3):
        yield _trial(values**power, values, np.full(values.shape, power, dtype))


def pooled(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """MaxPool of pairs."""
    for seed in range(3):
        (x,) = _drawn(dtype, (1, 3, 20), seed=seed)
        x = np.nan_to_num(x) if dtype.kind == "f" else x
        yield _trial(np.maximum(x[..., :-1], x[..., 1:]), x, kernel_shape=[2])


def byte_products(dtype: np.dtype[Any]) -> Iterator[Trial]:
    """MatMulInteger of extreme bytes, unsigned ones with the weights that graphs have here."""
    other = np.dtype(np.int8 if dtype.kind == "i" else exact_weight_type())
    for depth in (1, 3, 64, 257):
        a = np.resize(edges(dtype), (5, depth))
        b = np.resize(edges(other), (depth, 9))
        yield _trial(a.astype(np.int32) @ b.astype(np.int32), a, b)


def _not_zero(dtype: np.dtype[Any]) -> Iterator[Trial]:
    (x,) = _drawn(dtype, (6, 9))
    yield _trial(np.stack(np.nonzero(x)), x)


_SIGNED = (*FLOATS, *(dtype for dtype in INTEGERS if dtype.kind == "i"))
_UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.kind == "u")
_NUMBERS = (*FLOATS, *INTEGERS)
_IDENTITY: Wanted = lambda x: x  # noqa: E731
_COMPARISONS: Mapping[str, Wanted] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
_FUNCTIONS: Mapping[str, Wanted] = {
    "Atan": np.arctan,
    "Cos": np.cos,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Exp": np.exp,
    "Log": np.log,
    "Reciprocal": lambda x: 1 / x,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
}
_EXACT: Mapping[str, tuple[Wanted, Sequence[np.dtype[Any]]]] = {
    "Abs": (np.abs, _NUMBERS),
    "Ceil": (np.ceil, FLOATS),
    "Floor": (np.floor, FLOATS),
    "Identity": (_IDENTITY, TYPES),
    "IsInf": (np.isinf, FLOATS),
    "IsNaN": (np.isnan, FLOATS),
    "Neg": (np.negative, _SIGNED),
    "Not": (np.logical_not, (BOOL,)),
    "Relu": (lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), _SIGNED),
    "Round": (np.rint, FLOATS),
    "Sign": (np.sign, _NUMBERS),
}
_PAIRS: Mapping[str, tuple[Wanted, Sequence[np.dtype[Any]]]] = {
    "Add": (np.add, _NUMBERS),
    "And": (np.logical_and, (BOOL,)),
    "BitwiseAnd": (np.bitwise_and, INTEGERS),
    "BitwiseOr": (np.bitwise_or, INTEGERS),
    "BitwiseXor": (np.bitwise_xor, INTEGERS),
    "Max": (np.maximum, _NUMBERS),
    "Min": (np.minimum, _NUMBERS),
    "Mul": (np.multiply, _NUMBERS),
    "Or": (np.logical_or, (BOOL,)),
    "PRelu": (lambda x, slope: np.where(x < 0, x * slope, x), _SIGNED),
    "Sub": (np.subtract, _NUMBERS),
    "Xor": (np.logical_xor, (BOOL,)),
}
_REDUCTIONS: Mapping[str, tuple[Wanted, Sequence[np.dtype[Any]]]] = {
    "ReduceMax": (np.max, TYPES),
    "ReduceMin": (np.min, TYPES),
    "ReduceProd": (partial(np.prod, dtype=None), INTEGERS),
    "ReduceSum": (partial(np.sum, dtype=None), INTEGERS),
}
_MOVED: Mapping[str, Callable[[Array], tuple[Any, Sequence[Array], dict[str, Any]]]] = {
    "Compress": lambda x: (x[[0, 2]], [np.array([1, 0, 1, 0], np.bool_)], {"axis": 0}),
    "Concat": lambda x: (np.concatenate([x, x[:2]]), [x[:2]], {"axis": 0}),
    "Expand": lambda x: (np.broadcast_to(x, (2, 4, 6, 5)), [_ints(2, 1, 1, 5)], {}),
    "Gather": lambda x: (x[:, [5, 0, 2]], [_ints(5, 0, -4)], {"axis": 1}),
    "GatherElements": lambda x: (x[:1], [np.zeros((1, 6, 5), np.int64)], {"axis": 0}),
    "GatherND": lambda x: (x[[3, 1], [0, 2]], [_ints([3, 0], [1, 2])], {}),
    "Pad": lambda x: (
        np.pad(x, ((1, 0), (0, 2), (0, 0)), constant_values=x[0, 0, 0]),
        [_ints(1, 0, 0, 0, 2, 0), x[0, 0, 0].reshape(())],
        {},
    ),
    "Reshape": lambda x: (x.reshape(8, 15), [_ints(8, -1)], {}),
    "ReverseSequence": lambda x: (
        np.concatenate([x[:2, ::1][::-1], x[2:]]),
        [np.full(6, 2, np.int64)],
        {"batch_axis": 1, "time_axis": 0},
    ),
    "Slice": lambda x: (x[:, 4:0:-2], [_ints(4), _ints(0), _ints(1), _ints(-2)], {}),
    "Tile": lambda x: (np.tile(x, (1, 2, 1)), [_ints(1, 2, 1)], {}),
    "Transpose": lambda x: (x.transpose(2, 0, 1), [], {"perm": [2, 0, 1]}),
    "Unsqueeze": lambda x: (x[:, np.newaxis], [_ints(1)], {}),
}

CHECKS: Mapping[str, Check] = {
    **{name: Check(partial(binary, wanted)) for name, wanted in _COMPARISONS.items()},
    **{
        name: Check(partial(unary, extended(wanted)), FLOATS, 2e-3)
        for name, wanted in _FUNCTIONS.items()
    },
    **{name: Check(partial(unary, wanted), types) for name, (wanted, types) in _EXACT.items()},
    **{name: Check(partial(binary, wanted), types) for name, (wanted, types) in _PAIRS.items()},
    **{
        name: Check(partial(reduced, wanted), types)
        for name, (wanted, types) in _REDUCTIONS.items()
    },
    **{name: Check(moved(wanted), zeros=True) for name, wanted in _MOVED.items()},
    "ArgMax": Check(partial(nearest, np.argmax), _NUMBERS),
    "ArgMin": Check(partial(nearest, np.argmin), _NUMBERS),
    "BitShift": Check(shifted, _UNSIGNED),
    "Cast": Check(cast),
    "Clip": Check(clipped, _NUMBERS),
    "CumSum": Check(summed, _SIGNED[3:]),
    "DequantizeLinear": Check(real_codes, INTEGERS),
    "Div": Check(partial(divided, truncated), _NUMBERS),
    "MatMul": Check(products, _NUMBERS),
    "MatMulInteger": Check(byte_products, INTEGERS[:2]),
    "MaxPool": Check(pooled, (*FLOATS, *INTEGERS[:2])),
    "Mod": Check(remainder, _NUMBERS),
    "NonZero": Check(_not_zero),
    "Pow": Check(raised, INTEGERS[4:]),
    "QuantizeLinear": Check(rounded_codes, INTEGERS[:4]),
    "Range": Check(counted, _NUMBERS),
    "ScatterElements": Check(_scattered("none", lambda old, new: new)),
    "ScatterElements/add": Check(_scattered("add", np.add), _NUMBERS),
    "ScatterElements/max": Check(_scattered("max", np.maximum), _NUMBERS),
    "ScatterElements/min": Check(_scattered("min", np.minimum), _NUMBERS),
    "ScatterElements/mul": Check(_scattered("mul", np.multiply), _NUMBERS),
    "Squeeze": Check(squeezed, zeros=True),
    "TopK": Check(highest, _NUMBERS),
    "Where": Check(chosen, zeros=True),
}
# Functions of real numbers, those with other operators inside, and what moves elements as those
# above do; some are names of TFLite or TensorFlow.
UNTRIED = frozenset(
    {
        *("AveragePool", "Conv", "ConvTranspose", "DFT", "Gemm", "GlobalAveragePool", "GridSample"),
        *("Erf", "Gelu", "HardSigmoid", "HardSwish", "LRN", "LayerNormalization", "LeakyRelu"),
        *("LogSoftmax", "NonMaxSuppression", "RandomUniform", "ReduceL2", "ReduceMean", "Resize"),
        *("Cosh", "Det", "Einsum", "Shrink", "Sinh", "Softmax", "Softsign", "Tan"),
        *("GRU", "LSTM", "RNN", "If", "Loop", "Scan", "ThresholdedRelu", "Mean", "Selu", "Sum"),
        *("ConstantOfShape", "DepthToSpace", "ScatterND", "Shape", "Size", "SpaceToDepth"),
        *("Flatten", "Split", "TensorScatter", "Unique", "QLinearMatMul"),
        # Of floats, or of codes that tests of operators compare one by one.
        *("Attention", "DynamicQuantizeLinear", "GroupNormalization", "QLinearConv"),
        *("RotaryEmbedding", "CastLike", "BatchNormalization", "ReduceSumSquare"),
        # Only tables of nodes name them.
        *("BitwiseNot", "Col2Im", "Mish", "RandomNormal", "ReduceL1", "Bernoulli", "Multinomial"),
        *("RegexFullMatch", "StringConcat", "StringSplit"),
    }
)
