"""Sums of products of codes, exact, with the rounding of TFLite's integer kernels.

A float32 holds all integers up to 2**24, and two products of 16-bit codes can be more. So codes are
written in digits, of eight bits or fewer: such that every sum of products with a digit stays below
2**24. Float32 kernels are then exact, in whatever order they add. The digits lie behind each other
along the first axis, so that one node multiplies them all; float64 puts the sums together. A code
of 8 bits is one digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.forms import carried_shift, carried_type
from tflite_ort.opmap.idioms.fixed_point import rescaled, rounded_upwards
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.fixed_point import narrow_multiplier, quantize_multiplier
from tflite_ort.schema.values.semantics import quantized_activation_bounds
from tflite_ort.schema.values.sizes import is_known

Array = npt.NDArray[Any]
# Adds the node that multiplies a value and weights.
Layer = Callable[[ir.Value, ir.Value], ir.Value]
# Rounds sums in float64, of which the largest magnitude is known, times a multiplier.
Rounding = Callable[[Graph, ir.Value, Array, float], ir.Value]

_LARGEST_CODE = 2.0**15
# Digits and their base: together they make up 16 bits and a sign, or a code less its zero point.
_BASES = {TensorType.INT16: ((2, 256), (3, 64), (4, 16)), TensorType.INT8: ((1, 512),)}
# Sums of digits that a float32 holds.
_LARGEST_SUM = 2.0**24
# Sums of codes that a float64 holds times a multiplier of 16 bits.
_LARGEST_TOTAL = 2.0**37


@record
class ExactSums:
    """The sums of products of an operator with inputs "input", "filter" and "bias".

    Args:
        weights: integers, the weights less their zero points, with the output channels first.
        digits, base: how the codes of the input are written.
        bias: of each output channel; None for 0.
        largest: what no magnitude of a sum, bias included, passes.
        multiplier: float64 [1], or one for each output channel.
        carried: what is added to the rounded sums of each output channel, which then wrap at 32
            bits; None where no sum does.
        rounding: how the kernel rounds the sums.
    """

    op: OperatorView[Any]
    weights: Array
    digits: int
    base: int
    bias: Array | None
    largest: float
    multiplier: Array
    carried: Array | None
    rounding: Rounding

    @classmethod
    def of(
        cls,
        op: OperatorView[Any],
        g: Graph,
        permutation: Sequence[int],
        product: type[np.floating[Any]] = np.float64,
        *,
        rounding: Rounding,
    ) -> ExactSums | None:
        """None unless the target wants exact sums, weights and bias are constants, and floats hold
        all the numbers, or a sum counts so little that floats are near enough.

        Args:
            permutation: of the filter, after which its output channels are the first axis.
            product: in what the kernel multiplies the two scales.
        """
        input, filter, bias = op["input"], op["filter"], op.get("bias")
        if not (g.target.exact and input.type is op.output.type and input.type in _BASES):
            return None
        if not (_is_summed(input) and _is_summed(op.output) and filter.is_quantized):
            return None
        if filter.data is None or (bias is not None and bias.data is None):
            return None
        weights = np.transpose(_centred(filter), permutation)
        reach = np.abs(weights).sum(axis=tuple(range(1, weights.ndim)))
        multiplier = _multiplier(input, filter, op.output, product)
        bases = _BASES[input.type]
        fits = [row for row in bases if row[1] / 2 * reach.max(initial=0) < _LARGEST_SUM]
        added, carried = None if bias is None else bias.data, None
        sums = reach * (_LARGEST_CODE if input.type is TensorType.INT16 else bases[0][1] / 2)
        if not _held(sums + _magnitudes(added), multiplier):
            if rounding is rounded_wide:
                added, carried = _parts_of_bias(added, len(weights), multiplier)
            elif rounding is rounded_once and added is not None:
                most = np.minimum(sums + 2.0**17 / multiplier, 2.0**62)
                added = np.clip(added, -most, most)  # beyond, all results are clipped
        largest = sums + _magnitudes(added)
        if not fits or not _held(largest, multiplier):
            if multiplier.max(initial=0) >= 1:  # the last bits of floats would be codes
                raise Untranslatable("sums of products in larger units than the result's")
            return None
        reached = float(largest.max(initial=0))
        return cls(op, weights, *fits[0], added, reached, multiplier, carried, rounding)

    def codes(self, g: Graph, steps: ir.Value, layer: Layer, channels: tuple[int, ...]) -> ir.Value:
        """The codes of the output.

        Args:
            steps: codes of the input, in float32.
            layer: the node that multiplies `steps` and `weights`.
            channels: the shape in which one number for each output channel broadcasts.
        """
        stacked = steps if self.digits == 1 else g.op("Concat", *self._split(g, steps), axis=0)
        made = layer(stacked, self.held_weights(g, np.float32))
        total = self._joined(g, g.cast(made, ir.DataType.DOUBLE), len(channels))
        return self.rounded(g, total, channels)

    def held_weights(
        self, g: Graph, dtype: type[np.floating[Any]], *, matrix: bool = False
    ) -> ir.Value:
        """The weights as floats of this type; `matrix`: a row for each output channel."""
        filter = self.op["filter"]
        assert filter.quantization is not None
        zero_point = filter.quantization.zero_point.tobytes()
        layout = "exact sums", self.op.op, dtype.__name__, matrix, zero_point
        weights = self.weights.reshape(len(self.weights), -1) if matrix else self.weights
        make = partial(weights.astype, dtype)
        return g.constants.laid(filter.constant, layout, make, filter.name)

    def rounded(self, g: Graph, total: ir.Value, channels: tuple[int, ...]) -> ir.Value:
        """The codes of the output, for the sums of products in float64.

        Args:
            channels: the shape in which one number for each output channel broadcasts.
        """
        if self.bias is not None:
            added = self.bias.astype(np.float64).reshape(channels)
            total = g.op("Add", total, g.constant(added))
        along = channels if self.multiplier.size > 1 else (1,)
        rounded = self.rounding(g, total, self.multiplier.reshape(along), self.largest)
        if self.carried is not None:
            rounded = _wrapped(g, g.op("Add", rounded, g.constant(self.carried.reshape(channels))))
        return clipped_codes(g, rounded, self.op.output, self.op.options.fused_activation_function)

    def _split(self, g: Graph, steps: ir.Value) -> list[ir.Value]:
        """The digits of codes, from -base / 2 to base / 2, the highest first."""
        lower: list[ir.Value] = []
        base, inverse = (g.constant(x, np.float32) for x in (self.base, 1 / self.base))
        half = g.constant(0.5, np.float32)
        for _ in range(self.digits - 1):
            higher = g.op("Floor", g.op("Add", g.op("Mul", steps, inverse), half))
            lower.insert(0, g.op("Sub", steps, g.op("Mul", higher, base)))
            steps = higher
        return [steps, *lower]

    def _joined(self, g: Graph, sums: ir.Value, axes: int) -> ir.Value:
        """The sums of all digits, which lie behind each other along the first axis.

        Args:
            axes: at most as many as the sums have; see `lengthen_runs`.
        """
        if self.digits == 1:
            return sums
        count, base = self.digits, g.constant(np.full((1,) * axes, float(self.base)))
        if is_known(*self.op["input"].shape) and 0 not in self.op["input"].shape:
            parts = g.op_multi("Split", sums, outputs=count, axis=0, num_outputs=count)
        else:  # without lengths ONNX Runtime fails on none
            rows = g.op("Div", g.op("Shape", sums, start=0, end=1), g.ints([count]))
            lengths = g.op("Concat", *(rows for _ in range(count)), axis=0)
            parts = g.op_multi("Split", sums, lengths, outputs=count, axis=0)
        total = parts[0]
        for part in parts[1:]:
            total = g.op("Add", g.op("Mul", total, base), part)
        return total


@record
class ExactProduct:
    """The matrix product of two computed factors of an operator, without bias and activation.

    Args:
        largest: what no magnitude of a sum passes.
        multiplier: float64 [1].
    """

    output: TensorView
    largest: float
    multiplier: Array

    @classmethod
    def of(
        cls, g: Graph, left: TensorView, right: TensorView, output: TensorView, depth: int
    ) -> ExactProduct | None:
        """None unless the target wants it exact, the output and a factor are 16-bit codes, the
        other factor has one scale, and floats hold all the numbers.

        Args:
            depth: the number of products in a sum.

        Raises:
            Untranslatable: results may wrap, and numpy can have them as TFLite has.
        """
        if not g.target.exact or not (left.type is output.type is TensorType.INT16):
            return None
        found = right.quantization
        if not (is_centred(left) and is_centred(output)) or found is None or found.per_channel:
            return None
        multiplier = _multiplier(left, right, output, np.float32)
        largest = _LARGEST_CODE * 2.0**16 * depth
        if g.target.fallback and largest * multiplier[0] >= 2.0**31:
            raise Untranslatable("sums that TFLite wraps at 32 bits")
        return cls(output, largest, multiplier) if _held(largest, multiplier) else None

    def codes(self, g: Graph, left: ir.Value, right: ir.Value) -> ir.Value:
        """The int16 codes of the output for factors that are codes less their zero points."""
        product = g.op("MatMul", *(g.cast(codes, ir.DataType.DOUBLE) for codes in (left, right)))
        rounded = rounded_wide(g, product, self.multiplier, self.largest)
        return clipped_codes(g, rounded, self.output, ActivationFunctionType.NONE)


def _held(largest: Array | float, multiplier: Array) -> bool:
    """Whether float64 holds the products of sums and 16 bits of the multiplier, or at least those
    that are not clipped to 16 bits afterwards, and TFLite's results of 32 bits do not wrap."""
    _, shift = quantize_multiplier(multiplier)
    most = np.max(largest, initial=0)
    held = most < _LARGEST_TOTAL or (most < 2.0**53 and int(shift.min()) >= -21)
    return bool(held and np.all(largest * multiplier < 2.0**31))


