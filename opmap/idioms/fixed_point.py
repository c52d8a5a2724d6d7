"""The fixed-point arithmetic of TFLite's integer kernels on floats that hold integers exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

# Below this a double holds the product with a 31-bit multiplier exactly: 22 + 31 = 53 bits.
_NARROW = 2**22
# Up to this the multiplier decides, see `_may_round_wrongly`, if the results have few bits.
_WIDE, _BITS_LOOKED_AT = 2**31, 17
# `may_tie` tries the edges of so many multipliers.
_MULTIPLIERS_LOOKED_AT = 4
# Up to this shift a double holds the scaled product, and a half added to it.
_LONGEST_SHIFT = 15
# Integers that float64 holds, with a bit to spare.
_HELD = 2.0**52
# A factor that moves halves away from zero before Round, and moves no other number past a half.
TIE_BREAK = 1 + 2.0**-34


def centred_codes(g: Graph, value: ir.Value, tensor: TensorView, step: float = 1.0) -> ir.Value:
    """The carried codes of `tensor` for codes less their zero point, times `step`, in float32."""
    type = carried_type(tensor)
    moved = 0 if type is tensor.type else 128
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    zero = g.constant(zero_point + moved, NUMPY_DTYPE[type])
    return g.op("QuantizeLinear", value, g.constant(step, np.float32), zero)


def rescaled(
    g: Graph,
    value: ir.Value,
    multiplier: npt.ArrayLike,
    largest: float,
    *,
    bits: int = 32,
    zeros: int = 0,
    upwards: bool = False,
) -> ir.Value:
    """`value * multiplier` with both roundings of TFLite.

    The first rounding takes the high half of the doubled product, halves upwards. The second one
    is a shift to the right, halves away from zero.

    Args:
        value: integers in float64.
        multiplier: one real number, or an array that broadcasts.
        largest: the largest magnitude of `value`.
        bits: the results are clipped to so many bits later.
        zeros: TFLite's value is `value` shifted to the left by so many bits.
        upwards: the second rounding takes halves upwards too.
    """
    q31, shift = quantize_multiplier(multiplier)
    return rescaled_by(g, value, q31, shift, largest, bits=bits, zeros=zeros, upwards=upwards)


def rescaled_by(
    g: Graph,
    value: ir.Value,
    q31: Array,
    shift: Array,
    largest: float,
    *,
    bits: int = 32,
    zeros: int = 0,
    upwards: bool = False,
) -> ir.Value:
    """`rescaled` by the multiplier q31 * 2**(shift - 31)."""
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    factor = q31 * 2.0 ** (left + zeros - 31)
    if not _multiplies_in_double(q31, shift, largest, bits, upwards=upwards):
        high = _high_half_in_parts(g, value, q31.astype(np.int64) << (left + zeros), largest)
        return _shifted(g, high, right, upwards=upwards)
    if np.all(factor == np.rint(factor)):
        return _shifted(g, g.op("Mul", value, g.constant(factor)), right, upwards=upwards)
    narrow = _is_narrow(shift, largest)
    ties = may_tie(q31, shift, largest * 2.0**zeros, bits)
    if right.max(initial=0) > _LONGEST_SHIFT or not (narrow or not ties):
        high = rounded_upwards(g, g.op("Mul", value, g.constant(factor)))
        return _shifted(g, high, right, upwards=upwards)
    if upwards and right.any():
        scaled = g.op("Mul", value, g.constant(factor * 2.0**-right))
        halves = np.where(right > 0, 0.5 + 2.0 ** -(right + 1), 0.5)
        return g.op("Floor", g.op("Add", scaled, g.constant(halves)))
    if len(set(np.ravel(right).tolist())) == 1 and not ties:
        scaled = g.op("Mul", value, g.constant(factor * 2.0**-right))
        return rounded_twice(g, scaled, int(right.reshape(-1)[0]))
    high = rounded_upwards(g, g.op("Mul", value, g.constant(factor)))
    return shifted_right(g, high, right)


def refuse_wraps(multiplier: npt.ArrayLike, largest: npt.ArrayLike) -> None:
    """Refuses numbers that TFLite holds in 32 bits, before or after its shift to the left, and that
    may wrap around there.

    Args:
        multiplier: as in `rescaled`.
        largest: the largest magnitudes, which broadcast with it.

    Raises:
        Untranslatable: the largest one needs more than 32 bits.
    """
    left = np.maximum(quantize_multiplier(multiplier)[1], 0)
    if np.any(np.asarray(largest, np.float64) * 2.0**left >= 2**31):
        raise Untranslatable("numbers that wrap around in TFLite")


def _shifted(g: Graph, high: ir.Value, right: Array, *, upwards: bool) -> ir.Value:
    """The second rounding."""
    if upwards and right.any():
        return rounded_upwards(g, g.op("Mul", high, g.constant(2.0**-right)))
    return shifted_right(g, high, right)


def rounded_twice(g: Graph, scaled: ir.Value, right: int) -> ir.Value:
    """Both roundings of doubles x, given as `scaled` = x / 2**right, where no half occurs.

    They are h = floor(x + 1/2), and then h / 2**right, halves away from zero. For h >= 0 the second
    is floor((h + 2**(right - 1)) / 2**right), in which h may be x + 1/2 without its floor. For h
    below 0 it is floor((h + 2**(right - 1) - 1) / 2**right), so that x is moved by 1/2 the other
    way. Both together are the nearest integer to (x + sign(x) / 2) / 2**right. Numbers x within
    1/2 of 0 become 0, and may be moved by less. A shift of 0 is no second rounding.

    Shrink would move them in one node, but ONNX Runtime computes it in float32.
    """
    if right:
        half = 2.0 ** -(right + 1)
        bounds = (g.constant(bound, np.float64) for bound in (-half, half))
        scaled = g.op("Add", scaled, g.op("Clip", scaled, *bounds))
    return g.op("Round", scaled)


def may_tie(q31: Array, shift: Array, largest: float, bits: int) -> bool:
    """Whether `rounded_twice` may meet a half.

    A half is a product p = value * q31 that is an edge, see `_may_round_wrongly`, and so an odd
    multiple of 2**30. That needs as many factors of 2 in `value` as q31 lacks.

    Args:
        largest: the largest magnitude of a value.
        bits: the results are clipped to so many bits later.
    """
    multipliers = np.ravel(q31).astype(np.int64)
    powers = float((multipliers & -multipliers).max(initial=0))
    if largest * float(np.max(2.0 ** np.maximum(shift, 0), initial=1)) * powers < 2.0**30:
        return False
    pairs = _pairs(multipliers, shift)
    if bits > _BITS_LOOKED_AT or len(pairs) > _MULTIPLIERS_LOOKED_AT:
        return True
    if any(multiplier == 0 or exponent > 0 for multiplier, exponent in pairs):
        return True
    return any(_edges(exponent, bits).is_near(multiplier, 0, 0) for multiplier, exponent in pairs)


def _pairs(q31: Array, shift: Array) -> set[tuple[int, int]]:
    """Multipliers with their shifts, each once."""
    return set(zip(np.ravel(q31).tolist(), np.ravel(shift).tolist(), strict=True))


def _edges(shift: int, bits: int) -> Progression:
    """The products at which the result goes from k to k + 1, of the results from 0 up that have so
    many bits; for a shift of at most 0."""
    count = min(2**bits, 2 ** max(32 + shift, 0))
    return Progression(((1 << -shift) - (shift < 0)) << 30, 1 << (31 - shift), count)


def shifted_right(g: Graph, value: ir.Value, by: Array) -> ir.Value:
    """`value / 2**by` of integers in float64, halves away from zero."""
    if not by.any():
        return value
    return g.op("Round", g.op("Mul", value, g.constant(2.0**-by * TIE_BREAK)))


def first_factor(multiplier: npt.ArrayLike) -> tuple[Array, Array]:
    """What `rescaled` multiplies by before the first rounding, and the shift before the second."""
    q31, shift = quantize_multiplier(multiplier)
    return q31 * 2.0 ** (np.maximum(shift, 0) - 31), np.maximum(-shift, 0)


def is_exact_in_double(multiplier: npt.ArrayLike, largest: float) -> bool:
    """Whether a double holds the product with a multiplier exactly, and each part of it."""
    return _is_narrow(quantize_multiplier(multiplier)[1], largest)


def multiplies_in_double(multiplier: npt.ArrayLike, largest: float, *, bits: int) -> bool:
    """Whether `rescaled` multiplies in float64, whose roundings then change no result."""
    return _multiplies_in_double(*quantize_multiplier(multiplier), largest, bits, upwards=False)


def _multiplies_in_double(
    q31: Array, shift: Array, largest: float, bits: int, *, upwards: bool
) -> bool:
    if _is_narrow(shift, largest):
        return True
    return not (upwards or largest > _WIDE or _may_round_wrongly(q31, shift, bits))


def _is_narrow(shift: Array, largest: float) -> bool:
    return bool(largest * np.max(2.0 ** np.maximum(shift, 0)) < _NARROW)


def _may_round_wrongly(q31: Array, shift: Array, bits: int) -> bool:
    """Whether rounding a product to a double, 53 of its up to 62 bits, can change a result.

    Take p = value * q31 and right = -shift. The first rounding gives h = floor((p + 2**30) /
    2**31), the second one the nearest integer to h / 2**right. For h >= 0 the result goes from k
    to k + 1 where h reaches (2 * k + 1) * 2**(right - 1), that is where p reaches
    (2 * k + 1) * 2**(right + 30) - 2**30 = ((2 * k + 1) * 2**right - 1) * 2**30: an edge. For
    h < 0 the edges are mirrored.

    Below 2**62 the nearest double is within 2**8 of p. The roundings of the product, and of its
    sum with a half, together stay within 2**10. So the result is right unless some multiple of
    q31 is within 2**10 of an edge, but not on it. A product on an edge is a multiple of 2**30,
    which a double holds exactly.
    There are at most 2**bits edges to try, since larger results are clipped.
    """
    pairs = _pairs(q31, shift)
    if bits > _BITS_LOOKED_AT or any(m == 0 or exponent >= 0 for m, exponent in pairs):
        return True
    near = 2**10
    return any(
        edges.is_near(multiplier, 1, min(near, multiplier - 1))
        or edges.is_near(multiplier, max(multiplier - near, 1), multiplier - 1)
        for multiplier, edges in ((m, _edges(exponent, bits)) for m, exponent in pairs)
    )


def rounds_alike(multiplier: npt.ArrayLike, error: float, *, bits: int) -> bool:
    """Whether `rescaled` gives the same for products with a multiplier that are off.

    Args:
        multiplier: one real number.
        error: how far a product with the 31-bit multiplier is off at most.
        bits: the results are clipped to so many bits later.
    """
    q31, shift = quantize_multiplier(multiplier)
    if bits > _BITS_LOOKED_AT or shift >= 0 or q31 == 0:
        return False
    near, edges, modulus = math.floor(error), _edges(int(shift), bits), int(q31)
    return not (edges.is_near(modulus, 0, near) or edges.is_near(modulus, modulus - near, modulus))


def rounded_upwards(g: Graph, value: ir.Value) -> ir.Value:
    """The nearest integers to doubles, halves upwards."""
    return g.op("Floor", g.op("Add", value, g.constant(0.5, np.float64)))


def clip(g: Graph, value: ir.Value, bounds: tuple[float, float]) -> ir.Value:
    """Clip doubles to `bounds`, both included."""
    return g.op("Clip", value, *(g.constant(bound, np.float64) for bound in bounds))


def _high_half_in_parts(g: Graph, value: ir.Value, factor: Array, largest: float) -> ir.Value:
    """`high_half` of integers in float64. Unless the products of the factor's upper bits, all but
    16, are too large for float64, it stays there, where dividing is faster.

    value * factor + 2**30 is 2**16 * (value * upper + 2**14) + value * lower. Of the last product
    only what it carries counts: floor(value * lower / 2**16).
    """
    upper, lower = factor >> 16, factor & 0xFFFF
    if largest * float(np.max(upper, initial=0)) >= _HELD:
        whole = high_half(g, g.cast(value, ir.DataType.INT64), g.constant(factor))
        return g.cast(whole, ir.DataType.DOUBLE)
    carried = g.op("Floor", g.op("Mul", value, g.constant(lower * 2.0**-16)))
    scaled = g.op("Mul", value, g.constant(upper * 2.0**-15))
    carried = g.op("Mul", carried, g.constant(2.0**-15, np.float64))
    return rounded_upwards(g, g.op("Add", scaled, carried))


def high_half(g: Graph, value: ir.Value, factor: ir.Value) -> ir.Value:
    """round(value * factor / 2**31) of 64-bit integers, halves upwards.

    Div rounds towards zero, so the product is made positive before it: 2**31 is added to the
    quotient and subtracted after it.
    """
    moved = 2**31
    product = g.op("Mul", value, factor)
    product = g.op("Add", product, g.ints(moved * 2**31 + 2**30))
    quotient = g.op("Div", product, g.ints(2**31))
    return g.op("Sub", quotient, g.ints(moved))


def reach(matrix: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """The largest magnitudes [rows] of products of numbers from -1 to 1 with weights
    [columns, rows]; the lowest code of a type has none in this type."""
    return np.asarray(np.abs(matrix, dtype=np.int64).sum(axis=0))


def exact_product(g: Graph, value: ir.Value, matrix: npt.NDArray[Any], largest: float) -> ir.Value:
    """The exact product of integers in float32 and integers [columns, rows], in float64.

    Args:
        value: [..., columns].
        largest: the largest magnitude of `value`.
    """
    if largest * reach(matrix).max(initial=0) < 2**24:
        product = g.op("MatMul", value, g.constants.add(matrix.astype(np.float32), "weights"))
        return g.cast(product, ir.DataType.DOUBLE)
    wide = g.cast(value, ir.DataType.DOUBLE)
    return g.op("MatMul", wide, g.constants.add(matrix.astype(np.float64), "weights"))


# Where an arithmetic progression stands beside the multiples of a number, in as many steps as
# Euclid's algorithm takes.


@record
class Progression:
    """The integers ``start + k * step`` of k from 0 up to `terms`, which is left out."""

    start: int
    step: int
    terms: int

    def is_near(self, modulus: int, low: int, high: int) -> bool:
        """Whether one of them is `low` to `high` above a multiple of `modulus`; none where `low` is
        above `high`."""
        if low > high:
            return False
        if high - low + 1 >= modulus:
            return self.terms > 0
        first, last = (low - self.start) % modulus, (high - self.start) % modulus
        if first > last:  # 0 is between
            return self.terms > 0
        found = _first(self.step % modulus, modulus, first, last)
        return found is not None and found < self.terms


def _first(step: int, modulus: int, low: int, high: int) -> int | None:
    """The first k from 0 up of which ``k * step % modulus`` is from `low` to `high`; None for none.

    Args:
        step: from 0 to below `modulus`, as `low` and `high`, which is not below `low`.
    """
    if low == 0:
        return 0
    if step == 0:
        return None
    k = -(-low // step)
    if k * step <= high:
        return k
    # No multiple of the step is from `low` to `high`. After m rounds one is from there, less
    # m * modulus, so that m * modulus is as far below a multiple of the step.
    rounds = _first(modulus % step, step, -high % step, -low % step)
    return None if rounds is None else -(-(low + rounds * modulus) // step)
