"""The bits of numbers as integers from 0, in int64: what BITCAST is made of, up to 32 bits."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import TensorType, TensorView, Untranslatable
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
    """Refuses what has more than 32 bits, and floats where a kernel keeps every NaN's bits."""
    for type in types:
        floats = type is TensorType.FLOAT32 and not g.target.fallback
        if not (type in _INTEGERS or floats):
            raise Untranslatable(f"the bits of {type.name}")


def bits_of(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """The bits of integers, or of float32."""
    if tensor.type is TensorType.FLOAT32:
        return _bits_of_floats(g, value)
    whole = g.op("Cast", value, to=ir.DataType.INT64)
    return g.op("Mod", whole, _int64(g, 2 ** (8 * tensor.dtype.itemsize)))


def number_of(g: Graph, bits: ir.Value, type: TensorType) -> ir.Value:
    """The integers, or float32 numbers, that have these bits."""
    if type is TensorType.FLOAT32:
        return _floats_of_bits(g, bits)
    dtype = NUMPY_DTYPE[type]
    if dtype.kind == "i":
        half = _int64(g, 2 ** (8 * dtype.itemsize - 1))
        moved = g.op("Mod", g.op("Add", bits, half), g.op("Add", half, half))
        bits = g.op("Sub", moved, half)
    return g.op("Cast", bits, to=ir.DataType.from_numpy(dtype))


def _bits_of_floats(g: Graph, x: ir.Value) -> ir.Value:
    """Exponent and mantissa by way of double, where every float32 is a whole number of steps."""
    is_nan, is_infinite = g.op("IsNaN", x), g.op("IsInf", x)
    special = g.op("Or", is_nan, is_infinite)
    size = g.op("Abs", g.op("Where", special, g.constant(1, np.float32), x))
    size = g.op("Cast", size, to=ir.DataType.DOUBLE)
    log = g.op("Mul", g.op("Log", size), g.constant(1 / np.log(2)))
    bounds = (g.constant(bound, np.float64) for bound in (_LOWEST, _HIGHEST))
    exponent = g.op("Cast", g.op("Clip", g.op("Floor", log), *bounds), to=ir.DataType.INT64)
    # A logarithm may be just on the wrong side of a whole number.
    power = _power(g, exponent, np.ldexp(1.0, np.arange(_LOWEST, _HIGHEST + 1)))
    above = g.op("GreaterOrEqual", size, g.op("Add", power, power))
    below = g.op("And", g.op("Less", size, power), g.op("Greater", exponent, _int64(g, _LOWEST)))
    for wrong, name in ((above, "Add"), (below, "Sub")):
        exponent = g.op(name, exponent, g.op("Cast", wrong, to=ir.DataType.INT64))
    steps = _power(g, exponent, np.ldexp(1.0, 23 - np.arange(_LOWEST, _HIGHEST + 1)))
    mantissa = g.op("Cast", g.op("Mul", size, steps), to=ir.DataType.INT64)
    field = g.op("Add", exponent, _int64(g, -_LOWEST))
    bits = g.op("Add", mantissa, g.op("Mul", field, _int64(g, _MANTISSA)))
    bits = g.op("Where", is_infinite, _int64(g, _INFINITY), bits)
    bits = g.op("Where", is_nan, _int64(g, _NAN), bits)
    zero = g.constant(0, np.float32)
    negative = g.op("Or", g.op("Less", x, zero), g.op("Less", g.op("Reciprocal", x), zero))
    sign = g.op("Where", negative, _int64(g, _SIGN), _int64(g, 0))
    return g.op("Add", bits, sign)


def _power(g: Graph, exponent: ir.Value, table: np.ndarray) -> ir.Value:
    return g.op("Gather", g.constant(table), g.op("Add", exponent, _int64(g, -_LOWEST)))


def _floats_of_bits(g: Graph, bits: ir.Value) -> ir.Value:
    """(mantissa + its first bit) * 2 ** exponent in double, which holds every float32."""
    field = g.op("Mod", g.op("Div", bits, _int64(g, _MANTISSA)), _int64(g, 256))
    fraction = g.op("Mod", bits, _int64(g, _MANTISSA))
    scales = np.ldexp(1.0, np.maximum(np.arange(256), 1) - 150)
    scales[255] = np.inf
    first = np.where(np.arange(256) > 0, _MANTISSA, 0)
    mantissa = g.op("Add", fraction, g.op("Gather", _int64(g, first), field))
    mantissa = g.op("Cast", mantissa, to=ir.DataType.DOUBLE)
    size = g.op("Mul", mantissa, g.op("Gather", g.constant(scales), field))
    is_nan = g.op("Greater", g.op("Mod", bits, _int64(g, _SIGN)), _int64(g, _INFINITY))
    size = g.op("Where", is_nan, g.constant(np.nan), size)
    negative = g.op("GreaterOrEqual", bits, _int64(g, _SIGN))
    sign = g.op("Where", negative, g.constant(-1.0), g.constant(1.0))
    return g.op("Cast", g.op("Mul", size, sign), to=ir.DataType.FLOAT)


def _int64(g: Graph, value: int | np.ndarray) -> ir.Value:
    return g.constant(value, np.int64)
