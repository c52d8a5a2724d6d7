"""Sums and products of codes: exact sums are integers in float64; TFLite scales a product after
each factor, in 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeGuard

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.exact_sums import clipped_codes, is_centred, sums_are_whole
from tflite_ort.opmap.idioms.fixed_point import TIE_BREAK, clip, rescaled_by, rounded_upwards
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType, TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import (
    divided_multiplier,
    narrow_multiplier,
    quantize_multiplier,
)
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import is_known

# The codes of `output` for sums of so many codes of `input`.
Rescaled = Callable[[Graph, ir.Value, TensorView, TensorView, int], ir.Value]

# No product of a result of 32 bits, a code and a multiplier of 15 bits is as large.
_LARGEST = 2**61
_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_LARGEST_CODE = 2.0**15
# Up to so many 8-bit codes a float32 sum, in any order, is within half a quantum. Sums in parts
# take up to five times as long.
_MOST_IN_FLOAT32 = 2**20
# A float32 sum of the reals of so many codes is within a quarter of a quantum.
_LARGEST_RATIO = 2.0**7


def sums_codes(terms: int | None, input: TensorView, output: TensorView) -> TypeGuard[int]:
    """Whether float32 holds sums of so many 8-bit codes, which become codes; None is unknown."""
    return terms is not None and output.is_quantized and sums_are_whole(input, terms)


def takes_exact_sum(g: Graph, input: TensorView, output: TensorView, terms: int | None) -> bool:
    """Whether the sum of 16-bit codes is to be rounded as TFLite does, and stays in 32 bits."""
    if terms is None or not (g.target.exact and _are_centred(input, output)):
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


def is_long(input: TensorView, output: TensorView, terms: int) -> bool:
    """Whether the sum of so many 8-bit codes may be more than a quantum off in float32."""
    of_bytes = input.is_quantized and output.is_quantized and {input.type, output.type} <= _BYTES
    return of_bytes and terms > _MOST_IN_FLOAT32


def in_double(g: Graph, input: TensorView, layout: Layout, axes: Sequence[int]) -> ir.Value:
    """Codes in float64, 8-bit ones less their zero point. These are summed before along some of
    `axes`, which stay as ones, as far as float32 holds the sums."""
    if input.type not in _BYTES:
        return g.cast(g.read(input, layout=layout, domain=Domain.STORED), ir.DataType.DOUBLE)
    shape, terms, first = layout.shape(input.shape), 1, list[int]()
    for axis in sorted(axes, key=lambda axis: -shape[axis]):
        if sums_are_whole(input, terms * shape[axis]):
            terms, first = terms * shape[axis], [*first, axis]
    if not first:
        leave_many_to_numpy(g, input.shape, "codes in a sum")
    steps = g.read_steps(input, layout=layout)
    sums = g.op("ReduceSum", steps, g.ints(first), keepdims=1) if first else steps
    return g.cast(sums, ir.DataType.DOUBLE)


def exact_sum(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of sums of 16-bit codes as TFLite rounds them: float32, halves away from zero.

    Half of each number is multiplied by more than 2, since ONNX Runtime leaves out a product with a
    double that is 1 as a float.
    """
    ratio = g.constant(_ratio(input, output) / 2, np.float32)
    units = g.op("Mul", g.cast(total, ir.DataType.FLOAT), ratio)
    away = g.op("Mul", g.cast(units, ir.DataType.DOUBLE), g.constant(2 * TIE_BREAK))
    return clipped_codes(g, g.op("Round", away), output, ActivationFunctionType.NONE)


def rounded_sum(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of sums; halves of 16 bits go upwards, others to the even code."""
    units = g.op("Mul", total, g.constant(_ratio(input, output), np.float64))
    if output.type is TensorType.INT16:
        codes = rounded_upwards(g, units)
        return clipped_codes(g, codes, output, ActivationFunctionType.NONE)
    low, high = map(float, quantized_range(output.type))
    codes = clip(g, g.op("Add", units, g.constant(output.zero, np.float64)), (low, high))
    return g.quantize_codes(g.cast(g.op("Round", codes), ir.DataType.FLOAT), output)


def rounded_mean(
    g: Graph, total: ir.Value, input: TensorView, output: TensorView, terms: int
) -> ir.Value:
    """The codes of means, as of sums."""
    mean = g.op("Div", total, g.constant(terms, np.float64))
    return rounded_sum(g, mean, input, output, terms)


def _are_centred(input: TensorView, output: TensorView) -> bool:
    centred = is_centred(input) and is_centred(output)
    return centred and input.type is output.type is TensorType.INT16


def _ratio(input: TensorView, output: TensorView) -> float:
    assert input.quantization is not None and output.quantization is not None
    return input.quantization.scalar_scale / output.quantization.scalar_scale


def product_of_codes(
    g: Graph, input: TensorView, output: TensorView, axes: tuple[int, ...] | None
) -> ir.Value:
    """The codes, as the file has them, of the products over `axes`, one after another.

    Every factor takes its share of the output's scale. numpy takes less time than a Scan.

    Args:
        axes: None where it is not known how many factors there are.
    """
    if g.target.fallback or axes is None:
        raise Untranslatable("TFLite rounds the product of codes after each factor")
    if not {input.type, output.type} <= {TensorType.INT8, TensorType.INT16}:
        raise Untranslatable(f"products of {input.type.name} codes")
    source, target = input.quantization, output.quantization
    if source is None or target is None:
        raise Untranslatable("a product of codes without a scale")
    count = prod(input.shape[axis] for axis in axes)
    share = source.scalar_scale / target.scalar_scale ** (1.0 / count)
    q15, right = (int(each) for each in narrow_multiplier(*quantize_multiplier(share)))
    if right < 1:
        raise Untranslatable("a product of codes in larger units than the result's")

    def scaled(product: ir.Value) -> ir.Value:
        """Halves upwards; Div rounds towards zero, so that all numbers are made positive before it.
        What exceeds 32 bits wraps."""
        half = g.ints(_LARGEST + (1 << (right - 1)))
        moved = g.op("Add", g.op("Mul", product, g.ints(q15)), half)
        quotient = g.op("Div", moved, g.ints(1 << right))
        turned = g.op("Sub", quotient, g.ints((_LARGEST >> right) - 2**31))
        return g.op("Sub", g.op("Mod", turned, g.ints(2**32)), g.ints(2**31))

    def step(products: Values, factors: Values) -> tuple[Values, Values]:
        return [scaled(g.op("Mul", products[0], factors[0]))], []

    kept = [axis for axis in range(input.rank) if axis not in axes]
    steps = g.cast(g.read(input, domain=Domain.FILE), ir.DataType.INT64)
    steps = g.op("Sub", steps, g.ints(source.scalar_zero_point))
    factors = g.reshape(g.op("Transpose", steps, perm=[*axes, *kept]), (count, -1))
    product = g.op("Gather", factors, g.ints(0), axis=0)
    if count > 1:
        rest = g.op("Slice", factors, *map(g.ints, ([1], [count], [0])))
        types = [ir.DataType.INT64] * 2
        (product,), _ = scan(g, step, [product], [rest], single=count == 2, types=types)
    low, high = quantized_range(output.type)
    codes = g.op("Add", scaled(product), g.ints(target.scalar_zero_point))
    codes = g.smaller(g.larger(codes, g.ints(low)), g.ints(high))
    return g.cast(codes, output.dtype)
