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
    g.write(op.outputs[0], _filled(g, boxes, (size, 4)))
    classes = g.cast(classes, ir.DataType.FLOAT)
    for output, values in zip(op.outputs[1:3], (classes, scores), strict=True):
        g.write(output, _filled(g, g.reshape(values, (-1,)), (size,)))
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
    rows = _part(g, suppressed(g, options, boxes, best, options.max_detections), 2, 3)
    rows = g.reshape(rows, (-1,))
    scores = g.op("Gather", g.reshape(scores, (-1, options.num_classes)), rows)
    each = min(options.max_classes_per_detection, options.num_classes)
    if each > _MOST_CLASSES:
        raise Untranslatable(f"{each} classes for each detection, at most {_MOST_CLASSES}")
    if each == 1:  # of equal ones the first
        last = g.ints([1])
        classes = g.op("ArgMax", scores, axis=1, keepdims=0)
        best = g.op("ReduceMax", scores, last, keepdims=0)
    else:
        best, classes = greatest(g, scores, options.num_classes, each)
    return rows, classes, best, g.op("Shape", rows)


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
    """(0, class, row) of the selected boxes, ordered by class, then by descending score.

    ONNX keeps scores above a threshold, TFLite also those that are equal to it.
    """
    below = np.nextafter(np.float32(options.nms_score_threshold), np.float32(-np.inf))
    limits = (np.int64(most), np.float32(options.nms_iou_threshold), below)
    return g.op("NonMaxSuppression", boxes, scores, *(g.constant([limit]) for limit in limits))


def _part(g: Graph, value: ir.Value, start: int, end: int, axis: int = -1) -> ir.Value:
    return g.op("Slice", value, *(g.ints([n]) for n in (start, end, axis)))


def _filled(g: Graph, value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """`value` filled with zeros at its end, with a batch axis: [1, *shape]."""
    whole = g.op("Concat", value, g.constant(np.zeros(shape, np.float32)), axis=0)
    return g.reshape(_part(g, whole, 0, shape[0], axis=0), (1, *shape))
