"""Detectors of one grid of cells: YOLO as ultralytics exports it, and NanoDet.

They are told by how many boxes they give: one or three for each cell of the grids of their strides.
Boxes are in pixels of the input, or in parts of its sides: the greatest number of all tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.detections import Choice, Outputs, best_detections, placed_detections
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.networks import Kind, Network
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.pixel_range import FROM_ZERO, IMAGENET

Array = npt.NDArray[Any]

_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (8, 16), (16, 32), (4, 8, 16, 32))
# Of an ultralytics export; others are as its own predictions.
_MIN_SCORE, _OVERLAP = 0.25, 0.7
# Anchors of a cell in version 5.
_ANCHORS = 3
# Coefficients of a mask, in the outputs of networks that segment.
_MASKS = 32
# A box of version 10: corners, score and class.
_LISTED = 6
# NanoDet: each side of a box is told by the mean of so many steps.
_STEPS = 8
_NANODET_CLASSES = 80
# What no network of these kinds has.
_MOST_CLASSES, _MOST_CELLS = 1 << 16, 1 << 20
# The most that a number in parts of the sides is.
_MOST_PART = 2.0


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of the grids of a network.

    Args:
        strides: in pixels of the input.
        size: height and width of it.
    """

    strides: tuple[int, ...]
    size: tuple[int, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(rows * columns for _, rows, columns in self._grids())

    def table(self) -> Array:
        """x, y and stride of each cell, in pixels, [N, 3]."""
        parts = []
        for stride, rows, columns in self._grids():
            y, x = np.mgrid[:rows, :columns].astype(np.float32) * stride
            parts.append(np.stack([x, y, np.full_like(x, stride)], -1).reshape(-1, 3))
        return np.concatenate(parts)

    def _grids(self) -> Iterator[tuple[int, int, int]]:
        for stride in self.strides:
            yield stride, -(-self.size[0] // stride), -(-self.size[1] // stride)


def yolo(network: Network) -> Kind | None:
    """A YOLO of version 5, 8 to 12, or 10."""
    size, shapes = network.picture, network.outputs
    if size is None or not shapes or len(shapes[0]) != 3 or shapes[0][0] != 1:
        return None
    masks = _MASKS if len(shapes) == 2 and len(shapes[1]) == 4 and _MASKS in shapes[1] else 0
    if len(shapes) > 1 and not masks:
        return None
    _, rows, columns = shapes[0]
    if min(rows, columns) > _MOST_CLASSES:
        return None
    if columns - masks == _LISTED and rows in (100, 300):
        return _detector(network, "YOLO v10", _listed(network, size, rows, columns))
    for strides in _STRIDES:
        cells = Cells(strides, size)
        if columns == cells.count and rows > 4 + masks:
            build = _dense(network, size, rows - masks - 4, transposed=True)
            return _detector(network, "YOLO v8", build, rows - masks - 4)
        if rows == _ANCHORS * cells.count and columns > 5 + masks:
            build = _dense(network, size, columns - masks - 5, objects=True)
            return _detector(network, "YOLO v5", build, columns - masks - 5)
    return None


def nanodet(network: Network) -> Kind | None:
    """A NanoDet whose outputs are joined."""
    size, shapes = network.picture, network.outputs
    if size is None or len(shapes) != 1 or len(shapes[0]) != 3 or shapes[0][0] != 1:
        return None
    _, rows, columns = shapes[0]
    classes = columns - 4 * _STEPS
    if classes != (len(network.labels) or _NANODET_CLASSES):
        return None
    for strides in ((8, 16, 32), (8, 16, 32, 64)):
        cells = Cells(strides, size)
        if rows == cells.count <= _MOST_CELLS:

            def build(
                nodes: Nodes, raw: list[str], to: Projection, cells: Cells = cells
            ) -> Outputs:
                return _distances(nodes, raw[0], cells, classes, to)

            how = network.prepared(IMAGENET, "NanoDet")
            how = None if how is None else replace(how, bgr=True)
            facts = {"network": "NanoDet"}
            return Kind("object detector", build, how, facts, classes=classes)
    return None


def _detector(network: Network, name: str, build: Any, classes: int = 0) -> Kind:
    how = network.prepared(FROM_ZERO, name)
    how = None if how is None else replace(how, letterbox=True, outside="gray")
    return Kind("object detector", build, how, {"network": name}, classes=classes)


def _dense(
    network: Network,
    size: tuple[int, int],
    classes: int,
    *,
    transposed: bool = False,
    objects: bool = False,
) -> Any:
    """Builds the detections of boxes with a score for each class, [1, N, 4 + classes].

    Args:
        transposed: the boxes are along the last axis.
        objects: after the box it is told how sure the network is of any object.
    """
    count = network.outputs[0][2 if transposed else 1]

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        choice = Choice(nodes, classes, _MIN_SCORE, _OVERLAP)
        table = nodes.reshape(raw[0], *((-1, count) if transposed else (count, -1)))
        table = nodes.op("Transpose", table, perm=[1, 0]) if transposed else table
        first = 5 if objects else 4
        scores = _sure(nodes, nodes.part(table, first, first + classes, axis=1))
        if objects:
            scores = nodes.mul(scores, _sure(nodes, nodes.part(table, 4, 5, axis=1)))
        boxes = _in_parts(nodes, nodes.part(table, 0, 4, axis=1), size)
        middle, half = nodes.part(boxes, 0, 2, axis=1), nodes.part(boxes, 2, 4, axis=1)
        half = nodes.mul(half, 0.5)
        corners = nodes.join(nodes.sub(middle, half), nodes.add(middle, half), axis=1)
        return best_detections(nodes, corners, scores, choice, to, by_class=True)

    return build


def _listed(network: Network, size: tuple[int, int], rows: int, columns: int) -> Any:
    """Builds the detections of boxes that are chosen already: corners, score and class."""

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        table = nodes.reshape(raw[0], rows, columns)
        corners = _in_parts(nodes, nodes.part(table, 0, 4, axis=1), size)
        scores, kinds = (nodes.pick(table, place, axis=1) for place in (4, 5))
        return placed_detections(nodes, corners, scores, kinds, to, _MIN_SCORE)

    return build


def _distances(nodes: Nodes, raw: str, cells: Cells, classes: int, to: Projection) -> Outputs:
    """The detections of a NanoDet: how far the sides are from a cell, as means of steps."""
    choice, table = Choice(nodes, classes, 0.4, 0.6), cells.table()
    rows = nodes.reshape(raw, len(table), -1)
    scores = _sure(nodes, nodes.part(rows, 0, classes, axis=1))
    told = nodes.reshape(nodes.part(rows, classes, 1 << 30, axis=1), -1, 4, _STEPS)
    steps = np.arange(_STEPS, dtype=np.float32).reshape(_STEPS, 1)
    far = nodes.reshape(nodes.op("MatMul", nodes.op("Softmax", told, axis=-1), steps), -1, 4)
    far = nodes.mul(far, table[:, 2:])
    first = nodes.sub(table[:, :2], nodes.part(far, 0, 2, axis=1))
    last = nodes.add(table[:, :2], nodes.part(far, 2, 4, axis=1))
    height, width = cells.size
    sides = np.array([width, height, width, height], np.float32)
    corners = nodes.div(nodes.join(first, last, axis=1), sides)
    return best_detections(nodes, corners, scores, choice, to, by_class=True)


def _sure(nodes: Nodes, scores: str) -> str:
    """Scores from 0 to 1; those that are not are logits."""
    axes = np.array([0, 1])
    low, high = (nodes.op(kind, scores, axes, keepdims=1) for kind in ("ReduceMin", "ReduceMax"))
    logits = nodes.op("Or", nodes.op("Less", low, 0.0), nodes.op("Greater", high, 1.0))
    return nodes.op("Where", logits, nodes.op("Sigmoid", scores), scores)


def _in_parts(nodes: Nodes, boxes: str, size: tuple[int, int]) -> str:
    """Boxes [N, 4] in parts of the input's sides, which they may be already."""
    height, width = size
    most = nodes.op("ReduceMax", boxes, np.array([0, 1]), keepdims=1)
    pixels = nodes.op("Greater", most, _MOST_PART)
    sides = np.array([[width, height, width, height]], np.float32)
    return nodes.div(boxes, nodes.op("Where", pixels, sides, np.float32(1)))
