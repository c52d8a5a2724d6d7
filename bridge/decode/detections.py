"""Boxes, scores and keypoints from what a detector gives; the anchors of MediaPipe's detectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.image_input import Projection, projected
from tflite_ort.decode.nodes import Nodes

Array = npt.NDArray[Any]
Outputs = dict[str, tuple[str, npt.DTypeLike, list[int | str]]]

# Before the sigmoid.
_MOST_LOGIT = 100.0
_UNLIMITED = 1 << 30
# The score of a class that is not to be found.
_NEVER = float(np.finfo(np.float32).min)


def anchored_detections(
    nodes: Nodes,
    raw: str,
    logits: str,
    anchors: Array,
    scale: tuple[int, int],
    to: Projection,
    overlap: float,
) -> Outputs:
    """The detections of a single-shot detector, after weighted non-maximum suppression.

    Args:
        raw: [1, N, 4 + 2 K]: middle, size and K keypoints relative to the anchors, in pixels.
        logits: [1, N, 1].
        anchors: [N, 2].
        scale: width and height of the network's input.
        overlap: the default of ``min_suppression_threshold``.
    """
    min_score = nodes.input("min_score", np.float32, [], 0.5)
    threshold = nodes.input("min_suppression_threshold", np.float32, [], overlap)
    most = nodes.input("max_results", np.int64, [], _UNLIMITED)
    points = nodes.div(nodes.reshape(raw, len(anchors), -1, 2), np.array(scale, np.float32))
    clipped = nodes.op("Clip", nodes.reshape(logits, -1), -_MOST_LOGIT, _MOST_LOGIT)
    scores = nodes.op("Sigmoid", clipped)
    points, scores = _candidates(nodes, points, scores, anchors, min_score)
    kept, corners, keypoints = _merged(nodes, points, scores, threshold, most)
    return {
        "boxes": (_boxes(nodes, corners, to), np.float32, ["detections", 4]),
        "scores": (nodes.op("Gather", scores, kept), np.float32, ["detections"]),
        "keypoints": (projected(nodes, keypoints, to), np.float32, ["detections", "keypoints", 2]),
    }


def _candidates(
    nodes: Nodes, points: str, scores: str, anchors: Array, min_score: str
) -> tuple[str, str]:
    """Points [M, 2 + K, 2] of those that score high enough, the first and last corner of the box
    first, and their scores [M]."""
    size = nodes.pick(points, 1, axis=1)
    sized = nodes.op("ReduceMin", size, np.array([1]), keepdims=0)
    good = nodes.op("And", nodes.op("GreaterOrEqual", scores, min_score), _positive(nodes, sized))
    places = nodes.reshape(nodes.op("NonZero", good), -1)
    points, scores = (nodes.op("Gather", each, places) for each in (points, scores))
    middle = nodes.op("Unsqueeze", nodes.op("Gather", anchors, places), np.array([1]))
    half = nodes.mul(nodes.part(points, 1, 2, axis=1), 0.5)
    centre = nodes.add(nodes.part(points, 0, 1, axis=1), middle)
    marks = nodes.add(nodes.part(points, 2, 1 << 30, axis=1), middle)
    corners = [nodes.sub(centre, half), nodes.add(centre, half)]
    return nodes.join(*corners, marks, axis=1), scores


def _positive(nodes: Nodes, sizes: str) -> str:
    return nodes.op("GreaterOrEqual", sizes, 0.0)


def _merged(
    nodes: Nodes, points: str, scores: str, threshold: str, most: str
) -> tuple[str, str, str]:
    """Which candidates are kept, best first; their corners [K, 2, 2] and keypoints.

    A kept candidate takes with it all that overlap it more than `threshold` and that no better one
    took; its points are their means, weighted by their scores.
    """
    boxes = nodes.reshape(nodes.part(points, 0, 2, axis=1), -1, 4)
    sides = nodes.pick(boxes, 1, 0, 3, 2, axis=1)
    chosen = nodes.op(
        "NonMaxSuppression",
        nodes.op("Unsqueeze", sides, np.array([0])),
        nodes.op("Unsqueeze", scores, np.array([0, 1])),
        most,
        threshold,
    )
    kept = nodes.reshape(nodes.pick(chosen, 2, axis=1), -1)
    overlaps = nodes.op("Greater", _overlap(nodes, boxes, kept), threshold)
    own = nodes.op("Equal", nodes.op("Unsqueeze", kept, np.array([1])), _counted(nodes, scores))
    near = nodes.cast(nodes.op("Or", overlaps, own), np.float32)
    taken = nodes.op("CumSum", near, np.array(0), exclusive=1)
    free = nodes.cast(nodes.op("Equal", taken, 0.0), np.float32)
    weights = nodes.mul(nodes.mul(near, free), scores)
    total = nodes.op("ReduceSum", weights, np.array([1]), keepdims=1)
    flat = nodes.op("Reshape", points, nodes.join(nodes.op("Shape", scores), _width(nodes, points)))
    means = nodes.div(nodes.op("MatMul", weights, flat), total)
    shape = nodes.join(nodes.op("Shape", kept), nodes.op("Shape", points, start=1))
    means = nodes.op("Reshape", means, shape)
    return kept, nodes.part(means, 0, 2, axis=1), nodes.part(means, 2, 1 << 30, axis=1)


def _width(nodes: Nodes, points: str) -> str:
    """How many numbers a candidate has, [1]."""
    return nodes.op("ReduceProd", nodes.op("Shape", points, start=1), np.array([0]), keepdims=1)


def _counted(nodes: Nodes, values: str) -> str:
    """0, 1, ... as many as there are `values`."""
    return nodes.op("Range", 0, nodes.op("Size", values), 1)


def _overlap(nodes: Nodes, boxes: str, kept: str) -> str:
    """[K, N]: intersection over union of the kept boxes with all."""
    ours = nodes.op("Unsqueeze", nodes.op("Gather", boxes, kept), np.array([1]))
    low = nodes.op("Max", *(nodes.part(each, 0, 2, axis=-1) for each in (ours, boxes)))
    high = nodes.op("Min", *(nodes.part(each, 2, 4, axis=-1) for each in (ours, boxes)))
    common = _area(nodes, nodes.op("Max", nodes.sub(high, low), 0.0))
    sizes = [
        _area(nodes, nodes.sub(nodes.part(each, 2, 4, axis=-1), nodes.part(each, 0, 2, axis=-1)))
        for each in (ours, boxes)
    ]
    return nodes.div(common, nodes.sub(nodes.add(*sizes), common))


def _area(nodes: Nodes, sizes: str) -> str:
    return nodes.mul(nodes.pick(sizes, 0, axis=-1), nodes.pick(sizes, 1, axis=-1))


def _boxes(nodes: Nodes, corners: str, to: Projection) -> str:
    """Left, top, right and bottom in the picture of boxes [K, 2, 2], of which a rotated one is
    bounded."""
    picks = np.array([[0, 1], [2, 1], [0, 3], [2, 3]])
    flat = nodes.reshape(corners, -1, 4)
    four = nodes.op("Gather", flat, picks, axis=1)
    turned = projected(nodes, four, to)
    axis = np.array([1])
    ends = [nodes.op(kind, turned, axis, keepdims=0) for kind in ("ReduceMin", "ReduceMax")]
    return nodes.join(*ends, axis=1)


@dataclass(frozen=True, slots=True)
class Scored:
    """How a detector of several classes tells boxes and scores.

    Args:
        anchors: [N, 4]: middle y and x, height and width in 0..1.
        scale: what y, x, height and width are divided by.
        exponential: sizes are logarithms.
        sigmoid: scores are logits.
    """

    anchors: Array
    scale: Array
    exponential: bool
    sigmoid: bool


def scored_detections(
    nodes: Nodes, raw: str, scores: str, classes: int, how: Scored, to: Projection, overlap: float
) -> Outputs:
    """The detections of a detector of several classes without post-processing.

    Args:
        raw: [1, N, 4 or more]: middle y and x, height and width, relative to the anchors.
        scores: [1, N, classes].
        overlap: the default of ``min_suppression_threshold``.
    """
    choice = Choice(nodes, classes, 0.0, overlap)
    count = len(how.anchors)
    boxes = _from_anchors(nodes, nodes.reshape(raw, count, -1), how)
    rows = nodes.reshape(scores, count, classes)
    return best_detections(nodes, boxes, rows, choice, to, sigmoid=how.sigmoid)


class Choice:
    """The inputs that say which detections are given: those with a score, of allowed classes, that
    overlap no surer one.

    Args:
        min_score, overlap: the defaults of ``min_score`` and ``min_suppression_threshold``.
    """

    def __init__(self, nodes: Nodes, classes: int, min_score: float, overlap: float) -> None:
        self.min_score = nodes.input("min_score", np.float32, [], min_score)
        self.threshold = nodes.input("min_suppression_threshold", np.float32, [], overlap)
        self.most = nodes.input("max_results", np.int64, [], _UNLIMITED)
        self.allowed = nodes.input("allowed", np.bool_, [classes], np.ones(classes))


def best_detections(
    nodes: Nodes,
    boxes: str,
    scores: str,
    choice: Choice,
    to: Projection,
    *,
    sigmoid: bool = False,
    by_class: bool = False,
) -> Outputs:
    """Take the best class of each box, then drop boxes that overlap a better one.

    Args:
        boxes: left, top, right and bottom, [N, 4].
        scores: [N, classes].
        sigmoid: scores are logits.
        by_class: boxes of two classes may overlap.
    """
    allowed = choice.allowed
    rated = nodes.op("Where", allowed, scores, _NEVER)
    kinds = nodes.op("ArgMax", rated, axis=1, keepdims=0)
    best = nodes.op("ReduceMax", rated, np.array([1]), keepdims=0)
    if sigmoid:
        best = nodes.op("Sigmoid", nodes.op("Clip", best, -_MOST_LOGIT, _MOST_LOGIT))
    some = nodes.op("ReduceMax", nodes.cast(allowed, np.uint8), np.array([0]), keepdims=0)
    good = nodes.op("GreaterOrEqual", best, choice.min_score)
    good = nodes.op("And", good, nodes.cast(some, np.bool_))
    sized = nodes.op("ReduceMin", nodes.sub(*_ends(nodes, boxes)), np.array([1]), keepdims=0)
    good = nodes.op("And", good, _positive(nodes, sized))
    places = nodes.reshape(nodes.op("NonZero", good), -1)
    boxes, best, kinds = (nodes.op("Gather", each, places) for each in (boxes, best, kinds))
    sides = nodes.pick(boxes, 1, 0, 3, 2, axis=1)
    if by_class:  # so far from each other that those of two classes do not overlap
        step = nodes.add(nodes.op("ReduceMax", boxes, np.array([0, 1]), keepdims=1), 1.0)
        apart = nodes.mul(nodes.cast(nodes.reshape(kinds, -1, 1), np.float32), step)
        sides = nodes.add(sides, apart)
    chosen = nodes.op(
        "NonMaxSuppression",
        nodes.op("Unsqueeze", sides, np.array([0])),
        nodes.op("Unsqueeze", best, np.array([0, 1])),
        choice.most,
        choice.threshold,
    )
    kept = nodes.reshape(nodes.pick(chosen, 2, axis=1), -1)
    boxes, best, kinds = (nodes.op("Gather", each, kept) for each in (boxes, best, kinds))
    corners = nodes.reshape(boxes, -1, 2, 2)
    return {
        "boxes": (_boxes(nodes, corners, to), np.float32, ["detections", 4]),
        "scores": (best, np.float32, ["detections"]),
        "classes": (kinds, np.int64, ["detections"]),
    }


def _from_anchors(nodes: Nodes, raw: str, how: Scored) -> str:
    """Left, top, right and bottom [N, 4] of all boxes."""
    anchors, scale = how.anchors.astype(np.float32), how.scale.astype(np.float32)
    middle = nodes.div(nodes.part(raw, 0, 2, axis=1), scale[:2])
    middle = nodes.add(nodes.mul(middle, anchors[:, 2:]), anchors[:, :2])
    size = nodes.div(nodes.part(raw, 2, 4, axis=1), scale[2:])
    size = nodes.mul(nodes.op("Exp", size) if how.exponential else size, anchors[:, 2:])
    half = nodes.mul(size, 0.5)
    corners = nodes.join(nodes.sub(middle, half), nodes.add(middle, half), axis=1)
    return nodes.pick(corners, 1, 0, 3, 2, axis=1)


def _ends(nodes: Nodes, boxes: str) -> tuple[str, str]:
    """The last and the first corners of boxes [N, 4]."""
    return nodes.part(boxes, 2, 4, axis=1), nodes.part(boxes, 0, 2, axis=1)


def listed_detections(
    nodes: Nodes, boxes: str, classes: str, scores: str, count: str, to: Projection
) -> Outputs:
    """The detections of a model that ends in TFLite_Detection_PostProcess.

    Args:
        boxes: [1, N, 4]: top, left, bottom, right in 0..1.
        classes, scores: [1, N].
        count: how many there are, [1].
    """
    sides = nodes.pick(nodes.reshape(boxes, -1, 4), 1, 0, 3, 2, axis=1)
    scores, classes = nodes.reshape(scores, -1), nodes.reshape(classes, -1)
    numbers = nodes.cast(_counted(nodes, scores), np.float32)
    there = nodes.op("Less", numbers, nodes.reshape(count, 1))
    return placed_detections(nodes, sides, scores, classes, to, 0.0, there)


def placed_detections(
    nodes: Nodes,
    boxes: str,
    scores: str,
    classes: str,
    to: Projection,
    least: float,
    there: str = "",
) -> Outputs:
    """Detections that are chosen already, those with a score that is high enough.

    Args:
        boxes: left, top, right, bottom in 0..1, [N, 4].
        scores, classes: [N].
        least: the default of ``min_score``.
        there: which of them there are, [N]; empty for all.
    """
    min_score = nodes.input("min_score", np.float32, [], least)
    most = nodes.input("max_results", np.int64, [], _UNLIMITED)
    good = nodes.op("GreaterOrEqual", scores, min_score)
    good = nodes.op("And", there, good) if there else good
    found = nodes.reshape(nodes.op("NonZero", good), -1)
    places = nodes.op("Slice", found, np.array([0]), nodes.reshape(most, 1), np.array([0]))
    corners = nodes.reshape(nodes.op("Gather", boxes, places), -1, 2, 2)
    kinds = nodes.cast(nodes.op("Gather", classes, places), np.int64)
    return {
        "boxes": (_boxes(nodes, corners, to), np.float32, ["detections", 4]),
        "scores": (nodes.op("Gather", scores, places), np.float32, ["detections"]),
        "classes": (kinds, np.int64, ["detections"]),
    }


# Anchors -----------------------------------------------------------------------------------------
#
# All are of size 1, so that an anchor is a point: the middle of a cell of a feature map. Layers of
# the same stride share a map, and each has so many anchors in a cell.


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a detector.

    Args:
        strides: of each layer, in pixels of the input.
        anchors: that a layer has in a cell.
    """

    strides: tuple[int, ...]
    anchors: int = 2


