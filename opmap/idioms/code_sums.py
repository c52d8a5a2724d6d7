"""Codes of exact sums of 16-bit codes, which are integers in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.idioms.exact_sums import clipped_codes, is_centred
from tflite_ort.opmap.idioms.fixed_point import rescaled_by, rounded_upwards
from tflite_ort.schema import ActivationFunctionType, TensorType, TensorView
from tflite_ort.schema.arithmetic.fixed_point import divided_multiplier, quantize_multiplier
from tflite_ort.schema.values.sizes import is_known

# The codes of `output` for sums of so many codes of `input`.
Rescaled = Callable[[Graph, ir.Value, TensorView, TensorView, int], ir.Value]

_LARGEST_CODE = 2.0**15
# A float32 sum of the reals of so many codes is within a quarter of a quantum.
_LARGEST_RATIO = 2.0**7


def takes_exact_mean(g: Graph, input: TensorView, output: TensorView, terms: int) -> bool:
    """Whether the sum of 16-bit codes is to be rounded as TFLite does, and stays in 32 bits."""
    if not (g.target.exact and _are_centred(input, output)):
        return False
    if not is_known(*input.shape) or 0 in input.shape:
        return False
    return terms <= 2**15 and _ratio(input, output) * _LARGEST_CODE < 2**31


def exact_mean(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of means as TFLite rounds them: the sum times one multiplier."""
    q31, shift = quantize_multiplier(_ratio(input, output))
    if terms > 1:
        q31, shift = divided_multiplier(int(q31), int(shift), terms)
    mean = rescaled_by(g, total, q31, shift, terms * _LARGEST_CODE, bits=17)
    return clipped_codes(g, mean, output, ActivationFunctionType.NONE)


def amplifies(input: TensorView, output: TensorView, terms: int) -> bool:
    """Whether the last bits of a float32 sum of 16-bit codes may be a quantum of the result.

    Args:
        terms: 1 for a mean.
    """
    return _are_centred(input, output) and _ratio(input, output) * terms > _LARGEST_RATIO


def sum_upwards(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of sums, halves upwards."""
    units = g.op("Mul", total, g.constant(_ratio(input, output), np.float64))
    codes = rounded_upwards(g, units)
    return clipped_codes(g, codes, output, ActivationFunctionType.NONE)


def mean_upwards(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of means, halves upwards."""
    mean = g.op("Div", total, g.constant(terms, np.float64))
    return sum_upwards(g, mean, input, output, terms)


def _are_centred(input: TensorView, output: TensorView) -> bool:
    centred = is_centred(input) and is_centred(output)
    return centred and input.type is output.type is TensorType.INT16


def _ratio(input: TensorView, output: TensorView) -> float:
    assert input.quantization is not None and output.quantization is not None
    return input.quantization.scalar_scale / output.quantization.scalar_scale
