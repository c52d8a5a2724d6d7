"""DIV, FLOOR_DIV and FLOOR_MOD, whose integer divisors must not be 0; POW, whose integer exponents
must not be negative."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable

View = OperatorView[Any]
_T = TensorType


def quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Div; of integers in 64 bits, in which the lowest INT32 over -1 does not end the process: the
    result is the highest one. Of codes the graph fails where a divisor is 0, as TFLite does."""
    if op.output.type is _T.FLOAT32:
        return g.op("Div", a, b)
    if op.output.type is not _T.INT32:
        return g.op("Div", a, _real_divisor(op, g, b))
    leave_many_to_numpy(g, op.output.shape, "quotients")
    result = g.op("Div", g.cast(a, ir.DataType.INT64), _divisor(op, g, b))
    known = op["input2"].data
    if known is None or np.any(known == -1):
        result = g.smaller(result, g.ints(np.iinfo(np.int32).max))
    return g.cast(result, ir.DataType.INT32)


def floor_quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Floor(Div) in double, as in TFLite: a float32 quotient could round up to an integer, but not
    one of 8 or 16 bits. Without ONNX Runtime's own kernels, 32-bit integers stay integers."""
    leave_many_to_numpy(g, op.output.shape, "quotients")
    wide, type_ = ir.DataType.DOUBLE, op.output.type
    if type_ is not _T.FLOAT32:
        divisor = _divisor(op, g, b)
        if type_ is _T.INT32 and not g.target.exact_integers:
            return _floor_of_int32(op, g, a, (b, divisor))
        b, wide = divisor, wide if type_ is _T.INT32 else ir.DataType.FLOAT
    first, second = (g.cast(value, wide) for value in (a, b))
    floor = g.op("Floor", g.op("Div", first, second))
    return g.cast(floor, op.output.dtype)


def _floor_of_int32(
    op: View, g: Graph, a: ir.Value, divisors: tuple[ir.Value, ir.Value]
) -> ir.Value:
    """The quotient of 32-bit integers by a divisor, which is given in 64 bits too."""
    known, (narrow, wide) = op["input2"].data, divisors
    if known is None or not np.all(known > 0):
        floor = floor_of_integers(g, g.cast(a, ir.DataType.INT64), wide)
        return g.cast(floor, ir.DataType.INT32)
    if _is_index(a):
        return g.op("Div", a, narrow)
    dividend = g.cast(a, ir.DataType.INT64)
    quotient = g.op("Div", dividend, wide)
    rest = g.op("Sub", dividend, g.op("Mul", quotient, wide))
    below = g.cast(g.op("Less", rest, g.ints(0)), ir.DataType.INT64)
    return g.cast(g.op("Sub", quotient, below), ir.DataType.INT32)


def _is_index(value: ir.Value) -> bool:
    """Whether a value holds indices, which are not below 0."""
    node = ir.before_reshapes(value).producer()
    while node is not None and node.op_type == "Cast" and node.inputs[0] is not None:
        node = ir.before_reshapes(node.inputs[0]).producer()
    return node is not None and node.op_type in ("ArgMax", "ArgMin")


def _real_divisor(op: View, g: Graph, b: ir.Value) -> ir.Value:
    """The divisor that codes stand for; the graph fails where a code is the zero point."""
    divisor = op["input2"]
    known, scaled = divisor.data, divisor.quantization
    if known is not None and scaled is not None:
        if np.all(known != scaled.scalar_zero_point):
            return b
        raise Untranslatable("integer divisor that may be 0")
    none = failing(g, g.ints(0), g.op("Equal", b, g.constant(0, np.float32)))
    return g.op("Add", b, g.cast(none, ir.DataType.FLOAT))


def _divisor(op: View, g: Graph, b: ir.Value) -> ir.Value:
    """The integer divisor in 64 bits; the graph fails where it is 0.

    Where kernels are available, a divisor that may be 0 is left to them: their error names it.
    """
    return nonzero(g, op["input2"], g.cast(b, ir.DataType.INT64))