# As MediaPipe's graphs have them: the short-range face and palm detectors, the full-range face
# detector, the pose detector.
PUBLISHED = (Layers((8, 16, 16, 16)), Layers((4,), 1), Layers((8, 16, 32, 32, 32)))

# Anchors of any detector: those that were published have 896 to 2,944.
_MOST = 1 << 20


def anchors_of(layers: Layers, height: int, width: int) -> Array:
    """The points, float32 [N, 2] as x and y in 0..1, for an input of this size."""
    return np.concatenate(list(_maps(layers, height, width))).astype(np.float32)


def _maps(layers: Layers, height: int, width: int) -> Iterator[Array]:
    for rows, columns, repeated in _sizes(layers, height, width):
        y, x = np.mgrid[:rows, :columns]
        points = np.stack([(x + 0.5) / columns, (y + 0.5) / rows], -1).reshape(-1, 2)
        yield np.repeat(points, repeated, axis=0)


def _sizes(layers: Layers, height: int, width: int) -> Iterator[tuple[int, int, int]]:
    """The rows, the columns and the anchors of a cell of each feature map."""
    for stride, same in groupby(layers.strides):
        yield -(-height // stride), -(-width // stride), layers.anchors * len(list(same))


def anchors_for(count: int, height: int, width: int) -> Array | None:
    """Published anchors of which there are `count` at this input size; None where none fit."""
    if count > _MOST:
        return None
    for layers in PUBLISHED:
        if count == sum(math.prod(sizes) for sizes in _sizes(layers, height, width)):
            return anchors_of(layers, height, width)
    return None
