"""The fixed-point arithmetic of TFLite's integer kernels on floats that hold integers exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.constants import carried_type
from tflite_ort.schema import TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

# A double holds the product with a 31-bit multiplier exactly up to here.
_NARROW = 2**22
# To here it takes a look at the multiplier to know; where results have more bits none is taken.
_WIDE, _BITS_LOOKED_AT = 2**31, 17
# Moves halves away from zero before they are rounded to even, and nothing else over a half.
TIE_BREAK = 1 + 2.0**-34


def read_centred(g: Graph, tensor: TensorView) -> ir.Value:
    """The codes of `tensor` less their zero point, as floats."""
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    unit = tensor.quantization.scalar_scale
    return g.read_units(tensor, unit, layout=Layout.LAST, rank=tensor.rank)


def centred_codes(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """Integers less the zero point of `tensor`, as floats, to its carried codes."""
    type = carried_type(tensor)
    moved = 0 if type is tensor.type else 128
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    one, zero = g.constant(1, np.float32), g.constant(zero_point + moved, NUMPY_DTYPE[type])
    return g.op("QuantizeLinear", value, one, zero)


def rescaled(
    g: Graph,
    value: ir.Value,
    multiplier: npt.ArrayLike,
    largest: float,
    *,
    bits: int = 32,
    upwards: bool = False,
) -> ir.Value:
    """`value * multiplier` rounded twice, as TFLite rounds it: the high half of a doubled product
    with halves upwards, then a shift to the right with halves away from zero.

    Args:
        value: integers as doubles, of at most this magnitude.
        multiplier: one, or an array that broadcasts.
        bits: to how many the result will be cut.
        upwards: halves go upwards the second time too.
    """
    q31, shift = quantize_multiplier(multiplier)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    factor = q31 * 2.0 ** (left - 31)
    is_wide = largest * np.max(2.0**left) >= _NARROW
    if is_wide and (upwards or largest > _WIDE or _may_round_wrongly(q31, shift, bits)):
        whole = g.op("Cast", value, to=ir.DataType.INT64)
        whole = high_half(g, whole, g.constant(q31.astype(np.int64) << left))
        high = g.op("Cast", whole, to=ir.DataType.DOUBLE)
    else:
        scaled = g.op("Mul", value, g.constant(factor))
        high = rounded_upwards(g, scaled)
    if not right.any():
        return high
    if upwards:
        return rounded_upwards(g, g.op("Mul", high, g.constant(2.0**-right)))
    return g.op("Round", g.op("Mul", high, g.constant(2.0**-right * TIE_BREAK)))


def _may_round_wrongly(q31: Array, shift: Array, bits: int) -> bool:
    """Whether a double, which has 53 bits of a product's 62, could take it over the edge of a
    result: the results k and k + 1 meet where the product is ((2 * k + 1) * 2**right - 1) * 2**30.

    It could if a multiple of q31 is nearer to an edge than two roundings reach, and not on it.
    """
    pairs = np.unique(np.stack([np.ravel(q31), np.ravel(shift)]), axis=1).T.astype(np.int64)
    if bits > _BITS_LOOKED_AT or np.any(pairs[:, 1] >= 0) or np.any(pairs[:, 0] == 0):
        return True
    for multiplier, exponent in pairs:
        count = min(2**bits, 2 ** max(32 + int(exponent), 0))
        edges = (((2 * np.arange(count) + 1) << -exponent) - 1) << 30
        away = (edges + multiplier // 2) % multiplier - multiplier // 2
        if np.any((away != 0) & (np.abs(away) <= 2**10)):
            return True
    return False


def rounded_upwards(g: Graph, value: ir.Value) -> ir.Value:
    """The nearest integer of a double, halves upwards."""
    return g.op("Floor", g.op("Add", value, g.constant(0.5, np.float64)))


def high_half(g: Graph, value: ir.Value, factor: ir.Value) -> ir.Value:
    """round(value * factor / 2**31) of 64-bit integers, halves upwards; Div rounds towards zero,
    so that the product is moved up to where it is positive."""
    moved = 2**31
    product = g.op("Mul", value, factor)
    product = g.op("Add", product, g.constant(moved * 2**31 + 2**30, np.int64))
    quotient = g.op("Div", product, g.constant(2**31, np.int64))
    return g.op("Sub", quotient, g.constant(moved, np.int64))


def exact_product(g: Graph, value: ir.Value, matrix: npt.NDArray[Any], largest: float) -> ir.Value:
    """Integers in float32 times integers [columns, rows], as doubles.

    Args:
        largest: the magnitude of the elements of `value`.
    """
    fits = largest * np.abs(matrix).sum(axis=0, dtype=np.int64).max(initial=0) < 2**24
    if fits:
        product = g.op("MatMul", value, g.constants.add(matrix.astype(np.float32), "weights"))
        return g.op("Cast", product, to=ir.DataType.DOUBLE)
    wide = g.op("Cast", value, to=ir.DataType.DOUBLE)
    return g.op("MatMul", wide, g.constants.add(matrix.astype(np.float64), "weights"))
