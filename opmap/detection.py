"""Boxes picked among overlapping ones: NON_MAX_SUPPRESSION_V4 and V5.

Where numpy kernels are available they run these operators. Of boxes with equal scores TFLite's heap
picks any, and ONNX Runtime picks the first. And TFLite selects a box without an area repeatedly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.idioms.indices import affordable, failing, sizes_of
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, Untranslatable


@translator(Op.NON_MAX_SUPPRESSION_V4, versions=(1, 1))
def non_max_suppression_v4(op: OperatorView[Any], g: Graph) -> None:
    """NonMaxSuppression, and zeros after the selected indices."""
    most, selected, count = _selected(op, g)
    _write_lists(op, g, [(0, selected)], most, count)


@translator(Op.NON_MAX_SUPPRESSION_V5, versions=(1, 1), constants=("sigma",))
def non_max_suppression_v5(op: OperatorView[Any], g: Graph) -> None:
    """NonMaxSuppression and the scores; ONNX has no soft suppression, which only lowers scores."""
    sigma = op["sigma"].data
    if sigma is None or sigma.any():
        raise Untranslatable(f"sigma is {sigma}: ONNX has no soft suppression")
    most, selected, count = _selected(op, g)
    scores = g.op("Gather", g.read(op["scores"]), selected)
    _write_lists(op, g, [(0, selected), (1, scores)], most, count)


def _selected(op: OperatorView[Any], g: Graph) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The number of boxes wanted, the indices of the selected ones, and the number of these.

    All are int64: [1], [K] and [1].
    """
    if g.target.fallback:
        raise Untranslatable("equal scores, or boxes without an area, would be taken otherwise")
    most = g.reshape(sizes_of(g, op["max_output_size"]), (1,))
    most = affordable(g, most, most, op)
    boxes = g.op("Unsqueeze", g.read(op["boxes"]), g.ints([0]))
    scores = g.op("Unsqueeze", g.read(op["scores"]), g.ints([0, 1]))
    lowest = g.reshape(g.read(op["score_threshold"]), (1,))
    selected = g.op("NonMaxSuppression", boxes, scores, most, _overlap(op, g), lowest)
    indices = g.op("Gather", selected, g.ints(2), axis=1)
    return most, indices, g.op("Shape", indices)


def _overlap(op: OperatorView[Any], g: Graph) -> ir.Value:
    """The threshold for ONNX: the float just below that of TFLite.

    In ONNX an overlap has to exceed it, in TFLite to reach it. The graph fails outside (0, 1].
    """
    threshold = op["iou_threshold"]
    if threshold.data is not None:
        limit = np.float32(threshold.data.reshape(-1)[0])
        if not 0 < limit <= 1:
            raise Untranslatable(f"iou_threshold is {limit}, outside (0, 1]")
        return g.constant([np.nextafter(limit, np.float32(0))], np.float32)
    value = g.reshape(g.read(threshold), (1,))
    inside = g.op(
        "And",
        g.op("Greater", value, g.constant(0, np.float32)),
        g.op("LessOrEqual", value, g.constant(1, np.float32)),
    )
    shape = failing(g, g.ints([1]), g.op("Not", inside))
    below = g.constant(np.nextafter(np.float32(1), np.float32(0)))
    return g.op("Reshape", g.op("Mul", value, below), shape)


def _write_lists(
    op: OperatorView[Any],
    g: Graph,
    lists: list[tuple[int, ir.Value]],
    most: ir.Value,
    count: ir.Value,
) -> None:
    """Write the lists, filled with zeros up to the number of boxes wanted, and their length."""
    pads = g.op("Concat", g.ints([0]), g.op("Sub", most, count), axis=0)
    for position, value in lists:
        output = op.outputs[position]
        typed = g.cast(value, output.dtype)
        g.write(output, g.op("Pad", typed, pads))
    number = g.cast(count, op.outputs[-1].dtype)
    g.write(op.outputs[-1], g.reshape(number, ()))