def _magnitudes(bias: Array | None) -> Array:
    return np.zeros(1) if bias is None else np.abs(bias.astype(np.float64).reshape(-1))


def _parts_of_bias(bias: Array | None, channels: int, multiplier: Array) -> tuple[Array, Array]:
    """A bias for sums in float64, and what is to be added after rounding, for `channels`.

    Of `bias` = low + high * 2**n, where `narrow_multiplier` shifts by n, the part high * 2**n times
    the multiplier is whole. TFLite's results wrap at 32 bits, so high * q15 is taken modulo 2**32.
    """
    codes = np.zeros(channels, np.int64) if bias is None else bias.reshape(-1)
    pairs = (
        np.broadcast_to(e, channels) for e in narrow_multiplier(*quantize_multiplier(multiplier))
    )
    low, carried = [], []
    for code, q15, right in zip(codes.tolist(), *(each.tolist() for each in pairs), strict=True):
        high = (code + (1 << max(right - 1, 0))) >> max(right, 0)
        low.append(code - (high << max(right, 0)))
        carried.append((high * q15 + 2**31) % 2**32 - 2**31)
    return np.array(low, np.int64), np.array(carried, np.float64)


def _wrapped(g: Graph, value: ir.Value) -> ir.Value:
    """Whole numbers in float64 wrapped to 32 bits."""
    span, half = g.constant(2.0**32, np.float64), g.constant(0.5, np.float64)
    turns = g.op("Floor", g.op("Add", g.op("Div", value, span), half))
    return g.op("Sub", value, g.op("Mul", turns, span))


