"""TFLite_Detection_PostProcess: decodes and selects the boxes of an SSD model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.partial_sort import greatest
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import custom_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.values.well_known_options import DetectionPostProcessOptions, map_options

Options = DetectionPostProcessOptions
# Boxes that are picked one after the other, by 17 nodes each.
_MOST_STEPS = 200
# The score of no box. Some runtimes give the lowest finite number as the greatest of none.
_NONE = np.finfo(np.float32).min
_MOST_CLASSES = 16  # for a detection: the number of nodes that sort them is quadratic


@custom_translator(
    "TFLite_Detection_PostProcess",
    versions=(1, 1),
)
def tflite_detection_postprocess(op: OperatorView[Any], g: Graph) -> None:
    """NonMaxSuppression of the decoded boxes, filled with zeros to the number of detections."""
    options = map_options(op, DetectionPostProcessOptions)
    boxes = decoded(op, g, options)
    scores = g.read(op["class_predictions"])
    if op["class_predictions"].shape[2] > options.num_classes:
        scores = _part(g, scores, 1, 1 + options.num_classes)
    pick = regular if options.use_regular_nms else fast
    rows, classes, scores, count = pick(g, options, boxes, scores)
    boxes = g.op("Gather", g.reshape(boxes, (-1, 4)), rows)
    if not options.use_regular_nms:
        boxes, classes, scores = _for_each_class(g, options, boxes, classes, scores)
    size = options.max_detections * options.max_classes_per_detection
    classes = g.cast(classes, ir.DataType.FLOAT)
    lists = [boxes, *(g.reshape(values, (-1,)) for values in (classes, scores))]
    if g.target.fixed_counts:
        each = 1 if options.use_regular_nms else options.max_classes_per_detection
        there = g.op("Mul", count, g.ints([each]))
        places = np.arange(_rows(options) * each)
        shapes = ((-1, 1), (-1,), (-1,))
        lists = [
            _cut(g, values, g.ints(places.reshape(shape)), there)
            for values, shape in zip(lists, shapes, strict=True)
        ]
    for output, values, last in zip(op.outputs, lists, ((4,), (), ()), strict=False):
        g.write(output, _filled(g, values, (size, *last)))
    g.write(op.outputs[3], g.cast(count, ir.DataType.FLOAT))


def decoded(op: OperatorView[Any], g: Graph, options: Options) -> ir.Value:
    """[1, N, 4]: least y and x, greatest y and x, in float64 up to the corners as TFLite."""
    encoded, anchors = (
        g.cast(g.read(op[name]), ir.DataType.DOUBLE) for name in ("box_encodings", "anchors")
    )
    count = op["box_encodings"].shape[1]
    if op["anchors"].shape[0] > count:
        anchors = _part(g, anchors, 0, count, axis=0)
    places, sizes = _part(g, anchors, 0, 2), _part(g, anchors, 2, 4)
    scales = [options.y_scale, options.x_scale, options.h_scale, options.w_scale]
    centre, half = (
        g.op("Div", _part(g, encoded, at, at + 2), g.constant(scales[at : at + 2], np.float64))
        for at in (0, 2)
    )
    centre = g.op("Add", g.op("Mul", centre, sizes), places)
    half = g.op("Mul", g.op("Mul", g.constant(0.5, np.float64), g.op("Exp", half)), sizes)
    centre, half = (g.cast(value, ir.DataType.FLOAT) for value in (centre, half))
    return g.op("Concat", g.op("Sub", centre, half), g.op("Add", centre, half), axis=2)


# Rows [M], their classes and scores [M, K] or [M], and their number [1].
Picked = tuple[ir.Value, ir.Value, ir.Value, ir.Value]


def fast(g: Graph, options: Options, boxes: ir.Value, scores: ir.Value) -> Picked:
    """One suppression over all classes, with the best score of every box."""
    best = g.op("ReduceMax", scores, g.ints([2]), keepdims=0)
    best = g.op("Unsqueeze", best, g.ints([1]))
    if g.target.fixed_counts:
        rows, kept = in_steps(g, options, boxes, best, options.max_detections)
        rows, count = g.reshape(rows, (-1,)), _count(g, kept)
    else:
        rows = _part(g, suppressed(g, options, boxes, best, options.max_detections), 2, 3)
        rows = g.reshape(rows, (-1,))
        count = g.op("Shape", rows)
    scores = g.op("Gather", g.reshape(scores, (-1, options.num_classes)), rows)
    each = min(options.max_classes_per_detection, options.num_classes)
    if each > _MOST_CLASSES:
        raise Untranslatable(f"{each} classes for each detection, at most {_MOST_CLASSES}")
    if each == 1:  # of equal ones the first
        classes = g.op("ArgMax", scores, axis=1, keepdims=1)
        best = g.op("ReduceMax", scores, g.ints([1]), keepdims=1)
    else:
        best, classes = greatest(g, scores, options.num_classes, each)
    return rows, classes, best, count


def _for_each_class(
    g: Graph, options: Options, boxes: ir.Value, classes: ir.Value, scores: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Repeat boxes for their classes; a class that does not exist has zeros."""
    if options.max_classes_per_detection == 1:
        return boxes, classes, scores
    each = min(options.max_classes_per_detection, options.num_classes)
    boxes = g.op("Unsqueeze", boxes, g.ints([1]))
    boxes = g.op("Tile", boxes, g.ints([1, each, 1]))
    if missing := options.max_classes_per_detection - each:
        boxes = g.op("Pad", boxes, g.ints([0, 0, 0, 0, missing, 0]))
        pads = g.ints([0, 0, 0, missing])
        classes, scores = g.op("Pad", classes, pads), g.op("Pad", scores, pads)
    return g.reshape(boxes, (-1, 4)), classes, scores


