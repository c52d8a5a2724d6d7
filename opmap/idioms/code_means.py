"""Sums and means of 8-bit codes over the last axes as one QLinearGlobalAveragePool.

LiteRT multiplies the sum of the codes, in float32, adds what the zero points make of it, and rounds
halves to even. That node adds the zero point after it has rounded. So the codes are read in a unit,
and counted from a zero point, with which no sum gets another code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.arithmetic.fixed_point import held_ratio
from tflite_ort.schema.values.sizes import is_known

_LARGEST = 255
# A float32 holds every sum of so many codes.
_MOST_CELLS = 65_793
# QLinearGlobalAveragePool fails on products of the ratio of the scales with 1 / cells outside.
_LEAST, _MOST = 2.0**-32, 2.0**8
# More cells of an image it does not take either.
_MOST_OF_IMAGE = 2.0**24
# It adds in 32 bits.
_MOST_SUMMED = 2**31
# In units of the result; a float32 holds 1/256 of such a number.
_LARGEST_PRODUCT = 2.0**16
# Which part of all sums may get another code: those next to a half of layers of many cells, where
# the last bits of float32 decide.
_FEW = 2.0**-14
# Fewer sums are all tried.
_FEW_SUMS = 4096
# By which part of a code floats are off at most.
_ERROR = 2.0**-12
_UNITS = (1.0, 1 + 2.0**-22, 1 - 2.0**-22)
# By so many codes the zero point of the codes is moved, so that the result's becomes an even one.
_MOVES = (0, *(sign * 2**bits for bits in range(8) for sign in (1, -1)))


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
        return _LARGEST * self.cells

    @property
    def multiplier(self) -> np.float32:
        """What LiteRT multiplies sums of codes of the file by."""
        return np.float32(self.ratio) * (np.float32(1) / np.float32(self.divisor))

    @property
    def is_far(self) -> bool:
        """Whether the products of all codes lose bits that count in the result. Then the zero point
        is taken off the codes before; where LiteRT loses these bits, it is the true result here."""
        return self.last * self.multiplier > _LARGEST_PRODUCT

    @property
    def counted_from(self) -> int:
        """The carried code from which the codes that are summed are counted."""
        return self.zero if self.is_far else self.moves[0]

    @property
    def addend(self) -> np.float32:
        """What it adds to them."""
        above = np.float32((self.zero - self.counted_from) * self.cells)
        return np.float32(self.result_zero - self.moves[1]) - above * self.multiplier


class Reading(NamedTuple):
    """How QLinearGlobalAveragePool reads codes.

    Attributes:
        step: what a code counts.
        zero, result_zero: the zero points of the carried codes.
    """

    step: np.float32
    zero: int
    result_zero: int

    def codes(self, totals: npt.NDArray[np.int64], cells: int) -> npt.NDArray[np.float32]:
        """What it makes of sums of carried codes."""
        counted = (totals - cells * self.zero).astype(np.float32)
        codes = np.rint(counted * (self.step / np.float32(cells))) + np.float32(self.result_zero)
        return np.clip(codes, 0, _LARGEST)


def pooled_codes(
    g: Graph,
    input: TensorView,
    output: TensorView,
    axes: Sequence[int],
    layout: Layout,
    *,
    mean: bool,
) -> ir.Value | None:
    """The carried codes of sums or means, whose axes stay as ones; None where the axes are not the
    last ones of `layout`, or one node would not give all codes."""
    if not g.target.cpu_kernels or output.type not in (TensorType.INT8, TensorType.UINT8):
        return None
    if not is_known(*input.shape):
        return None
    shape = layout.shape(input.shape)
    summed = {layout.axis(axis, input.rank) for axis in axes}
    order = sorted((axis for axis, size in enumerate(shape) if size != 1), key=summed.__contains__)
    if order != sorted(order):
        return None
    cells = prod(shape[axis] for axis in summed)
    found = _reading(_sums(input, output, cells, cells if mean else 1))
    if found is None:
        return None
    step, zero, result_zero = found
    codes = g.read(input, layout=layout, domain=Domain.STORED)
    planes = len(shape) == 4 and summed == {2, 3}
    image = codes if planes else g.reshape(codes, (1, prod(shape) // cells, cells, 1))
    units = g.op("DequantizeLinear", image, g.constant(step), g.constant(np.uint8(zero)))
    pooled = g.op("GlobalAveragePool", units)
    if planes:
        # It cancels the one by which ONNX Runtime has codes channels-last.
        pooled = g.op("Transpose", pooled, perm=Layout.FIRST.inverse(4))
    one = g.constant(np.float32(1))
    result = g.op("QuantizeLinear", pooled, one, g.constant(np.uint8(result_zero)))
    return g.reshape(result, [1 if axis in summed else size for axis, size in enumerate(shape)])


def pools_images(input: TensorView, output: TensorView, cells: int | None) -> bool:
    """Whether QLinearGlobalAveragePool takes the scales of both for any size of image.

    Args:
        cells: of an image; None if it is not known how many.
    """
    if not (input.is_quantized and output.is_quantized):
        return True
    if cells is not None and cells * _LARGEST >= _MOST_SUMMED:
        return False
    ratio = float(_ratio(input, output))
    return _is_pooled(ratio) and _is_pooled(ratio / _MOST_OF_IMAGE)


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
    sums = _sums(input, output, cells, divisor)
    total = summed(g.read_steps(input, layout=layout, from_zero_point=sums.is_far))
    for op_type, number, neutral in (("Mul", sums.multiplier, 1), ("Add", sums.addend, 0)):
        if number != neutral:
            total = g.op(op_type, total, g.constant(number))
    return g.quantize_codes(total, output)


def _sums(input: TensorView, output: TensorView, cells: int, divisor: int) -> Sums:
    moves = [128 * (tensor.type is TensorType.INT8) for tensor in (input, output)]
    zeros = input.zero + moves[0], output.zero + moves[1]
    return Sums(cells, divisor, float(_ratio(input, output)), *zeros, (moves[0], moves[1]))


def _ratio(input: TensorView, output: TensorView) -> np.float32:
    source, target = input.quantization, output.quantization
    assert source is not None and target is not None
    return held_ratio(source.sole_scale / target.sole_scale)


def _is_pooled(multiplier: float) -> bool:
    """Whether QLinearGlobalAveragePool takes it, in each of the units that are tried."""
    return multiplier * min(_UNITS) >= _LEAST and multiplier * max(_UNITS) < _MOST


# An operator is translated twice, and operators of a network are alike.
@lru_cache(maxsize=256)
def _reading(sums: Sums) -> Reading | None:
    """The one with which QLinearGlobalAveragePool rounds every sum as LiteRT does, or all but a few
    that are next to a half; None if there is none."""
    if not (1 < sums.cells <= _MOST_CELLS and _is_pooled(sums.ratio / sums.divisor)):
        return None
    totals = _turning_points(sums)
    wanted, fewest, best = _rounded(sums, totals), len(totals), None
    for unit, zeros in product(_UNITS, _zero_points(sums)):
        step = np.float32(sums.ratio * unit * sums.cells / sums.divisor)
        reading = Reading(step, *zeros)
        misses = int(np.count_nonzero(reading.codes(totals, sums.cells) != wanted))
        if not misses:
            return reading
        if misses < fewest:
            fewest, best = misses, reading
    width = max(sums.cells >> 10, 1)
    if best is None or fewest * width > sums.last * _FEW:
        return None
    low, high = np.split(totals[:-2], 2)
    around = np.clip(np.concatenate([low - width, high + width]), 0, sums.last)
    is_near = np.array_equal(best.codes(around, sums.cells), _rounded(sums, around))
    return best if is_near else None


def _turning_points(sums: Sums) -> npt.NDArray[np.int64]:
    """The first and the last sum of each code.

    Both ways to round never fall as a sum rises. So if they agree here, they agree between.
    """
    last = sums.last
    if last < _FEW_SUMS:
        return np.arange(last + 1)
    wide, codes = sums.divisor / sums.ratio, np.arange(1, _LARGEST + 1)
    near = (codes - sums.result_zero - 0.5) * wide + sums.cells * sums.zero
    reach = max(wide, sums.divisor) * _ERROR + 2
    low, high = (np.clip(near + side, 0, last).astype(np.int64) for side in (-reach, reach))
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = _rounded(sums, middle) >= codes
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.concatenate([low, high, [0, last]])


def _rounded(sums: Sums, totals: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The codes of these sums, as LiteRT and nodes of floats compute them."""
    units = (totals - sums.cells * sums.counted_from).astype(np.float32) * sums.multiplier
    codes = np.rint(units + sums.addend) + np.float32(sums.moves[1])
    return np.clip(codes, 0, _LARGEST)


def _zero_points(sums: Sums) -> Iterator[tuple[int, int]]:
    """Both zero points, and others from which all codes are the same numbers."""
    for move in (*_MOVES, -sums.zero):
        zero = sums.zero + move
        moved = sums.result_zero + move * sums.ratio * sums.cells / sums.divisor
        if float(moved).is_integer() and 0 <= zero <= _LARGEST and 0 <= moved <= _LARGEST:
            yield zero, int(moved)