def _is_summed(tensor: TensorView) -> bool:
    """Whether TFLite's kernels take the codes of a tensor."""
    found = tensor.quantization
    if tensor.type is TensorType.INT16:
        return is_centred(tensor)
    return found is not None and not found.per_channel


def is_centred(tensor: TensorView) -> bool:
    """Whether the tensor has one scale and no zero point: TFLite's 16-bit kernels take no other."""
    found = tensor.quantization
    return found is not None and not found.per_channel and found.scalar_zero_point == 0


def _centred(filter: TensorView) -> Array:
    """The codes of constant weights less their zero points."""
    found, data = filter.quantization, filter.data
    assert found is not None and data is not None
    shape = [1] * filter.rank
    if found.per_channel:
        shape[found.axis] = -1
    centred: Array = data.astype(np.int64) - found.zero_point.reshape(shape)
    return centred


def _multiplier(
    input: TensorView,
    filter: TensorView,
    output: TensorView,
    dtype: type[np.floating[Any]] = np.float64,
) -> Array:
    """Input scale times filter scale, a product in `dtype`, over output scale, in float64."""
    assert input.quantization and filter.quantization and output.quantization
    product = np.multiply(input.quantization.scale, filter.quantization.scale, dtype=dtype)
    return np.asarray(product.astype(np.float64) / output.quantization.scale.astype(np.float64))


