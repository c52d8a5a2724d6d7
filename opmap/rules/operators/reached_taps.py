"""Convolutions whose outermost weights meet nothing but padding.

A window of 3x3 cells with a dilation of 12, over a map of 6x6 cells, has one cell inside the map.
The other weights multiply zeros, so the convolution is one of fewer weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.convolution_operands import WindowAxis, image_windows
from tflite_ort.opmap.rules.operators.absorbed_pad import over_pad
from tflite_ort.schema import OperatorView, Padding, TensorType
from tflite_ort.schema.values.semantics import conv_output_size, explicit_padding

# Rows or columns of a filter: the first that is kept, and the first behind them.
Kept = tuple[int, int]


def within_image(op: OperatorView[Any], g: Graph) -> OperatorView[Any]:
    """CONV_2D or DEPTHWISE_CONV_2D with the rows and columns of its filter [*, kh, kw, *] that meet
    cells of the image; a PAD with zeros before it counts as padding."""
    filter = op["filter"]
    if not (filter.is_constant and _multiplies_alike(op)):
        return op
    source = over_pad(op, g)
    windows = image_windows(source, filter.shape[1:3])
    if windows is None:
        return op
    kept = _reached_range(windows[0]), _reached_range(windows[1])
    if kept == tuple((0, axis.kernel) for axis in windows):
        return op
    padding = next(
        (p for p in (Padding.VALID, Padding.SAME) if _pads_alike(p, windows, kept)), None
    )
    if padding is None or not _is_finite(op):
        return op
    return _cut(source, g, kept, padding)


def _multiplies_alike(op: OperatorView[Any]) -> bool:
    """Whether the operator multiplies codes by codes or floats by floats: an image that is rounded
    first is rounded in another way for a single cell."""
    return op["input"].is_quantized or op["filter"].type is TensorType.FLOAT32


def _is_finite(op: OperatorView[Any]) -> bool:
    """Whether zero times each weight is zero."""
    filter = op["filter"]
    assert filter.data is not None
    return filter.type is not TensorType.FLOAT32 or bool(np.isfinite(filter.data).all())


def _reached_range(axis: WindowAxis) -> Kept:
    """All weights between the first and the last one that meets a cell; all where none does."""
    found = [tap for tap in range(axis.kernel) if _is_reached(axis, tap)]
    return (found[0], found[-1] + 1) if found else (0, axis.kernel)


def _is_reached(axis: WindowAxis, tap: int) -> bool:
    """Whether a weight meets a cell of the image in any window."""
    offset = tap * axis.dilation - axis.before
    first = max(0, math.ceil(-offset / axis.stride))
    return first < axis.count and offset + first * axis.stride < axis.cells


def _pads_alike(
    padding: Padding, windows: tuple[WindowAxis, WindowAxis], kept: tuple[Kept, Kept]
) -> bool:
    """Whether an operator with this padding has as many windows, at the same places."""
    for axis, (first, end) in zip(windows, kept, strict=True):
        sizes = axis.cells, end - first, axis.stride, axis.dilation
        before, _ = explicit_padding(padding, *sizes)
        if before != axis.before - first * axis.dilation:
            return False
        if conv_output_size(padding, *sizes) != axis.count:
            return False
    return True


def _cut(
    op: OperatorView[Any], g: Graph, kept: tuple[Kept, Kept], padding: Padding
) -> OperatorView[Any]:
    (top, bottom), (left, right) = kept
    filter, place, options = op["filter"], op.names.index("filter"), op.options
    assert filter.data is not None
    whole = filter.data
    data = g.constants.part(filter.constant, kept, lambda: whole[:, top:bottom, left:right])
    cut = replace(filter, constant=data, shape=data.shape)
    inputs = (*op.inputs[:place], cut, *op.inputs[place + 1 :])
    # A single weight along an axis has no dilation.
    dilations = {
        "dilation_h_factor": options.dilation_h_factor if bottom - top > 1 else 1,
        "dilation_w_factor": options.dilation_w_factor if right - left > 1 else 1,
    }
    options = replace(options, padding=padding, **dilations)
    return replace(op, inputs=inputs, options=options, edges=((0, 0), (0, 0)))
