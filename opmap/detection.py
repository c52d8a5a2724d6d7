"""Boxes picked among overlapping ones: NON_MAX_SUPPRESSION_V4 and V5.

Where numpy kernels are available they run these operators. Of boxes with equal scores TFLite's heap
picks any, and ONNX Runtime picks the first. And TFLite selects a box without an area repeatedly. A
graph looks whether there are any: then it does the moves of TFLite's heap, which are slow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import affordable, agreeing, failing, sizes_of
from tflite_ort.opmap.idioms.suppression import (
    Suppression,
    decayed_by_heap,
    has_odd_boxes,
    picked,
    picked_by_heap,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorView, Untranslatable
from tflite_ort.schema.values.sizes import may_differ


class _Selected(NamedTuple):
    """The number of boxes wanted [1], the indices of the selected ones [K], and their scores."""

    most: ir.Value
    indices: ir.Value
    scores: ir.Value


@translator(Op.NON_MAX_SUPPRESSION_V4, versions=(1, 1))
def non_max_suppression_v4(op: OperatorView[Any], g: Graph) -> None:
    """NonMaxSuppression, and zeros after the selected indices."""
    selected = _selected(op, g, None)
    _write_lists(op, g, [selected.indices], selected.most)


@translator(Op.NON_MAX_SUPPRESSION_V5, versions=(1, 1))
def non_max_suppression_v5(op: OperatorView[Any], g: Graph) -> None:
    """The same with the scores, which overlaps lower if there is a sigma."""
    selected = _selected(op, g, op["sigma"])
    _write_lists(op, g, [selected.indices, selected.scores], selected.most)


def _selected(op: OperatorView[Any], g: Graph, sigma: TensorView | None) -> _Selected:
    """A NonMaxSuppression where it selects as TFLite does, otherwise a Loop; with a sigma always
    one."""
    if g.target.fallback:
        raise Untranslatable("equal scores, or boxes without an area, would be taken otherwise")
    most = g.reshape(sizes_of(g, op["max_output_size"]), (1,))
    most = affordable(g, most, most, op)
    boxes, scores = _boxes(op, g), g.read(op["scores"])
    lowest = g.reshape(g.read(op["score_threshold"]), (1,))
    decay, threshold = _decay(g, sigma), op["iou_threshold"]
    by = Suppression(g.reshape(g.read(threshold), (1,)), lowest, decay)
    below = _overlap(g, threshold) if decay is None and _takes(threshold) else None

    def suppressed() -> tuple[ir.Value, ir.Value]:
        if below is None:
            return picked(g, boxes, scores, most, by)
        batch = g.op("Unsqueeze", boxes, g.ints([0])), g.op("Unsqueeze", scores, g.ints([0, 1]))
        found = g.op("NonMaxSuppression", *batch, most, below, lowest)
        indices = g.op("Gather", found, g.ints(2), axis=1)
        return indices, g.op("Gather", scores, indices)

    count = 0 if op["scores"].dynamic else op["scores"].shape[0]
    if not count:
        return _Selected(most, *suppressed())
    odd = has_odd_boxes(g, boxes, scores, lowest, count)
    by_heap = picked_by_heap if decay is None else decayed_by_heap
    heaped = g.body([], lambda _: by_heap(g, boxes, scores, most, by, count))
    plain = g.body([], lambda _: suppressed())
    made = g.op_multi("If", odd, outputs=2, then_branch=heaped, else_branch=plain)
    return _Selected(most, *made)


def _boxes(op: OperatorView[Any], g: Graph) -> ir.Value:
    """The boxes, in a graph that fails if they are not as many as scores, of four numbers."""
    boxes, shape, wanted = g.read(op["boxes"]), op["boxes"].shape, (*op["scores"].shape, 4)
    if not may_differ(shape, wanted):
        return boxes
    return g.op("Reshape", boxes, agreeing(g, g.op("Shape", boxes), shape, wanted), allowzero=1)


def _decay(g: Graph, sigma: TensorView | None) -> ir.Value | None:
    """By what a squared overlap is multiplied in the exponent, [1]; None: no score is lowered."""
    if sigma is None:
        return None
    if sigma.data is not None:
        width = np.float32(sigma.data.reshape(-1)[0])
        if width < 0:
            raise Untranslatable(f"sigma is {width}, below 0")
        return g.constant([-0.5 / float(width)], np.float32) if width > 0 else None
    value, zero = g.reshape(g.read(sigma), (1,)), g.constant(0, np.float32)
    shape = failing(g, g.ints([1]), g.op("Less", value, zero))
    decay = g.op("Div", g.constant(-0.5, np.float32), value)
    lowers = g.op("Greater", value, zero)
    return g.op("Reshape", g.op("Where", lowers, decay, zero), shape)


def _takes(threshold: TensorView) -> bool:
    """Whether ONNX has this threshold: in (0, 1], which a graph checks of a computed one."""
    return threshold.data is None or 0 < float(threshold.data.reshape(-1)[0]) <= 1


def _overlap(g: Graph, threshold: TensorView) -> ir.Value:
    """The threshold for ONNX: the float just below that of TFLite.

    In ONNX an overlap has to exceed it, in TFLite to reach it. The graph fails outside (0, 1].
    """
    if threshold.data is not None:
        limit = np.float32(threshold.data.reshape(-1)[0])
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


def _write_lists(op: OperatorView[Any], g: Graph, lists: list[ir.Value], most: ir.Value) -> None:
    """Write the lists, filled with zeros up to the number of boxes wanted, and their length."""
    count = g.op("Shape", lists[0])
    pads = g.op("Concat", g.ints([0]), g.op("Sub", most, count), axis=0)
    for output, value in zip(op.outputs, lists, strict=False):
        g.write(output, g.op("Pad", g.cast(value, output.dtype), pads))
    number = g.cast(count, op.outputs[-1].dtype)
    g.write(op.outputs[-1], g.reshape(number, ()))
