"""Sums and means of 8-bit codes over the last axes as one QLinearGlobalAveragePool.

That node rounds halves to even, and the sums here are rounded upwards. So the codes are read in a
unit, and counted from a zero point, with which no sum gets another code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
# Fewer sums are all tried.
_FEW_SUMS = 4096
# By which part of a code floats are off at most.
_ERROR = 2.0**-12
# Those above 1 move halves upwards where the codes are counted from the lowest one.
_UNITS = (1.0, 1 + 2.0**-22, 1 + 2.0**-20)


class Sums(NamedTuple):
    """Sums of codes, each less a zero point, as codes of another tensor.

    Attributes:
        divisor: 1, or that of a mean.
        ratio: the scale of the codes in units of the result's.
        zero, result_zero: the zero points of the carried codes.
    """

    cells: int
    divisor: int
    ratio: float
    zero: int
    result_zero: int


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


def rescaled_units(g: Graph, units: ir.Value, input: TensorView, output: TensorView) -> ir.Value:
    """The carried codes of `output` for numbers in units of the scale of `input`."""
    ratio = _ratio(input, output)
    if ratio != 1:
        units = g.op("Mul", units, g.constant(ratio))
    return g.quantize_units(units, output)


def _sums(input: TensorView, output: TensorView, cells: int, divisor: int) -> Sums:
    zeros = []
    for tensor in (input, output):
        assert tensor.quantization is not None
        moved = 128 * (tensor.type is TensorType.INT8)
        zeros.append(tensor.quantization.scalar_zero_point + moved)
    return Sums(cells, divisor, float(_ratio(input, output)), *zeros)


def _ratio(input: TensorView, output: TensorView) -> np.float32:
    source, target = input.quantization, output.quantization
    assert source is not None and target is not None
    return held_ratio(source.scalar_scale / target.scalar_scale)


def _is_pooled(multiplier: float) -> bool:
    """Whether QLinearGlobalAveragePool takes it, in each of the units that are tried."""
    return multiplier >= _LEAST and multiplier * _UNITS[-1] < _MOST


# An operator is translated twice, and operators of a network are alike.
@lru_cache(maxsize=256)
def _reading(sums: Sums) -> tuple[np.float32, int, int] | None:
    """The unit of the codes and both zero points with which QLinearGlobalAveragePool rounds every
    sum upwards; None if there are none."""
    if not (1 < sums.cells <= _MOST_CELLS and _is_pooled(sums.ratio / sums.divisor)):
        return None
    totals = _turning_points(sums)
    wanted = np.clip(_rounded_up(sums, totals), 0, _LARGEST)
    for unit, (zero, result_zero) in product(_UNITS, _zero_points(sums)):
        step = np.float32(sums.ratio * unit * sums.cells / sums.divisor)
        multiplier = step / np.float32(sums.cells)
        counted = (totals - sums.cells * zero).astype(np.float32)
        codes = np.rint(counted * multiplier) + result_zero
        if np.array_equal(np.clip(codes, 0, _LARGEST), wanted):
            return step, zero, result_zero
    return None


def _turning_points(sums: Sums) -> npt.NDArray[np.int64]:
    """The first and the last sum of each code.

    Both ways to round never fall as a sum rises. So if they agree here, they agree between.
    """
    last = _LARGEST * sums.cells
    if last < _FEW_SUMS:
        return np.arange(last + 1)
    wide, codes = sums.divisor / sums.ratio, np.arange(1, _LARGEST + 1)
    near = (codes - sums.result_zero - 0.5) * wide + sums.cells * sums.zero
    reach = wide * _ERROR + 2
    low, high = (np.clip(near + side, 0, last).astype(np.int64) for side in (-reach, reach))
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = _rounded_up(sums, middle) >= codes
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.concatenate([low, high, [0, last]])


def _rounded_up(sums: Sums, totals: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The codes of these sums, halves upwards, as nodes of floats compute them."""
    means = (totals - sums.cells * sums.zero).astype(np.float32) / np.float32(sums.divisor)
    units: npt.NDArray[np.float32] = np.floor(means * np.float32(sums.ratio) + np.float32(0.5))
    return units + np.float32(sums.result_zero)


def _zero_points(sums: Sums) -> Iterator[tuple[int, int]]:
    """Both zero points, and the same with the codes counted from the lowest one."""
    if not (0 <= sums.zero <= _LARGEST and 0 <= sums.result_zero <= _LARGEST):
        return
    yield sums.zero, sums.result_zero
    moved = sums.result_zero - sums.zero * sums.ratio * sums.cells / sums.divisor
    if moved.is_integer() and 0 <= moved <= _LARGEST:
        yield 0, int(moved)
