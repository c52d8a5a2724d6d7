"""Arithmetic element by element: one operand (EXP, ABS, ...) or two that broadcast (ADD, ...).

Rows of tables: add, sub, mul, div, squared_difference, floor_div, floor_mod, atan2, pow, maximum,
minimum, logical_and, logical_or, bitwise_xor, right_shift; floor, ceil, round, sin, cos, square,
sign, zeros_like.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.function_table import tabulated
from tflite_ort.fallback_kernels.idioms.operands import (
    FLOATS,
    centred,
    clamped,
    clamped_codes,
    finite,
    refusal,
    scale,
    zero_point,
)
from tflite_ort.fallback_kernels.idioms.parts import broadcast_shape, in_parts
from tflite_ort.fallback_kernels.idioms.quantized_arithmetic import (
    quantized_product,
    quantized_quotient,
    quantized_squared_difference,
    quantized_sum,
    refuse_zero,
)
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ActivationFunctionType,
    BucketizeOptions,
    KernelError,
    Op,
    OperatorView,
    TensorType,
)
from tflite_ort.schema.arithmetic.code_functions import inverse_root_codes, root_codes
from tflite_ort.schema.arithmetic.fixed_point import rescale
from tflite_ort.schema.arithmetic.function_table import tabulated_function
from tflite_ort.schema.shapes.registry import shown

Array = npt.NDArray[Any]
View = OperatorView[Any]
Plain = Callable[[Array, Array], Array]
Quantized = Callable[[View, Array, Array], Array]

_FLOAT32 = frozenset({TensorType.FLOAT32})
_BYTES = frozenset({TensorType.UINT8, TensorType.INT8})
_CODES = _BYTES | {TensorType.INT16}
_INTEGERS = frozenset({TensorType.INT32, TensorType.INT64})


# Two operands ------------------------------------------------------------------------------------


@record
class Binary:
    """A row of the table of operators with two operands.

    Args:
        plain: the operation on real numbers and plain integers, of types `types`.
        quantized: the operation on quantized codes of `quantized_types`; its results are less the
            zero point of the output, and not clipped. int16 without quantization is plain.
        fused: the options carry a fused activation.
        whole: `plain` looks at the shapes of its operands, and is not computed in parts.
    """

    op: Op
    versions: tuple[int, int]
    plain: Plain
    types: frozenset[TensorType]
    quantized: Quantized | None = None
    quantized_types: frozenset[TensorType] = frozenset()
    fused: bool = False
    whole: bool = False

    def run(self, op: View, inputs: Inputs, state: State) -> Outputs:
        """The kernel of this row: one output in the type of both operands, which broadcast."""
        a, b = inputs
        output = op.output
        if not a.dtype == b.dtype == output.dtype:
            raise refusal(op)
        activation = ActivationFunctionType.NONE
        if self.fused:
            activation = op.options.fused_activation_function
        coded = output.type in self.quantized_types
        if output.type is TensorType.INT16 and not output.is_quantized:
            coded = False
        if coded and self.quantized is not None:
            codes = partial(self._codes, op, self.quantized, activation)
            return (in_parts(codes, a, b, dtype=output.dtype),)
        if output.type not in self.types:
            raise refusal(op)
        with np.errstate(all="ignore"):
            if self.whole:
                return (np.asarray(self.plain(a, b), output.dtype),)
            plain = partial(self._numbers, activation)
            return (in_parts(plain, a, b, dtype=output.dtype),)

    def _numbers(self, activation: ActivationFunctionType, a: Array, b: Array) -> Array:
        return clamped(np.asarray(self.plain(a, b), a.dtype), activation)

    @staticmethod
    def _codes(
        op: View, arithmetic: Quantized, activation: ActivationFunctionType, a: Array, b: Array
    ) -> Array:
        return clamped_codes(op, arithmetic(op, a, b) + zero_point(op, op.output), activation)


def _divide(a: Array, b: Array) -> Array:
    """a / b; integers truncate towards zero, and the lowest one over -1 is the highest."""
    if not np.issubdtype(a.dtype, np.integer):
        return np.asarray(a / b)
    refuse_zero(b)
    quotient = np.trunc(a.astype(np.float64) / b)
    return np.asarray(np.minimum(quotient, np.iinfo(a.dtype).max)).astype(a.dtype)


def _floor_divide(a: Array, b: Array) -> Array:
    """floor(a / b) by way of float64, which is exact up to 32-bit integers."""
    refuse_zero(b)
    quotient = np.floor(a.astype(np.float64) / b)
    if np.issubdtype(a.dtype, np.integer):
        return quotient.astype(np.int64).astype(a.dtype)
    return quotient.astype(a.dtype)


def _floor_modulo(a: Array, b: Array) -> Array:
    """a - b * floor(a / b): it has the sign of b, and not that of a, as in C."""
    if np.issubdtype(b.dtype, np.integer):
        refuse_zero(b)
    remainder = np.fmod(a, b)
    other_sign = (remainder != 0) & ((b < 0) != (remainder < 0))
    return np.where(other_sign, remainder + b, remainder)


def _angle(y: Array, x: Array) -> Array:
    """The angle of (x, y) in [-pi, pi]; no broadcasting."""
    if y.shape != x.shape:
        raise KernelError(f"shapes {y.shape} and {x.shape} differ")
    wide = np.float64 if y.dtype == np.float64 else np.float32
    return np.asarray(np.arctan2(y.astype(wide), x.astype(wide)))


def _power(a: Array, b: Array) -> Array:
    """a ** b; of integers that overflow the lowest one, but for a single exponent that broadcasts,
    which wraps."""
    if not np.issubdtype(b.dtype, np.integer):
        # numpy takes the square root for one exponent of 0.5: another result of -0 and -infinity.
        many = np.full(broadcast_shape(a, b), b) if b.size == 1 else b
        return np.asarray(np.power(a, many))
    if np.any(b < 0):
        raise KernelError("POW does not support a negative exponent for int32")
    if b.size == 1 and b.shape != a.shape:
        return np.asarray(np.power(a, b))
    return in_parts(_power_of_integers, a, b, dtype=a.dtype)


def _power_of_integers(a: Array, b: Array) -> Array:
    bounds, real = np.iinfo(a.dtype), np.power(a.astype(np.float64), b)
    held = (real >= bounds.min) & (real <= bounds.max)
    return np.where(held, real, bounds.min).astype(a.dtype)


def _maximum(a: Array, b: Array) -> Array:
    """The larger operand; `b` if either is NaN."""
    return np.where(a > b, a, b)


def _minimum(a: Array, b: Array) -> Array:
    """The smaller operand; `b` if either is NaN."""
    return np.where(a < b, a, b)


def _squared_difference(a: Array, b: Array) -> Array:
    return np.asarray((a - b) ** 2)


_ORDERED = FLOATS | _CODES | _INTEGERS
_HALF = frozenset({TensorType.FLOAT32, TensorType.FLOAT16})
_INT16 = frozenset({TensorType.INT16})

_BITS = _INTEGERS - {TensorType.INT64} | {
    *(TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    *(TensorType.UINT16, TensorType.UINT32),
}


def _right_shift(x: Array, amount: Array) -> Array:
    """x >> amount, which is clipped to the range from 0 to the number of bits less one."""
    return np.asarray(x >> np.clip(amount, 0, 8 * x.dtype.itemsize - 1))


BINARY = (
    Binary(
        Op.ADD,
        (1, 6),
        np.add,
        _HALF | _INTEGERS | _INT16,
        partial(quantized_sum, sign=1),
        _CODES,
        fused=True,
    ),
    Binary(
        Op.SUB,
        (1, 5),
        np.subtract,
        _FLOAT32 | _INTEGERS,
        partial(quantized_sum, sign=-1),
        _CODES,
        fused=True,
    ),
    Binary(
        Op.MUL,
        (1, 8),
        np.multiply,
        _HALF | _INTEGERS | _INT16 | {TensorType.UINT32, TensorType.COMPLEX64},
        quantized_product,
        _CODES,
        fused=True,
    ),
    Binary(
        Op.DIV,
        (1, 2),
        _divide,
        _FLOAT32 | {TensorType.INT32},
        quantized_quotient,
        _CODES,
        fused=True,
    ),
    Binary(
        Op.SQUARED_DIFFERENCE,
        (1, 2),
        _squared_difference,
        _FLOAT32 | {TensorType.INT32},
        quantized_squared_difference,
        frozenset({TensorType.INT8}),
    ),
    Binary(
        Op.FLOOR_DIV,
        (1, 3),
        _floor_divide,
        _FLOAT32 | {TensorType.INT32, TensorType.INT16, TensorType.INT8},
    ),
    Binary(
        Op.FLOOR_MOD,
        (1, 2),
        _floor_modulo,
        _FLOAT32 | _INTEGERS | {TensorType.INT16, TensorType.INT8},
    ),
    Binary(Op.ATAN2, (1, 1), _angle, FLOATS | {TensorType.FLOAT64}, whole=True),
    Binary(Op.POW, (1, 1), _power, _FLOAT32 | {TensorType.INT32}, whole=True),
    # The codes are compared directly, as if the scales were equal.
    Binary(Op.MAXIMUM, (1, 4), _maximum, _ORDERED),
    Binary(Op.MINIMUM, (1, 4), _minimum, _ORDERED),
    Binary(Op.LOGICAL_AND, (1, 1), np.logical_and, frozenset({TensorType.BOOL})),
    Binary(Op.LOGICAL_OR, (1, 1), np.logical_or, frozenset({TensorType.BOOL})),
    Binary(Op.BITWISE_XOR, (1, 1), np.bitwise_xor, _BITS),
    Binary(Op.RIGHT_SHIFT, (1, 1), _right_shift, _BITS),
)

for row in BINARY:
    kernel(row.op, versions=row.versions)(row.run)


# One operand -------------------------------------------------------------------------------------


@kernel(Op.EXP, versions=(1, 2))
def exp(op: View, inputs: Inputs, state: State) -> Outputs:
    """e**x: float32; int8 and int16 by table."""
    return _by_table(op, inputs[0], np.exp)


@kernel(Op.LOG, versions=(1, 2))
def log(op: View, inputs: Inputs, state: State) -> Outputs:
    """ln x: float32; int8 and int16 by table, in which x <= 0 gives the lowest code."""
    return _by_table(op, inputs[0], np.log)


def _by_table(op: View, x: Array, function: Callable[[Array], Array]) -> Outputs:
    """`function` of float32, and of codes by a table."""
    with np.errstate(all="ignore"):
        if op["input"].type is TensorType.FLOAT32:
            return (np.asarray(function(x), np.float32),)
        return (_tabulated(op, x),)


def _tabulated(op: View, codes: Array) -> Array:
    output = op.output
    return tabulated(op, codes, tabulated_function(op, scale(op, output), zero_point(op, output)))


@kernel(Op.SQRT, versions=(1, 2))
def sqrt(op: View, inputs: Inputs, state: State) -> Outputs:
    """sqrt(x): float32; int8 and int16 through float32, with a truncated code."""
    (x,) = inputs
    if op["input"].type is TensorType.FLOAT32:
        with np.errstate(invalid="ignore"):
            return (np.sqrt(x),)
    steps = centred(op, op["input"], x)
    if np.any(steps < 0):
        raise KernelError("Sqrt is only defined for non-negative values")
    codes = root_codes(steps, scale(op, op["input"]), scale(op, op.output))
    return (clamped_codes(op, codes + zero_point(op, op.output)),)


@kernel(Op.RSQRT, versions=(1, 3))
def rsqrt(op: View, inputs: Inputs, state: State) -> Outputs:
    """1 / sqrt(x): float32; int8 in fixed point, int16 by table; 0 gives the highest code."""
    (x,) = inputs
    type_ = op["input"].type
    if type_ is TensorType.FLOAT32:
        with np.errstate(all="ignore"):
            return (np.float32(1) / np.sqrt(x),)
    centred_codes = centred(op, op["input"], x)
    if np.any(centred_codes < 0):
        raise KernelError("Rsqrt is only defined for positive values")
    if type_ is TensorType.INT16:
        return (_tabulated(op, x),)
    codes = inverse_root_codes(centred_codes, scale(op, op["input"]), scale(op, op.output))
    return (clamped_codes(op, codes + zero_point(op, op.output)),)


@kernel(Op.ABS, versions=(1, 5))
def abs(op: View, inputs: Inputs, state: State) -> Outputs:
    """|x|: float32, int32, plain int16; int8 and int16 codes times s_in / s_out."""
    (x,) = inputs
    input = op["input"]
    if input.type in (TensorType.INT8, TensorType.INT16) and input.is_quantized:
        codes = np.abs(centred(op, input, x))
        if scale(op, input) != scale(op, op.output):
            codes = rescale(codes, scale(op, input) / scale(op, op.output))
        return (clamped_codes(op, codes + zero_point(op, op.output)),)
    if input.type not in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT16):
        raise refusal(op)
    return (np.abs(x),)


@kernel(Op.NEG, versions=(1, 1))
def neg(op: View, inputs: Inputs, state: State) -> Outputs:
    """-x of the numbers as stored: quantization is ignored and the lowest integer stays."""
    return (np.negative(inputs[0]),)


def unary(function: Callable[[Array], Array], op: View, inputs: Inputs, state: State) -> Outputs:
    """`function` of plain numbers; small floats by way of float32."""
    (x,) = inputs
    with np.errstate(invalid="ignore", over="ignore"):
        real = x.astype(np.float32) if op["input"].type in FLOATS else x
        return (np.asarray(function(real)).astype(x.dtype),)


for operator, last, function in (
    (Op.FLOOR, 1, np.floor),
    (Op.CEIL, 1, np.ceil),
    (Op.ROUND, 1, np.rint),
    (Op.SIN, 2, np.sin),
    (Op.COS, 2, np.cos),
    (Op.SQUARE, 1, np.square),
    (Op.SIGN, 2, np.sign),
    (Op.ZEROS_LIKE, 1, np.zeros_like),
):
    kernel(operator, versions=(1, last))(partial(unary, function))


@kernel(Op.ADD_N, versions=(1, 1))
def add_n(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sum of two or more tensors of one shape; int32 wraps, floats stay finite."""
    shapes = {array.shape for array in inputs}
    if len(inputs) < 2 or len(shapes) > 1:
        raise KernelError(f"{len(inputs)} values of shapes {sorted(shapes)}")
    if len({tensor.type for tensor in op.present_inputs()}) > 1:
        raise refusal(op)
    return (finite(functools.reduce(np.add, inputs)),)


@kernel(Op.BUCKETIZE, versions=(1, 1))
def bucketize(op: OperatorView[BucketizeOptions], inputs: Inputs, state: State) -> Outputs:
    """The number of ascending boundaries that are not above x; all of them for NaN."""
    (x,) = inputs
    boundaries = np.asarray(op.options.boundaries or (), np.float32)
    if not np.all(boundaries[1:] >= boundaries[:-1]):
        raise KernelError(f"boundaries {shown(boundaries)} are not in ascending order")
    real = x if x.dtype == np.float64 else x.astype(np.float32)
    return (np.asarray(np.searchsorted(boundaries, real, side="right"), np.int32),)
