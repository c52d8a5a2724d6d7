"""Sums and means of 8-bit codes over the last axes as one QLinearGlobalAveragePool.

That node adds the zero point after it has rounded. So the codes are read in a unit, and counted
from a zero point, with which no sum gets another code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.code_means import LARGEST, UNITS, Sums, is_pooled, sums_of
from tflite_ort.opmap.idioms.code_sums import sums_codes
from tflite_ort.opmap.reduction import axes_of, reduced_layout, write_reduced
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.sizes import is_known, is_one

# A float32 holds every sum of so many codes.
_MOST_CELLS = 65_793
# Which part of all sums may get another code: those next to a half of layers of many cells, where
# the last bits of float32 decide.
_FEW = 2.0**-14
# Fewer sums are all tried.
_FEW_SUMS = 4096
# By which part of a code floats are off at most.
_ERROR = 2.0**-12
# By so many codes the zero point of the codes is moved, so that the result's becomes an even one.
_MOVES = (0, *(sign * 2**bits for bits in range(8) for sign in (1, -1)))


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
        """The codes of the means, for sums of carried codes."""
        counted = (totals - cells * self.zero).astype(np.float32)
        codes = np.rint(counted * (self.step / np.float32(cells))) + np.float32(self.result_zero)
        return np.asarray(np.clip(codes, 0, LARGEST), np.float32)


def code_means(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """MEAN and SUM whose axes are the last ones of the input's layout."""
    input, output = op["input"], op.output
    if output.type not in (TensorType.INT8, TensorType.UINT8):
        return ()
    if not is_known(*input.shape[1:]) or not op["axes"].is_constant:
        return ()
    layout = reduced_layout(op, g)
    shape = layout.shape(input.shape)
    summed = frozenset(layout.axis(axis, input.rank) for axis in axes_of(op))
    if not (is_known(*shape) or _are_planes(shape, summed)):
        return ()
    terms = prod(input.shape[axis] for axis in axes_of(op))
    if not sums_codes(terms, input, output):
        return ()
    long = (axis for axis, size in enumerate(shape) if not is_one(size))
    order = sorted(long, key=summed.__contains__)
    if order != sorted(order):
        return ()
    found = _reading(sums_of(input, output, terms, terms if op.op is Op.MEAN else 1))
    return [Lowering("pool", {}, partial(_pooled, op, g, layout, found))] if found else ()


def _are_planes(shape: Sequence[int], summed: Set[int]) -> bool:
    """Whether the sums are those of planes, of any number of images."""
    return len(shape) == 4 and summed == {2, 3}


def _pooled(op: View, g: Graph, layout: Layout, found: Reading) -> None:
    input, (step, zero, result_zero) = op["input"], found
    shape = layout.shape(input.shape)
    summed = {layout.axis(axis, input.rank) for axis in axes_of(op)}
    cells = prod(shape[axis] for axis in summed)
    codes = g.read(input, layout=layout, domain=Domain.STORED)
    planes = _are_planes(shape, summed)
    rows = len(shape) == 3 and summed == {2}
    image = codes if planes or rows else g.reshape(codes, (1, prod(shape) // cells, cells, 1))
    units = g.op("DequantizeLinear", image, g.constant(step), g.constant(np.uint8(zero)))
    pooled = g.op("GlobalAveragePool", units)
    if planes:
        # It cancels the one by which ONNX Runtime has codes channels-last.
        pooled = g.op("Transpose", pooled, perm=Layout.FIRST.inverse(4))
    one = g.constant(np.float32(1))
    result = g.op("QuantizeLinear", pooled, one, g.constant(np.uint8(result_zero)))
    kept = [1 if axis in summed else size for axis, size in enumerate(shape)]
    write_reduced(op, g, result if rows else g.reshape(result, kept), layout, Domain.STORED)


# An operator is translated twice, and operators of a network are alike.
@lru_cache(maxsize=256)
def _reading(sums: Sums) -> Reading | None:
    """The reading with which QLinearGlobalAveragePool rounds all sums as LiteRT does, except a few
    that are next to a half; None if there is none."""
    if not (1 < sums.cells <= _MOST_CELLS and is_pooled(sums.ratio / sums.divisor)):
        return None
    totals = _turning_points(sums)
    wanted, fewest, best = _rounded(sums, totals), len(totals), None
    for unit, zeros in product(UNITS, _zero_points(sums)):
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
    wide, codes = sums.divisor / sums.ratio, np.arange(1, LARGEST + 1)
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
    return np.asarray(np.clip(codes, 0, LARGEST), np.float32)


def _zero_points(sums: Sums) -> Iterator[tuple[int, int]]:
    """Pairs of zero points with which all codes stand for the same numbers."""
    for move in (*_MOVES, -sums.zero):
        zero = sums.zero + move
        moved = sums.result_zero + move * sums.ratio * sums.cells / sums.divisor
        if float(moved).is_integer() and 0 <= zero <= LARGEST and 0 <= moved <= LARGEST:
            yield zero, int(moved)
