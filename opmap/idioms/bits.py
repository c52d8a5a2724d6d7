"""Bits: of numbers as non-negative int64, up to 32 of them, for BITCAST; and RIGHT_SHIFT."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

_MANTISSA, _SIGN = 2**23, 2**31
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_LOWEST, _HIGHEST = -126, 127  # exponents
_INTEGERS = frozenset(
    {
        *(TensorType.INT8, TensorType.INT16, TensorType.INT32),
        *(TensorType.UINT8, TensorType.UINT16, TensorType.UINT32),
    }
)


def check_types(g: Graph, *types: TensorType) -> None:
    """Refuses types of more than 32 bits; and floats where a kernel can keep the bits of a NaN."""
    for type in types:
        floats = type is TensorType.FLOAT32 and not g.target.fallback
        if not (type in _INTEGERS or floats):
            raise Untranslatable(f"the bits of {type.name}")


def bits_of(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """The bits of `value`, integers or float32, as int64."""
    if tensor.type is TensorType.FLOAT32:
        return _bits_of_floats(g, value)
    whole = g.cast(value, ir.DataType.INT64)
    return g.op("Mod", whole, g.ints(2 ** (8 * tensor.dtype.itemsize)))


def number_of(g: Graph, bits: ir.Value, type: TensorType) -> ir.Value:
    """The integers or float32 numbers of `type` with the given bits."""
    if type is TensorType.FLOAT32:
        return _floats_of_bits(g, bits)
    dtype = NUMPY_DTYPE[type]
    if dtype.kind == "i":
        half = g.ints(2 ** (8 * dtype.itemsize - 1))
        moved = g.op("Mod", g.op("Add", bits, half), g.op("Add", half, half))
        bits = g.op("Sub", moved, half)
    return g.cast(bits, dtype)


def _bits_of_floats(g: Graph, x: ir.Value) -> ir.Value:
    """Exponent and mantissa, in double, which holds every float32 times a power of two exactly."""
    is_nan, is_infinite = g.op("IsNaN", x), g.op("IsInf", x)
    special = g.op("Or", is_nan, is_infinite)
    size = g.op("Abs", g.op("Where", special, g.constant(1, np.float32), x))
    size = g.cast(size, ir.DataType.DOUBLE)
    log = g.op("Mul", g.op("Log", size), g.constant(1 / np.log(2)))
    bounds = (g.constant(bound, np.float64) for bound in (_LOWEST, _HIGHEST))
    exponent = g.cast(g.op("Clip", g.op("Floor", log), *bounds), ir.DataType.INT64)
    # The floor of a rounded logarithm may be off by one.
    power = _power(g, exponent, np.ldexp(1.0, np.arange(_LOWEST, _HIGHEST + 1)))
    above = g.op("GreaterOrEqual", size, g.op("Add", power, power))
    below = g.op("And", g.op("Less", size, power), g.op("Greater", exponent, g.ints(_LOWEST)))
    for wrong, name in ((above, "Add"), (below, "Sub")):
        exponent = g.op(name, exponent, g.cast(wrong, ir.DataType.INT64))
    steps = _power(g, exponent, np.ldexp(1.0, 23 - np.arange(_LOWEST, _HIGHEST + 1)))
    mantissa = g.cast(g.op("Mul", size, steps), ir.DataType.INT64)
    field = g.op("Add", exponent, g.ints(-_LOWEST))
    bits = g.op("Add", mantissa, g.op("Mul", field, g.ints(_MANTISSA)))
    bits = g.op("Where", is_infinite, g.ints(_INFINITY), bits)
    bits = g.op("Where", is_nan, g.ints(_NAN), bits)
    return g.op("Add", bits, _sign_bit(g, x))


def _sign_bit(g: Graph, x: ir.Value) -> ir.Value:
    """The sign bit of float32, also of -0, whose reciprocal is negative."""
    zero = g.constant(0, np.float32)
    negative = g.op("Or", g.op("Less", x, zero), g.op("Less", g.op("Reciprocal", x), zero))
    return g.op("Where", negative, g.ints(_SIGN), g.ints(0))


def _power(g: Graph, exponent: ir.Value, table: np.ndarray) -> ir.Value:
    return g.op("Gather", g.constant(table), g.op("Add", exponent, g.ints(-_LOWEST)))


def _floats_of_bits(g: Graph, bits: ir.Value) -> ir.Value:
    """(mantissa + leading bit) * 2 ** exponent, in double, which holds every float32."""
    field = g.op("Mod", g.op("Div", bits, g.ints(_MANTISSA)), g.ints(256))
    fraction = g.op("Mod", bits, g.ints(_MANTISSA))
    scales = np.ldexp(1.0, np.maximum(np.arange(256), 1) - 150)
    scales[255] = np.inf
    first = np.where(np.arange(256) > 0, _MANTISSA, 0)
    mantissa = g.op("Add", fraction, g.op("Gather", g.ints(first), field))
    mantissa = g.cast(mantissa, ir.DataType.DOUBLE)
    size = g.op("Mul", mantissa, g.op("Gather", g.constant(scales), field))
    is_nan = g.op("Greater", g.op("Mod", bits, g.ints(_SIGN)), g.ints(_INFINITY))
    size = g.op("Where", is_nan, g.constant(np.nan), size)
    negative = g.op("GreaterOrEqual", bits, g.ints(_SIGN))
    sign = g.op("Where", negative, g.constant(-1.0), g.constant(1.0))
    return g.cast(g.op("Mul", size, sign), ir.DataType.FLOAT)


def left_shift(g: Graph, x: ir.Value, amount: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """BitShift of unsigned bits; the amount is clipped as in `right_shift`."""
    wide = ir.DataType.UINT64 if dtype.itemsize == 8 else ir.DataType.UINT32
    amount = g.cast(_clipped(g, amount, dtype), wide)
    shifted = g.op("BitShift", g.cast(x, wide), amount, direction="LEFT")
    if dtype.kind == "i":
        shifted = g.cast(shifted, ir.DataType.INT64)
    return g.cast(shifted, dtype)


def _clipped(g: Graph, amount: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """An amount of INT64, from 0 to the number of bits less one; of unsigned 64 bits, those above
    the signed ones are the number of bits less one."""
    most = g.ints(8 * dtype.itemsize - 1)
    signed = g.cast(amount, ir.DataType.INT64)
    if dtype == np.uint64:
        signed = g.op("Where", g.op("Less", signed, g.ints(0)), most, signed)
    return g.op("Min", g.op("Max", signed, g.ints(0)), most)


def bits_set(g: Graph, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """How many bits of each integer are 1, byte by byte from a table."""
    wide = ir.DataType.UINT64 if dtype.itemsize == 8 else ir.DataType.UINT32
    counts = g.ints([number.bit_count() for number in range(256)])
    rest, total = g.cast(x, wide), None
    for _ in range(dtype.itemsize):
        byte = g.cast(g.op("BitwiseAnd", rest, g.constant(255, wide.numpy())), ir.DataType.INT64)
        found = g.op("Gather", counts, byte)
        total = found if total is None else g.op("Add", total, found)
        rest = g.op("BitShift", rest, g.constant(8, wide.numpy()), direction="RIGHT")
    assert total is not None
    return g.cast(total, ir.DataType.UINT8)


def right_shift(op: OperatorView[Any], g: Graph, x: ir.Value, amount: ir.Value) -> ir.Value:
    """An arithmetic right_shift as BitShift of unsigned bits.

    Negative numbers are inverted before and after it. The amount is clipped to the range from 0 to
    the number of bits less one.
    """
    leave_many_to_numpy(g, op.output.shape, "shifted numbers")
    dtype = op.output.dtype
    signed = dtype.kind == "i"
    wide, bits = ir.DataType.INT32 if signed else ir.DataType.UINT32, ir.DataType.UINT32
    if dtype.itemsize == 8:
        wide, bits = ir.DataType.INT64 if signed else ir.DataType.UINT64, ir.DataType.UINT64
    x, amount = (g.cast(value, wide) for value in (x, amount))
    bounds = (g.constant(bound, wide.numpy()) for bound in (0, 8 * dtype.itemsize - 1))
    amount = g.op("Clip", amount, *bounds)
    if not signed:
        shifted = g.op("BitShift", x, amount, direction="RIGHT")
        return g.cast(shifted, dtype)
    zero, ones = (g.constant(value, wide.numpy()) for value in (0, -1))
    sign = g.op("Where", g.op("Less", x, zero), ones, zero)
    magnitude = g.cast(g.op("BitwiseXor", x, sign), bits)
    amount = g.cast(amount, bits)
    shifted = g.op("BitShift", magnitude, amount, direction="RIGHT")
    whole = g.op("BitwiseXor", g.cast(shifted, wide), sign)
    return g.cast(whole, dtype)
