"""Operands and results of convolutions and matrix products: float, quantized and hybrid.

Integer operands are accumulated in float64 by BLAS, which is exact below 2**53.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema import (
    ActivationFunctionType,
    KernelError,
    Quantization,
    TensorType,
    TensorView,
)
from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_wide_by_quantized_multiplier,
    quantize_multiplier,
    rescale,
    round_half_away,
)
from tflite_ort.schema.values.operators import FILTER_TYPES
from tflite_ort.schema.values.semantics import activation_bounds, quantized_activation_bounds

Array = npt.NDArray[Any]
Rounding = Callable[[Array, Array], Array]


def rescale_wide(accumulator: Array, multiplier: Array) -> Array:
    """`accumulator * multiplier`, rounded as in kernels with a 64-bit accumulator."""
    return multiply_wide_by_quantized_multiplier(accumulator, *quantize_multiplier(multiplier))


def rescale_float(accumulator: Array, multiplier: Array) -> Array:
    """`accumulator * multiplier` in double precision, halves away from zero."""
    return round_half_away(accumulator * multiplier)


@record
class Accumulator:
    """One operator that sums products of `input` and `filter`.

    Args:
        rounding: how integer sums are rescaled to the output.
        narrow_scale: the product of the two scales is rounded to float32 (kernels that have one
            multiplier for all channels).
    """

    input: TensorView
    filter: TensorView
    output: TensorView
    activation: ActivationFunctionType = ActivationFunctionType.NONE
    rounding: Rounding = rescale
    narrow_scale: bool = False

    def operands(
        self, x: Array, filter: Array, *, axes: tuple[int, ...], asymmetric: bool
    ) -> tuple[Array, Array]:
        """The two operands to multiply: real numbers, or integers less their zero points.

        Args:
            axes, asymmetric: how a float `x` is quantized before an integer filter multiplies it.
        """
        if self.filter.type not in FILTER_TYPES.get(self.input.type, ()):
            raise KernelError(
                f"{self.input.type.name} input with {self.filter.type.name} filter: no kernel"
            )
        if self.input.type is not TensorType.FLOAT32:
            return centred(x, quantization(self.input)), centred(filter, quantization(self.filter))
        if self.filter.type is TensorType.FLOAT32:
            return x, filter
        weights = centred(filter, quantization(self.filter)) * scales(self.filter)
        return requantized_input(x, axes, asymmetric), weights.astype(np.float32)

    def result(self, sums: Array, bias: Array | None) -> Array:
        """The output for sums of products, channels last, with bias, scale and activation."""
        bias = None if bias is None else bias.reshape(-1)  # it has any shape
        if self.input.type is TensorType.FLOAT32:
            return np.clip(sums if bias is None else sums + bias, *real_bounds(self.activation))
        integers = sums.astype(np.int64)
        if bias is not None:
            integers += bias
        if self.input.dtype.itemsize == 1:
            integers = integers.astype(np.int32)  # wraps, as TFLite's accumulators do
        output = quantization(self.output)
        codes = self.rounding(integers, self._multiplier()) + np.int64(output.scalar_zero_point)
        low, high = quantized_activation_bounds(
            self.activation, self.output.type, output.scalar_scale, output.scalar_zero_point
        )
        return np.clip(codes, low, high).astype(self.output.dtype)

    def _multiplier(self) -> Array:
        """Input scale times filter scale over output scale: [1], or [channels]."""
        ours, theirs = quantization(self.input).scale, quantization(self.filter).scale
        for tensor in (self.input, self.output):
            if quantization(tensor).per_channel:
                raise KernelError(f"activation {tensor.name!r} is quantized per channel")
        if self.narrow_scale and theirs.size > 1:
            raise KernelError(
                f"{self.filter.type.name} filter has {theirs.size} scales, expected 1"
            )
        product = np.multiply(ours, theirs, dtype=np.float32 if self.narrow_scale else np.float64)
        return product.astype(np.float64) / quantization(self.output).scale.astype(np.float64)


def quantization(tensor: TensorView) -> Quantization:
    """The quantization of `tensor`; KernelError without one."""
    if tensor.quantization is None:
        raise KernelError(f"{tensor.type.name} tensor {tensor.name!r} has no scale")
    return tensor.quantization


def centred(codes: Array, quantization: Quantization) -> Array:
    """``codes - zero_point``, float64."""
    return codes - _along(quantization.zero_point, quantization, codes.ndim).astype(np.float64)


def scales(tensor: TensorView) -> Array:
    """The scales of `tensor` in a shape that broadcasts against it."""
    found = quantization(tensor)
    return _along(found.scale, found, tensor.rank)


def _along(values: Array, quantization: Quantization, rank: int) -> Array:
    shape = [1] * rank
    if quantization.per_channel:
        shape[quantization.axis] = -1
    return values.reshape(shape)


def real_bounds(activation: ActivationFunctionType) -> tuple[float, float]:
    """The bounds of a fused activation for real numbers; infinite where there is none."""
    low, high = activation_bounds(activation)
    return -np.inf if low is None else low, np.inf if high is None else high


def requantized_input(x: Array, axes: tuple[int, ...], asymmetric: bool) -> Array:
    """A float input of a hybrid kernel, rounded to 8 bits, as real numbers.

    There is one scale for every slice that spans `axes`.
    """
    codes, scales = quantized_rows(x, axes, asymmetric)
    return np.asarray(codes * scales)


def quantized_rows(x: Array, axes: tuple[int, ...], asymmetric: bool) -> tuple[Array, Array]:
    """(codes less their zero points, scales) of a float input of a hybrid kernel."""
    low = x.min(axis=axes, keepdims=True, initial=0)
    high = x.max(axis=axes, keepdims=True, initial=0)
    if asymmetric:
        return _asymmetric(x, low.astype(np.float64), high.astype(np.float64))
    reach = np.maximum(-low, high)
    reach[reach == 0] = 127
    codes = np.clip(round_half_away(_scaled(x, np.float32(127), reach)), -127, 127)
    return codes, reach / np.float32(127)


def _asymmetric(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    wide = np.where(low == high, 255.0, high - low) / 255
    from_low, from_high = -128 - low / wide, 127 - high / wide
    nearer = 128 - low / wide < 127 + high / wide
    zero_point = np.clip(round_half_away(np.where(nearer, from_low, from_high)), -128, 127)
    scale, zero_point = wide.astype(np.float32), zero_point.astype(np.float32)
    steps = round_half_away(_scaled(x, np.float32(1), scale))
    codes = np.clip(zero_point + steps, -128, 127)
    return codes - zero_point, scale


def _scaled(x: Array, steps: np.float32, reach: Array) -> Array:
    """x * (steps / reach); in float64 where that quotient is infinite, as of subnormal numbers."""
    with np.errstate(over="ignore"):
        quotient = steps / reach
    if np.isfinite(quotient).all():
        return np.asarray(x * quotient)
    return np.asarray(x.astype(np.float64) * steps / reach.astype(np.float64), x.dtype)
