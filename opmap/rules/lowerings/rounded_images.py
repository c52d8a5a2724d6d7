"""Convolutions of float images and 8-bit filters in 8 bits, where that is faster than in floats.

The image becomes codes. The cells of every window are collected as a row of codes, and one product
of these rows and the filter gives the result, channels-last. LiteRT rounds each image as a whole,
with a zero point, and so does this; but LiteRT's default rounds each cell of an image that meets
windows of one cell, see `rounds_cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph, Layout, Target
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.costs import rounded_image_costs
from tflite_ort.opmap.graph.rows import has_rows
from tflite_ort.opmap.idioms.convolution_operands import (
    WindowAxis,
    accumulator_bias,
    image_windows,
    run_of,
)
from tflite_ort.opmap.idioms.hybrid import (
    Codes,
    Rounding,
    input_rounding,
    is_delegated,
    quantized_row,
    rounded,
    rounds_cells,
    rounds_with_zero_point,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowerings.rows_of_channels import is_read_in_rows
from tflite_ort.opmap.rules.operators.absorbed_pad import without_pad
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import Conv2DOptions, OperatorView, TensorType
from tflite_ort.schema.values.sizes import is_known, known_product

with late:
    from tflite_ort.opmap.idioms import hybrid_products

if TYPE_CHECKING:
    from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix

Cells = npt.NDArray[np.int32]
View = OperatorView[Conv2DOptions]

_MICROSOFT = "com.microsoft"
# Larger collections would take much more memory than the maps of the network.
_MOST_COLLECTED = 2**25
# The places that windows read are a constant of the graph.
_MOST_PLACES = 2**20


@record
class WindowRows:
    """The windows of images as rows of cells.

    Args:
        images: how many.
        cells: of an image; a run of zeros comes behind them where `beyond`.
        places: [windows of all images, runs of a window], the run that is read; None: a window is
            one run, and all are read in their order.
        run: so many cells side by side are read together by all windows.
    """

    images: int
    cells: int
    places: Cells | None
    beyond: bool
    run: int

    @classmethod
    def of(cls, images: int, windows: tuple[WindowAxis, WindowAxis]) -> WindowRows:
        """The rows of `windows`."""
        run = run_of(windows)
        rows, columns = (_positions(axis) for axis in windows)
        columns = columns[:, ::run] // run
        height, width = windows[0].cells, windows[1].cells // run
        inside = (rows >= 0)[:, None, :, None] & (columns >= 0)[:, None, :]
        places = rows[:, None, :, None] * width + columns[:, None, :]
        places = np.where(inside, places, height * width)
        places = places.reshape(len(rows) * len(columns), -1)
        beyond, runs = not inside.all(), height * width
        if np.array_equal(places, np.arange(runs)[:, np.newaxis]):
            return cls(images, runs * run, None, False, run)
        first = np.arange(images)[:, np.newaxis, np.newaxis] * (runs + beyond)
        every = (places + first).reshape(-1, places.shape[1])
        return cls(images, runs * run, every.astype(np.int32), beyond, run)

    def collected(self, g: Graph, cells: ir.Value, depth: int) -> ir.Value:
        """Rows [windows, depth] of `cells` [cells of all images, channels]."""
        if self.places is None:
            return cells if self.run == 1 else g.reshape(cells, (-1, depth))
        if self.run > 1:
            cells = g.reshape(cells, (-1, depth // self.places.shape[1]))
        return g.reshape(g.op("Gather", cells, g.constant(self.places), axis=0), (-1, depth))


def _positions(axis: WindowAxis) -> npt.NDArray[np.int64]:
    """The cell that each part of each window reads [windows, kernel]; -1 for padding."""
    starts = np.arange(axis.count)[:, np.newaxis] * axis.stride - axis.before
    places = starts + np.arange(axis.kernel) * axis.dilation
    return np.where((places >= 0) & (places < axis.cells), places, -1)


def rounded_images(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """CONV_2D from codes, where that is faster than in floats and these are exact; but for images
    that `rows_of_channels` reads, unless windows read runs of cells."""
    windows = image_windows(op, op["filter"].shape[1:3])
    if windows is None or (is_read_in_rows(without_pad(op, g), g) and run_of(windows) == 1):
        return ()
    matrix = _filter_matrix(op, g, windows)
    if matrix is None:
        return ()
    return [Lowering("rounded", {}, partial(_rounded, op, g, windows, matrix))]


def _rounded(
    op: View, g: Graph, windows: tuple[WindowAxis, WindowAxis], matrix: WeightMatrix
) -> None:
    input, output = op["input"], op.output
    rows = WindowRows.of(input.shape[0], windows)
    asymmetric, taken = rounds_with_zero_point(op["filter"]), is_delegated(op)
    rounding = input_rounding(g, input, op["filter"], asymmetric=asymmetric, delegated=taken)
    bias = accumulator_bias(g, input, op["filter"], op.get("bias"))
    if rounding is Rounding.XNNPACK and rounds_cells(op):
        terms = [(_cells(op, g), matrix)]
        result = hybrid_products.sum_of_products(g, terms, rounding=rounding, added=bias)
    elif rows.images == 1 and rounding in (None, Rounding.XNNPACK):
        result = _product_of_image(op, g, rows, matrix, bias)
    else:
        result = _product_of_images(op, g, rows, matrix, rounding or Rounding.XNNPACK)
        result = result if bias is None else g.op("Add", result, bias)
    layout = Layout.ROWS if has_rows(output) else Layout.LAST
    result = result if has_rows(output) else g.reshape(result, output.shape)
    g.write(output, result, layout=layout, activation=op.options.fused_activation_function)


def _filter_matrix(
    op: View, g: Graph, windows: tuple[WindowAxis, WindowAxis]
) -> WeightMatrix | None:
    """The filter as a matrix [outputs, cells of a window * channels]; None where the convolution
    is one of floats."""
    input, filter = op["input"], op["filter"]
    plain = input.type is TensorType.FLOAT32 and g.target.hybrid != "float"
    if not plain or not is_known(*input.shape) or 0 in input.shape:
        return None
    matrix = hybrid_products.WeightMatrix.of_codes(filter)
    if (
        matrix is None
        or input.shape[3] != filter.shape[3]
        or not hybrid_products.keeps_exact_codes(g, matrix)
    ):
        return None
    matrix = hybrid_products.WeightMatrix(matrix.codes.reshape(len(matrix.codes), -1), matrix.scale)
    count = input.shape[0] * windows[0].count * windows[1].count
    cells = filter.shape[1] * filter.shape[2]
    runs = count * cells // run_of(windows) if cells > 1 else 0
    sizes = count, *matrix.codes.shape
    few = count * cells <= _MOST_PLACES
    last = not g.is_in(input, Layout.FIRST)
    enough = _is_enough(g.target, known_product(input.shape), runs, sizes, channels_last=last)
    return matrix if few and enough else None


def _is_enough(
    target: Target, numbers: int, runs: int, sizes: tuple[int, int, int], *, channels_last: bool
) -> bool:
    """Whether 8 bits are faster than floats, with the nodes that round and collect.

    Args:
        numbers: of the image.
        runs: of bytes that all windows read.
        sizes: windows, units, depth.
        channels_last: the image stands in no other layout.
    """
    (rows, units, depth), costs = sizes, rounded_image_costs(target)
    rounding = costs.nodes + costs.number * numbers
    collecting = costs.run * runs + costs.byte * rows * depth
    share = costs.channels_last if channels_last else 1.0
    least = share * (rounding + collecting + costs.result * rows * units)
    weights = units * depth
    saved = rows * weights * costs.saved + costs.weight * max(0, weights - costs.cached)
    return saved >= least and rows * depth <= _MOST_COLLECTED


def _cells(op: OperatorView[Any], g: Graph) -> ir.Value:
    """The input [cells, channels]."""
    input = op["input"]
    if has_rows(input):
        return g.read(input, layout=Layout.ROWS)
    return g.reshape(g.read(input), (-1, input.shape[3]))


def _product_of_image(
    op: View, g: Graph, rows: WindowRows, matrix: WeightMatrix, bias: ir.Value | None
) -> ir.Value:
    """The product of a single image: it has one scale and one zero point."""
    assert matrix.scale is not None
    cells = _cells(op, g)
    if g.target.hybrid == "auto":
        codes, scale, zero_point = g.op_multi("DynamicQuantizeLinear", cells, outputs=3)
    else:
        codes, zero_point, scale = quantized_row(g, cells)
    if rows.beyond:
        codes = g.op("Pad", codes, g.ints([0, 0, rows.run, 0]), zero_point)
    codes = rows.collected(g, codes, matrix.codes.shape[1])
    weights, middle = hybrid_products.multiplied_codes(g, matrix)
    operands = codes, weights, scale, g.constant(matrix.scale), zero_point, middle, bias
    return g.op("MatMulIntegerToFloat", *operands, domain=_MICROSOFT)


def _product_of_images(
    op: View, g: Graph, rows: WindowRows, matrix: WeightMatrix, rounding: Rounding
) -> ir.Value:
    """The product [windows, outputs], each image rounded by itself."""
    channels = op["input"].shape[3]
    images = g.reshape(_cells(op, g), (rows.images, rows.cells, channels))
    if rows.beyond:
        images = g.op("Pad", images, g.ints([0, 0, 0, 0, rows.run, 0]))
    found = rounded(g, images, rounding, (1, 2)).moved(g)
    depth = matrix.codes.shape[1]
    windows = rows.collected(g, g.reshape(found.codes, (-1, channels)), depth)
    windows = g.reshape(windows, (rows.images, -1, depth))
    result = hybrid_products.product_of_codes(
        g, Codes(windows, found.zero_point, found.scale, True), matrix
    )
    return g.reshape(result, (-1, len(matrix.codes)))