def clipped_codes(
    g: Graph, value: ir.Value, output: TensorView, activation: ActivationFunctionType
) -> ir.Value:
    """Whole numbers in float64, counted from the zero point, as codes within the range of the type
    and the activation."""
    found = output.quantization
    assert found is not None
    zero, unit = found.scalar_zero_point, found.scalar_scale
    low, high = quantized_activation_bounds(activation, output.type, unit, zero)
    zero, low, high = (code + carried_shift(output) for code in (zero, low, high))
    if zero:
        value = g.op("Add", value, g.constant(zero, np.float64))
    limits = (g.constant(bound, np.float64) for bound in (low, high))
    return g.cast(g.op("Clip", value, *limits), ir.DataType[carried_type(output).name])


# How kernels round --------------------------------------------------------------------------------


def rounded_wide(g: Graph, sums: ir.Value, multiplier: Array, largest: float) -> ir.Value:
    """With a 64-bit accumulator: the multiplier has 15 bits, and halves go upwards."""
    q15, right = narrow_multiplier(*quantize_multiplier(multiplier))
    factor = q15 * np.ldexp(1.0, -right)
    return rounded_upwards(g, g.op("Mul", sums, g.constant(factor)))


def rounded_twice(g: Graph, sums: ir.Value, multiplier: Array, largest: float) -> ir.Value:
    """With a 32-bit accumulator: the multiplier has 31 bits, see `rescaled`."""
    return rescaled(g, sums, multiplier, largest, bits=17)


def rounded_upwards_twice(g: Graph, sums: ir.Value, multiplier: Array, largest: float) -> ir.Value:
    """As `rounded_twice`, but the second rounding takes halves upwards too."""
    return rescaled(g, sums, multiplier, largest, bits=17, upwards=True)


def rounded_once(g: Graph, sums: ir.Value, multiplier: Array, largest: float) -> ir.Value:
    """With a multiplier of type double: halves go away from zero."""
    product = g.op("Mul", sums, g.constant(multiplier))
    if not _has_halves(multiplier, largest):
        return rounded_upwards(g, product)
    whole = g.op("Floor", g.op("Add", g.op("Abs", product), g.constant(0.5, np.float64)))
    return g.op("Mul", whole, g.op("Sign", product))


def _has_halves(multiplier: Array, largest: float) -> bool:
    """Whether a product with an integer up to `largest` can be a whole number and a half.

    A multiplier is m * 2**-e with an odd m: a half is a product with a multiple of 2**(e - 1).
    """
    halves = (float(each).as_integer_ratio()[1] / 2 for each in np.ravel(multiplier))
    return any(denominator <= largest for denominator in halves)


def sums_are_whole(input: TensorView, terms: int) -> bool:
    """Whether a float32 holds every sum of so many 8-bit codes, each less the zero point."""
    of_bytes = input.is_quantized and input.type in (TensorType.INT8, TensorType.UINT8)
    return of_bytes and terms * 255 <= _LARGEST_SUM
