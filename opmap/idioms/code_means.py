"""Sums and means of 8-bit codes by nodes of floats, and scales that ONNX Runtime's pools take.

LiteRT multiplies the sum of the codes, in float32, adds what the zero points make of it, and rounds
halves to even.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.arithmetic.fixed_point import held_ratio

LARGEST = 255
# QLinearGlobalAveragePool fails on products of the ratio of the scales with 1 / cells outside.
_LEAST, _MOST = 2.0**-32, 2.0**8
# More cells of an image it does not take either.
_MOST_OF_IMAGE = 2.0**24
# It adds in 32 bits.
_MOST_SUMMED = 2**31
# In units of the result; a float32 holds 1/256 of such a number.
_LARGEST_PRODUCT = 2.0**16
# In which codes are tried to be read for it.
UNITS = (1.0, 1 + 2.0**-22, 1 - 2.0**-22)


class Sums(NamedTuple):
    """Sums of codes, each less a zero point, as codes of another tensor.

    Attributes:
        divisor: 1, or that of a mean.
        ratio: the scale of the codes in units of the result's.
        zero, result_zero: the zero points of the carried codes.
        moves: by how much carried codes of both are above those of the file.
    """

    cells: int
    divisor: int
    ratio: float
    zero: int
    result_zero: int
    moves: tuple[int, int]

    @property
    def last(self) -> int:
        """The largest sum of carried codes."""
        return LARGEST * self.cells

    @property
    def multiplier(self) -> np.float32:
        """What LiteRT multiplies sums of codes of the file by."""
        return np.float32(self.ratio) * (np.float32(1) / np.float32(self.divisor))

    @property
    def is_far(self) -> bool:
        """Whether the products of all codes lose bits that count in the result. Then the zero point
        is taken off the codes before; where LiteRT loses these bits, it is the true result here."""
        return bool(self.last * self.multiplier > _LARGEST_PRODUCT)

    @property
    def counted_from(self) -> int:
        """The carried code from which the codes that are summed are counted."""
        return self.zero if self.is_far else self.moves[0]

    @property
    def addend(self) -> np.float32:
        """What it adds to them."""
        above = np.float32((self.zero - self.counted_from) * self.cells)
        return np.float32(self.result_zero - self.moves[1]) - above * self.multiplier


def pools_images(input: TensorView, output: TensorView, cells: int | None) -> bool:
    """Whether QLinearGlobalAveragePool takes the scales of both for any size of image.

    Args:
        cells: of an image; None if it is not known how many.
    """
    if not (input.is_quantized and output.is_quantized):
        return True
    if cells is not None and cells * LARGEST >= _MOST_SUMMED:
        return False
    ratio = float(_ratio(input, output))
    return is_pooled(ratio) and is_pooled(ratio / _MOST_OF_IMAGE)


def rounded_sums(
    g: Graph,
    input: TensorView,
    output: TensorView,
    cells: int,
    divisor: int,
    layout: Layout,
    summed: Callable[[ir.Value], ir.Value],
) -> ir.Value:
    """The carried codes of sums by nodes of floats.

    Args:
        summed: adds the node that sums codes.
    """
    sums = sums_of(input, output, cells, divisor)
    total = summed(g.read_steps(input, layout=layout, from_zero_point=sums.is_far))
    for op_type, number, neutral in (("Mul", sums.multiplier, 1), ("Add", sums.addend, 0)):
        if number != neutral:
            total = g.op(op_type, total, g.constant(number))
    return g.quantize_codes(total, output)


def sums_of(input: TensorView, output: TensorView, cells: int, divisor: int) -> Sums:
    """Sums of codes of `input` as codes of `output`."""
    moves = [128 * (tensor.type is TensorType.INT8) for tensor in (input, output)]
    zeros = input.zero + moves[0], output.zero + moves[1]
    return Sums(cells, divisor, float(_ratio(input, output)), *zeros, (moves[0], moves[1]))


def _ratio(input: TensorView, output: TensorView) -> np.float32:
    source, target = input.quantization, output.quantization
    assert source is not None and target is not None
    return held_ratio(source.sole_scale / target.sole_scale)


def is_pooled(multiplier: float) -> bool:
    """Whether QLinearGlobalAveragePool takes it, in each of the units that are tried."""
    return multiplier * min(UNITS) >= _LEAST and multiplier * max(UNITS) < _MOST