def nonzero(g: Graph, divisor: TensorView, wide: ir.Value) -> ir.Value:
    """As `_divisor`, of the value of a tensor in 64 bits."""
    known = divisor.data
    if known is not None and np.all(known):
        return wide
    if known is not None or g.target.fallback:
        raise Untranslatable("integer divisor that may be 0")
    return failing(g, wide, g.op("Equal", wide, g.ints(0)))


def floor_modulo(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of the divisor.

    Mod of integers has it. Mod of floats has the sign of the dividend, as in C, so the divisor is
    added where the signs differ.
    """
    leave_many_to_numpy(g, op.output.shape, "remainders")
    if op.output.type is not _T.FLOAT32:
        wide = g.cast(a, ir.DataType.INT64)
        return g.cast(modulo_of_integers(g, wide, _divisor(op, g, b)), op.output.dtype)
    return modulo_of_floats(g, a, b, np.dtype(np.float32))


def modulo_of_floats(g: Graph, a: ir.Value, b: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """The remainder of floats of one type, with the sign of the divisor."""
    zero = g.constant(0, dtype)
    remainder = g.op("Mod", a, b, fmod=1)
    signs = g.op("Xor", g.op("Less", b, zero), g.op("Less", remainder, zero))
    whole = g.op("Equal", remainder, zero)
    shifted = g.op("And", signs, g.op("Not", whole))
    return g.op("Where", shifted, g.op("Add", remainder, b), remainder)


def quotient_of_integers(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Div of 64-bit integers, cut towards 0. The lowest one divided by -1, which would end the
    process, is itself."""
    minus, one = g.op("Equal", b, g.ints(-1)), g.ints(1)
    quotient = g.op("Div", a, g.op("Where", minus, one, b))
    return g.op("Where", minus, g.op("Neg", a), quotient)


def floor_of_integers(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """The quotient of 64-bit integers, rounded down."""
    quotient, zero = quotient_of_integers(g, a, b), g.ints(0)
    rest = g.op("Sub", a, g.op("Mul", quotient, b))
    above = g.op("Xor", g.op("Less", rest, zero), g.op("Less", b, zero))
    above = g.op("And", above, g.op("Not", g.op("Equal", rest, zero)))
    return g.op("Sub", quotient, g.cast(above, ir.DataType.INT64))


def modulo_of_integers(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder of 64-bit integers, with the sign of the divisor. What is left of the lowest
    one by -1, which would end the process, is left by 1 too: nothing."""
    one = g.ints(1)
    return g.op("Mod", a, g.op("Where", g.op("Equal", b, g.ints(-1)), one, b))


def power(op: OperatorView[Any], g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Pow; of integers the graph fails on a negative exponent, unless a kernel is available.

    Integers that overflow give the lowest one, in ONNX Runtime and in TFLite. But for a single
    exponent that broadcasts TFLite multiplies, and wraps.
    """
    if op.output.type is not TensorType.INT32:
        return g.op("Pow", a, b)
    exponents, negative = op["input2"], g.op("Less", b, g.constant(0, np.int32))
    known = exponents.data
    if g.target.fallback if known is None else np.any(known < 0):
        raise Untranslatable("integer exponent that may be negative")
    if known is None:
        b = failing(g, g.cast(b, ir.DataType.INT64), negative)
    if exponents.dynamic or prod(exponents.shape) != 1 or exponents.shape == op["input1"].shape:
        return g.op("Pow", a, b)
    return _integer_power(g, a, b, 31 if known is None else int(known.max()).bit_length())


def _integer_power(g: Graph, a: ir.Value, b: ir.Value, bits: int) -> ir.Value:
    """a ** b by repeated squares, one for every bit of the exponent b."""
    two, one = g.ints(2), g.constant(1, np.int32)
    power, rest = one, g.cast(b, ir.DataType.INT64)
    for bit in range(max(bits, 1)):
        if bit:
            rest, a = g.op("Div", rest, two), g.op("Mul", a, a)
        is_set = g.cast(g.op("Mod", rest, two), ir.DataType.BOOL)
        power = g.op("Mul", power, g.op("Where", is_set, a, one))
    return power