def regular(g: Graph, options: Options, boxes: ir.Value, scores: ir.Value) -> Picked:
    """A suppression for every class, then the best of all; of equal ones the first class."""
    most = min(options.detections_per_class, options.max_detections)
    by_class = g.op("Transpose", scores, perm=[0, 2, 1])
    if g.target.fixed_counts:
        rows, kept = in_steps(g, options, boxes, by_class, most)
        whole = g.ints([_rows(options)])
        best, order = g.op_multi("TopK", g.reshape(kept, (-1,)), whole, outputs=2)
        rows = g.op("Gather", g.reshape(rows, (-1,)), order)
        return rows, g.op("Div", order, g.ints(most)), best, _count(g, best)
    picked = suppressed(g, options, boxes, by_class, most)
    kept = g.op("GatherND", by_class, picked)
    most_of_all = g.ints([options.max_detections])
    count = g.smaller(g.op("Shape", kept), most_of_all)
    best, order = g.op_multi("TopK", kept, count, outputs=2)
    picked = g.op("Gather", picked, order)
    classes, rows = (g.reshape(_part(g, picked, at, at + 1), (-1,)) for at in (1, 2))
    return rows, classes, best, count


def suppressed(
    g: Graph, options: Options, boxes: ir.Value, scores: ir.Value, most: int
) -> ir.Value:
    """(0, class, row) of the selected boxes, ordered by class, then by descending score."""
    limits = (np.int64(most), np.float32(options.nms_iou_threshold), _below(options))
    return g.op("NonMaxSuppression", boxes, scores, *(g.constant([limit]) for limit in limits))


def _below(options: Options) -> np.float32:
    """The number just below the least score: ONNX keeps scores above a threshold, TFLite also those
    that are equal to it."""
    least, lowest = np.float32(options.nms_score_threshold), np.float32(-np.inf)
    return np.float32(np.nextafter(least, lowest))


def _rows(options: Options) -> int:
    """How many boxes there can be at most."""
    if not options.use_regular_nms:
        return options.max_detections
    most = min(options.detections_per_class, options.max_detections)
    return min(options.max_detections, options.num_classes * most)


def in_steps(
    g: Graph, options: Options, boxes: ir.Value, scores: ir.Value, most: int
) -> tuple[ir.Value, ir.Value]:
    """As `suppressed`, with the steps of TFLite: the best box drops itself and what overlaps it.

    Returns:
        rows and their scores, [classes, most] each; where none is left, the score is the lowest
        number.
    """
    if most > _MOST_STEPS:
        raise Untranslatable(f"{most} boxes, one after the other; at most {_MOST_STEPS}")
    low, high = (g.reshape(_part(g, boxes, at, at + 2), (-1, 2)) for at in (0, 2))
    area = g.op("ReduceProd", g.op("Sub", high, low), g.ints([1]), keepdims=0)
    overlap = g.constant(options.nms_iou_threshold, np.float32)
    left = g.op("Squeeze", scores, g.ints([0]))
    numbers = g.op("Range", g.ints(0), g.reshape(g.op("Shape", area), ()), g.ints(1))
    left = g.op(
        "Where", g.op("Greater", left, g.constant(_below(options))), left, g.constant(_NONE)
    )
    rows, kept, zero = [], [], g.constant(0, np.float32)
    for step in range(most):
        rows.append(row := g.op("ArgMax", left, axis=1, keepdims=1))
        kept.append(g.op("ReduceMax", left, g.ints([1]), keepdims=1))
        if step + 1 < most:
            ends = g.op("Min", high, g.op("Gather", high, row))
            sides = g.op("Sub", ends, g.op("Max", low, g.op("Gather", low, row)))
            common = g.op("ReduceProd", g.op("Max", sides, zero), g.ints([2]), keepdims=0)
            union = g.op("Sub", g.op("Add", area, g.op("Gather", area, row)), common)
            covered = g.op("Greater", g.op("Div", common, union), overlap)
            gone = g.op("Or", covered, g.op("Equal", numbers, row))
            left = g.op("Where", gone, g.constant(_NONE), left)
    return g.op("Concat", *rows, axis=1), g.op("Concat", *kept, axis=1)


def _count(g: Graph, scores: ir.Value) -> ir.Value:
    """How many of them are numbers of boxes, [1]."""
    found = g.cast(g.op("Greater", scores, g.constant(_NONE)), ir.DataType.INT64)
    return g.op("ReduceSum", g.reshape(found, (-1,)), keepdims=1)


def _cut(g: Graph, values: ir.Value, places: ir.Value, count: ir.Value) -> ir.Value:
    """The values at the first `count` positions, and zeros at the others."""
    return g.op("Where", g.op("Less", places, count), values, g.constant(0, np.float32))


def _part(g: Graph, value: ir.Value, start: int, end: int, axis: int = -1) -> ir.Value:
    return g.op("Slice", value, *(g.ints([n]) for n in (start, end, axis)))


def _filled(g: Graph, value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """`value` filled with zeros at its end, with a batch axis: [1, *shape]."""
    whole = g.op("Concat", value, g.constant(np.zeros(shape, np.float32)), axis=0)
    return g.reshape(_part(g, whole, 0, shape[0], axis=0), (1, *shape))
