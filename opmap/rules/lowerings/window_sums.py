"""Means over windows of 8-bit codes as sums: a depthwise convolution of ones.

ONNX Runtime's QLinearAveragePool takes up to 28 times as long. A window that reaches over the edge
of the image is divided by fewer cells, so the image falls into parts of equal windows, each with a
convolution of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.pooled_means import is_global, step_of_codes, write_means
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import OperatorView, Pool2DOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Pool2DOptions]

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_MOST_PARTS = 9  # those of a 3x3 window: corners, edges and the rest
# Up to so many cells the step of a code is told from 1 by float32, three roundings included.
_MOST_CELLS = 1024


class Run(NamedTuple):
    """Neighbouring windows of one length along an axis.

    Attributes:
        begin, end: the cells that they cover.
    """

    begin: int
    end: int
    length: int


def window_sums(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """The plain pool, and sums of the windows where these are exact."""
    input, sizes = op["input"], op["input"].shape[1:4]
    if not input.is_quantized or input.type not in _BYTES or is_global(op):
        return ()
    if not all(map(is_known, sizes)):
        return ()
    height, width, channels = sizes
    options = op.options
    rows = _runs(options, height, options.filter_height, options.stride_h)
    columns = _runs(options, width, options.filter_width, options.stride_w)
    cells = options.filter_height * options.filter_width
    if rows is None or columns is None or cells > _MOST_CELLS:
        return ()
    parts = len(rows) * len(columns)
    if parts > _MOST_PARTS:
        return ()
    results = float(np.prod(op.output.shape[1:3])) * channels
    work = {"Pool": 1.0, "Pool results": results, "Pool products": results * cells}
    parted = {"Part": float(parts), "Part results": results, "Part products": results * cells}
    sums = Lowering("sums", parted, lambda: write_means(op, g, _sums(op, g, rows, columns)))
    # One part is faster for every shape.
    return [sums] if parts == 1 else [Lowering("pool", work, partial(rest, op)), sums]


def _runs(options: Pool2DOptions, size: int, kernel: int, stride: int) -> list[Run] | None:
    """The windows along an axis: all whole ones together, each other one by itself; None where
    there are too many of these."""
    before, after = explicit_padding(options.padding, size, kernel, stride, 1)
    starts = range(-before, size + after - kernel + 1, stride)
    first = -(-before // stride)  # of the whole ones
    whole = starts[first : max(first, (size - kernel + before) // stride + 1)]
    if len(starts) - len(whole) > _MOST_PARTS:
        return None
    together = [Run(whole[0], whole[-1] + kernel, kernel)] if whole else []
    ahead, behind = starts[:first], starts[first + len(whole) :]
    return [*_cut_windows(ahead, size, kernel), *together, *_cut_windows(behind, size, kernel)]


def _cut_windows(starts: Sequence[int], size: int, kernel: int) -> Iterator[Run]:
    """The windows that begin at `starts`, without what lies outside of the image."""
    for start in starts:
        begin, end = max(start, 0), min(start + kernel, size)
        yield Run(begin, end, end - begin)


def _sums(op: View, g: Graph, rows: Sequence[Run], columns: Sequence[Run]) -> ir.Value:
    codes = g.read(op["input"], layout=Layout.FIRST, domain=Domain.STORED)
    mean = partial(_mean, op, g, codes)
    made = [[mean(row, column) for column in columns] for row in rows]
    lines = [line[0] if len(line) == 1 else g.op("Concat", *line, axis=3) for line in made]
    return lines[0] if len(lines) == 1 else g.op("Concat", *lines, axis=2)


def _mean(op: View, g: Graph, codes: ir.Value, row: Run, column: Run) -> ir.Value:
    """The carried codes of the means over the windows of a part."""
    input, options = op["input"], op.options
    part = g.steps_of_codes(
        _part(g, codes, input.shape[1:3], row, column),
        input,
        step_of_codes(op, row.length * column.length),
    )
    dtype = NUMPY_DTYPE[g.weight_type]
    ones = np.ones((input.shape[3], 1, row.length, column.length), dtype)
    scale, zero = np.float32(1 / (row.length * column.length)), np.zeros((), dtype)
    weights = g.op(
        "DequantizeLinear",
        g.constants.add(ones, "ones"),
        g.constants.add(np.asarray(scale), "ones_scale"),
        g.constants.add(zero, "ones_zero_point"),
    )
    attributes: dict[str, Any] = {
        "kernel_shape": [row.length, column.length],
        "strides": [options.stride_h, options.stride_w],
        "group": input.shape[3],
    }
    return g.quantize_codes(g.op("Conv", part, weights, **attributes), input)


def _part(g: Graph, codes: ir.Value, sizes: tuple[int, ...], row: Run, column: Run) -> ir.Value:
    """The cells of a part; cells behind the last window of the image may stay."""
    cut = [
        (run.begin, run.end, axis)
        for run, size, axis in zip((row, column), sizes, (2, 3), strict=True)
        if run.begin or run.end < size
    ]
    if not cut:
        return codes
    return g.op("Slice", codes, *(g.ints(list(bounds)) for bounds in zip(*cut, strict=True)))
