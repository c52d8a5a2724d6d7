"""TFLite_Detection_PostProcess: decodes and selects the boxes of an SSD model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.detection import overlaps
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView, TensorView
from tflite_ort.schema.values.well_known_options import DetectionPostProcessOptions, map_options

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
Options = DetectionPostProcessOptions


@custom_kernel(
    "TFLite_Detection_PostProcess",
    versions=(1, 1),
)
def tflite_detection_postprocess(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Boxes [1, N, 4], classes [1, N], scores [1, N] and their number [1]; all are float32.

    After the last detection there are zeros; TFLite's fast suppression does not write there.
    """
    options = map_options(op, DetectionPostProcessOptions)
    encodings, predictions, anchors = (
        _real(array, op[name]) for array, name in zip(inputs, op.names, strict=True)
    )
    boxes = decoded(options, encodings[0], anchors[: encodings.shape[1]])
    if (boxes[:, :2] > boxes[:, 2:]).any():
        raise KernelError("a box has a negative height or width")
    scores = predictions[0][:, predictions.shape[2] - options.num_classes :]
    pick = regular if options.use_regular_nms else fast
    return pick(options, boxes, scores).outputs(options)


@record
class Detections:
    """Selected boxes [M, 4] with their best classes and scores [M, K]."""

    boxes: Floats
    classes: Indices
    scores: Floats

    def outputs(self, options: Options) -> Outputs:
        """The outputs of the operator, filled with zeros up to the numbers of boxes and classes."""
        size = options.max_detections * options.max_classes_per_detection
        each = 1 if options.use_regular_nms else options.max_classes_per_detection
        count, classes = self.classes.shape
        boxes, *lists = np.zeros((size, 4), np.float32), *np.zeros((2, size), np.float32)
        for of_class in range(classes):
            places = slice(of_class, count * each, each)
            boxes[places] = self.boxes
            lists[0][places], lists[1][places] = self.classes[:, of_class], self.scores[:, of_class]
        return boxes[None], lists[0][None], lists[1][None], np.array([count], np.float32)


def _real(array: Array, tensor: TensorView) -> Floats:
    if array.dtype == np.float32:
        return array
    if tensor.quantization is None:
        raise KernelError(f"{array.dtype} tensor {tensor.name!r} without a scale")
    zero_point = np.float32(tensor.quantization.scalar_zero_point)
    return (array.astype(np.float32) - zero_point) * np.float32(tensor.quantization.scalar_scale)


def decoded(options: Options, encodings: Floats, anchors: Floats) -> Floats:
    """[N, 4]: least y and x, greatest y and x, of boxes given relative to anchors.

    Both are (y, x) of a centre, height and width; for boxes the latter two are logarithms.
    """
    scales = np.array([options.y_scale, options.x_scale, options.h_scale, options.w_scale])
    with np.errstate(all="ignore"):
        encoded, anchor = encodings[:, :4].astype(np.float64) / scales, anchors.astype(np.float64)
        centre = (encoded[:, :2] * anchor[:, 2:] + anchor[:, :2]).astype(np.float32)
        half = (0.5 * np.exp(encoded[:, 2:]) * anchor[:, 2:]).astype(np.float32)
        return np.concatenate([centre - half, centre + half], axis=1)


def fast(options: Options, boxes: Floats, scores: Floats) -> Detections:
    """One suppression over all classes, with the best score of every box."""
    count = min(options.max_classes_per_detection, options.num_classes)
    picked = suppressed(options, boxes, scores.max(axis=1), options.max_detections)
    classes = np.array([best(row, count) for row in scores[picked]], np.int64)
    classes = classes.reshape(-1, count)
    return Detections(boxes[picked], classes, np.take_along_axis(scores[picked], classes, 1))


def regular(options: Options, boxes: Floats, scores: Floats) -> Detections:
    """A suppression for every class, then the best of all; of equal ones the first class."""
    most = min(options.detections_per_class, options.max_detections)
    picked = [suppressed(options, boxes, column, most) for column in scores.T]
    rows = np.concatenate([*picked, np.empty(0, np.int64)])
    classes = np.repeat(np.arange(len(picked)), [len(one) for one in picked])
    order = np.argsort(-scores[rows, classes], kind="stable")[: options.max_detections]
    rows, classes = rows[order], classes[order]
    return Detections(boxes[rows], classes[:, None], scores[rows, classes][:, None])


def suppressed(options: Options, boxes: Floats, scores: Floats, most: int) -> Indices:
    """The boxes by descending score, without those that overlap an earlier one too much."""
    candidates = np.flatnonzero(scores >= np.float32(options.nms_score_threshold))
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    selected: list[int] = []
    with np.errstate(all="ignore"):
        while len(selected) < most and len(candidates):
            first, candidates = candidates[0], candidates[1:]
            selected.append(int(first))
            overlap = overlaps(boxes[first], boxes[candidates])
            candidates = candidates[~(overlap > np.float32(options.nms_iou_threshold))]
    return np.array(selected, np.int64)


def best(scores: Floats, count: int) -> list[int]:
    """The positions of the `count` greatest, in descending order.

    Equal ones have the order of C++'s std::partial_sort, which TFLite uses: the first `count` form
    a heap with the least on top, and a greater element replaces the top.
    """
    if count == 1:
        return [int(np.argmax(scores))]
    heap = list(range(count))
    for hole in reversed(range(count // 2)):
        _settle(heap, scores, hole, heap[hole])
    for position in range(count, len(scores)):
        if scores[position] > scores[heap[0]]:
            _settle(heap, scores, 0, position)
    order = []
    while heap:
        order.append(heap[0])
        last = heap.pop()
        if heap:
            _settle(heap, scores, 0, last)
    return order[::-1]


def _settle(heap: list[int], scores: Floats, hole: int, position: int) -> None:
    """Put `position` at `hole`, and let it sink past lesser children that are not greater."""
    while (child := 2 * hole + 1) < len(heap):
        if child + 1 < len(heap) and not scores[heap[child + 1]] > scores[heap[child]]:
            child += 1
        if scores[heap[child]] > scores[position]:
            break
        heap[hole], hole = heap[child], child
    heap[hole] = position
