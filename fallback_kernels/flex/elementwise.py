"""TensorFlow's arithmetic element by element, on every type that it takes.

Numbers of 16 bits are computed in 32 and rounded once. Integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import (
    Array,
    Inputs,
    Outputs,
    State,
    custom_kernel,
    flex_kernel,
)
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_erf = np.frompyfunc(math.erf, 1, 1)


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _nonzero(y: Array) -> Array:
    """A divisor; an integer must not be 0."""
    if _is_integer(y) and not y.all():
        raise KernelError("an integer is divided by 0")
    return y


def _truncated(x: Array, y: Array) -> Array:
    """The quotient of integers, cut to a whole; of other numbers as it is."""
    if not _is_integer(x):
        return np.asarray(x / y)
    quotient = x // _nonzero(y)
    return np.asarray(quotient + ((x != quotient * y) & ((x < 0) != (y < 0))))


def _cut(x: Array, y: Array) -> Array:
    """Quotients without their fractions; before numpy 2.1 trunc makes floats of integers."""
    quotient = _truncated(x, y)
    return quotient if _is_integer(x) else np.asarray(np.trunc(quotient))


def _floor_divided(x: Array, y: Array) -> Array:
    return np.asarray(x // _nonzero(y) if _is_integer(x) else np.floor(x / y))


def _floor_remainder(x: Array, y: Array) -> Array:
    if _is_integer(x):
        return np.asarray(np.mod(x, _nonzero(y)))
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def _power(x: Array, y: Array) -> Array:
    if _is_integer(x) and (y < 0).any():
        raise KernelError("integers to negative integer powers are not allowed")
    return np.asarray(np.power(x, y))


def _squared_difference(x: Array, y: Array) -> Array:
    difference = x - y
    return np.asarray(np.conj(difference) * difference)


def _zero_where(zero: Array, other: Array) -> Array:
    return np.where(zero, np.zeros((), other.dtype), other)


def _joined(x: Array, y: Array) -> Array:
    """Sums; of texts one after the other."""
    return np.asarray(np.add(x, y))


def _sign(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.asarray(np.sign(x))
    return _zero_where(x == 0, x / np.abs(x))


def _reciprocal(x: Array) -> Array:
    one = x.dtype.type(1)
    return _truncated(np.broadcast_to(one, x.shape), x)


UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Atan": np.arctan,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": lambda x: np.asarray(_erf(x.astype(np.float64)), np.float64).astype(x.dtype),
    "Exp": np.exp,
    "Floor": np.floor,
    "Inv": _reciprocal,
    "Log": np.log,
    "Neg": np.negative,
    "Reciprocal": _reciprocal,
    "Round": np.rint,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sign": _sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": _joined,
    "AddV2": _joined,
    "Atan2": np.arctan2,
    "Div": _truncated,
    "DivNoNan": lambda x, y: _zero_where(y == 0, x / y),
    "FloorDiv": _floor_divided,
    "FloorMod": _floor_remainder,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "MulNoNan": lambda x, y: _zero_where(y == 0, x * y),
    "Pow": _power,
    "RealDiv": np.divide,
    "SquaredDifference": _squared_difference,
    "Sub": np.subtract,
    "TruncateDiv": _cut,
    "Xdivy": lambda x, y: _zero_where(x == 0, x / y),
    "Xlog1py": lambda x, y: _zero_where(x == 0, x * np.log1p(y)),
    "Xlogy": lambda x, y: _zero_where(x == 0, x * np.log(y)),
}


def computed(function: Callable[..., Array], *values: Array) -> Array:
    """`function` of arrays of one type, in that type; of 16-bit floats by way of 32 bits."""
    dtype = values[0].dtype
    if dtype.itemsize == 2 and dtype.kind not in "iub":
        values = tuple(value.astype(np.float32) for value in values)
    with np.errstate(all="ignore"):
        return np.asarray(function(*values)).astype(dtype, copy=False)


def unary(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `UNARY`."""
    (x,) = inputs
    if x.dtype.kind in "iu" and op.name in ("FlexRound", "FlexCeil", "FlexFloor"):
        return (x.copy(),)
    return (computed(UNARY[op.name.removeprefix("Flex")], x),)


def binary(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `BINARY`; both operands broadcast."""
    return (computed(BINARY[op.name.removeprefix("Flex")], *inputs),)


flex_kernel(*UNARY)(unary)
flex_kernel(*BINARY)(binary)
# As a converter left them custom; floats.
_LEFT: dict[str, Callable[[Array], Array]] = {"Atan": np.arctan, "ATAN": np.arctan, "Sinh": np.sinh}


def left_custom(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `_LEFT`; floats."""
    (x,) = inputs
    if x.dtype.kind != "f":
        raise KernelError(f"{x.dtype} input, expected floats")
    return (computed(_LEFT[op.name], x),)


for _name in _LEFT:
    custom_kernel(_name, versions=(1, 1))(left_custom)


@flex_kernel("AddN")
def add_n(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sum of all inputs, one after the other."""
    if any(each.shape != inputs[0].shape for each in inputs):
        raise KernelError(f"shapes {[each.shape for each in inputs[:4]]} differ")
    total = inputs[0]
    for each in inputs[1:]:
        total = computed(np.add, total, each)
    return (np.array(total),)


@flex_kernel("ClipByValue")
def clip_by_value(op: View, inputs: Inputs, state: State) -> Outputs:
    """min(max(x, low), high)."""
    x, low, high = inputs
    return (computed(lambda x, low, high: np.minimum(np.maximum(x, low), high), x, low, high),)


@flex_kernel("Cast")
def cast(op: View, inputs: Inputs, state: State) -> Outputs:
    """Another type: of complex numbers the real part, of floats towards 0."""
    (x,), dtype = inputs, op.output.dtype
    if node_of(op)["Truncate"] and dtype.itemsize < x.dtype.itemsize and x.dtype.kind == "f":
        raise KernelError("a cast that truncates the bits of floats is not known")
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x != 0 if dtype.kind == "b" else x.real
    with np.errstate(all="ignore"):
        return (x.astype(dtype),)


@flex_kernel("Bitcast")
def bitcast(op: View, inputs: Inputs, state: State) -> Outputs:
    """The same bytes as another type, whose size the last dimension makes up for."""
    (x,), dtype = inputs, op.output.dtype
    if dtype.itemsize > x.dtype.itemsize:
        return (np.ascontiguousarray(x).view(dtype).reshape(x.shape[:-1]),)
    count = x.dtype.itemsize // dtype.itemsize
    shape = x.shape if count == 1 else (*x.shape, count)
    return (np.ascontiguousarray(x).view(dtype).reshape(shape),)


@flex_kernel("Select")
def select(op: View, inputs: Inputs, state: State) -> Outputs:
    """One of two by a condition of the same shape, of rows, or for all."""
    condition, x, y = inputs
    if x.shape != y.shape:
        raise KernelError(f"shapes {x.shape} and {y.shape} differ")
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape(-1, *[1] * (x.ndim - 1))
    return (np.asarray(np.where(condition, x, y)),)


@flex_kernel("SelectV2")
def select_v2(op: View, inputs: Inputs, state: State) -> Outputs:
    """One of two by a condition; all three broadcast."""
    condition, x, y = inputs
    return (np.asarray(np.where(condition, x, y)),)
