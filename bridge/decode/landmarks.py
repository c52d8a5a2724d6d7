"""Landmarks in a picture from what a landmark network gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.face_mesh import (
    ATTENDED,
    ATTENDED_DEPTHS,
    FIRST_EYELIDS,
    MESH_POINTS,
    SECOND_EYELIDS,
)
from tflite_ort.decode.image_input import Projection, projected
from tflite_ort.decode.nodes import Nodes

# What MediaPipe divides a hand's depth by.
_HAND_DEPTH = 0.4
_POSE_POINTS, _POSE_EXTRA = 33, 2
_HEATMAP_KERNEL = 7
_LEAST_CONFIDENCE = 0.5


def hand(nodes: Nodes, raw: list[str], size: int, to: Projection) -> Outputs:
    """The 21 points of a hand.

    Args:
        raw: points [1, 63], whether there is a hand, whether it is a right one, points in metres.
        size: of the network's square input, in pixels.
    """
    points = _scaled(nodes, raw[0], 21, size, _HAND_DEPTH)
    return {
        "landmarks": (_in_picture(nodes, points, to), np.float32, [21, 3]),
        "world_landmarks": (_turned(nodes, nodes.reshape(raw[3], 21, 3), to), np.float32, [21, 3]),
        "score": (nodes.reshape(raw[1]), np.float32, []),
        "handedness": (nodes.reshape(raw[2]), np.float32, []),
    }


def hand_region(nodes: Nodes, raw: list[str], size: int, to: Projection) -> Outputs:
    """The middle of a hand, and the point below it at the edge of a circle around the hand.

    Args:
        raw: x and y of both in pixels.
    """
    points = nodes.div(nodes.reshape(raw[0], 2, 2), float(size))
    return {"points": (projected(nodes, points, to), np.float32, [2, 2])}


def face(nodes: Nodes, raw: list[str], size: int, to: Projection, count: int) -> Outputs:
    """The points of a face: `count` of the first output; whether there is one, the second.

    As in MediaPipe's task, depth is measured by how long a width of the region is in the picture, x
    in its widths and y in its heights. Its other graphs take the region's width.
    """
    points = _scaled(nodes, raw[0], count, size)
    across = nodes.part(to.matrix, 0, 1)
    long = nodes.op("ReduceL2", across, np.array([0, 1]), keepdims=0)
    return _face(nodes, points, raw[1], replace(to, depth=long), count)


def face_with_attention(nodes: Nodes, raw: list[str], size: int, to: Projection) -> Outputs:
    """The 478 points of a face: a mesh of 468, refined lips and eyes, and two irises.

    Args:
        raw: mesh, lips, eyes and irises, and whether there is a face.
    """
    mesh = nodes.reshape(raw[0], MESH_POINTS, 3)
    better = [nodes.reshape(each, -1, 2) for each in raw[1:6]]
    flat = nodes.join(nodes.part(mesh, 0, 2, axis=1), *better)
    depths = nodes.part(mesh, 2, 3, axis=1)
    around = nodes.op("Gather", depths, np.array([FIRST_EYELIDS, SECOND_EYELIDS]))
    means = nodes.op("ReduceMean", around, np.array([1]), keepdims=0)
    chosen = (
        nodes.op("Gather", flat, np.array(ATTENDED)),
        nodes.op("Gather", nodes.join(depths, means), np.array(ATTENDED_DEPTHS)),
    )
    points = nodes.div(nodes.join(*chosen, axis=1), float(size))
    return _face(nodes, points, raw[6], to, len(ATTENDED))


def _face(nodes: Nodes, points: str, logit: str, to: Projection, count: int) -> Outputs:
    score = nodes.op("Sigmoid", nodes.reshape(logit))
    return {
        "landmarks": (_in_picture(nodes, points, to), np.float32, [count, 3]),
        "score": (score, np.float32, []),
    }


def iris(nodes: Nodes, raw: list[str], size: int, to: Projection) -> Outputs:
    """71 points around an eye and 5 of its iris."""
    parts = [_scaled(nodes, each, count, size) for each, count in zip(raw, (71, 5), strict=True)]
    landmarks = _in_picture(nodes, nodes.join(*parts), to)
    return {"landmarks": (landmarks, np.float32, [76, 3])}


def pose(nodes: Nodes, raw: list[str], size: int, to: Projection) -> Outputs:
    """The 33 points of a body.

    Args:
        raw: points [1, 195] with visibility and presence, whether there is a body, a mask, maps of
            heat [1, H, W, 39], and points in metres [1, 117].
    """
    count = _POSE_POINTS + _POSE_EXTRA
    all_points = nodes.reshape(raw[0], 39, 5)
    points = nodes.div(nodes.part(all_points, 0, 3, axis=1), float(size))
    points = nodes.part(_refined(nodes, points, raw[3]), 0, count)
    projected_points = _in_picture(nodes, points, to)
    seen = nodes.op("Sigmoid", nodes.part(nodes.part(all_points, 3, 5, axis=1), 0, _POSE_POINTS))
    world = nodes.part(nodes.reshape(raw[4], 39, 3), 0, _POSE_POINTS)
    body, extra = (nodes.part(projected_points, *ends) for ends in ((0, 33), (33, 35)))
    return {
        "landmarks": (body, np.float32, [_POSE_POINTS, 3]),
        "world_landmarks": (_turned(nodes, world, to), np.float32, [_POSE_POINTS, 3]),
        "visibility": (nodes.pick(seen, 0, axis=1), np.float32, [_POSE_POINTS]),
        "presence": (nodes.pick(seen, 1, axis=1), np.float32, [_POSE_POINTS]),
        "auxiliary_landmarks": (extra, np.float32, [_POSE_EXTRA, 3]),
        "score": (nodes.reshape(raw[1]), np.float32, []),
        "mask": (nodes.op("Sigmoid", nodes.reshape(raw[2], size, size)), np.float32, [size, size]),
        "projection": (to.matrix, np.float32, [3, 2]),
    }


def _refined(nodes: Nodes, points: str, heat: str) -> str:
    """Points moved to the mean of the heat around them, where it is hot enough.

    The mean is over a square of cells around the point's own cell. It is computed as differences of
    the point's cell from every cell of a map, of which those in the square count.
    """
    maps = nodes.op("Sigmoid", nodes.op("Transpose", nodes.pick(heat, 0), perm=[2, 0, 1]))
    shape = nodes.op("Shape", maps)
    sizes = nodes.cast(nodes.pick(shape, 2, 1), np.float32)
    flat = nodes.part(points, 0, 2, axis=1)
    # Truncated, as a cast from float to integer is.
    cells = nodes.cast(nodes.cast(nodes.mul(flat, sizes), np.int64), np.float32)
    x, y = (nodes.reshape(nodes.pick(cells, axis, axis=1), -1, 1, 1) for axis in (0, 1))
    columns, rows = (_positions(nodes, nodes.pick(shape, axis)) for axis in (2, 1))
    columns, rows = nodes.reshape(columns, 1, 1, -1), nodes.reshape(rows, 1, -1, 1)
    near = nodes.op("And", _within(nodes, columns, x), _within(nodes, rows, y))
    weights = nodes.mul(maps, nodes.cast(near, np.float32))
    axes = np.array([1, 2])
    total = nodes.op("ReduceSum", weights, axes, keepdims=0)
    means = [
        nodes.div(nodes.op("ReduceSum", nodes.mul(weights, each), axes, keepdims=0), total)
        for each in (columns, rows)
    ]
    mean = nodes.op("Transpose", nodes.op("Concat", *_rows(nodes, means), axis=0), perm=[1, 0])
    hottest = nodes.op("ReduceMax", weights, axes, keepdims=0)
    hot = nodes.op("GreaterOrEqual", hottest, _LEAST_CONFIDENCE)
    inside = _inside(nodes, cells, sizes)
    better = nodes.op("Unsqueeze", nodes.op("And", hot, inside), np.array([1]))
    moved = nodes.op("Where", better, nodes.div(mean, sizes), flat)
    return nodes.join(moved, nodes.part(points, 2, 3, axis=1), axis=1)


def _rows(nodes: Nodes, vectors: list[str]) -> list[str]:
    return [nodes.reshape(each, 1, -1) for each in vectors]


def _positions(nodes: Nodes, count: str) -> str:
    return nodes.cast(nodes.op("Range", 0, count, 1), np.float32)


def _within(nodes: Nodes, cells: str, middle: str) -> str:
    """Whether cells are at most half a kernel from a middle."""
    far = nodes.op("Abs", nodes.sub(cells, middle))
    return nodes.op("LessOrEqual", far, float((_HEATMAP_KERNEL - 1) // 2))


def _inside(nodes: Nodes, cells: str, sizes: str) -> str:
    """Whether points are in a map, [N]."""
    low = nodes.op("ReduceMin", cells, np.array([1]), keepdims=0)
    over = nodes.op("ReduceMax", nodes.sub(cells, sizes), np.array([1]), keepdims=0)
    return nodes.op("And", nodes.op("GreaterOrEqual", low, 0.0), nodes.op("Less", over, 0.0))


def _scaled(nodes: Nodes, raw: str, count: int, size: int, depth: float = 1.0) -> str:
    """Points [count, 3] in 0..1 from pixels."""
    scale = np.array([size, size, size * depth], np.float32)
    return nodes.div(nodes.reshape(raw, count, 3), scale)


def _in_picture(nodes: Nodes, points: str, to: Projection) -> str:
    """Points [N, 3] of the tensor as points of the picture; z in widths of the picture."""
    flat = projected(nodes, nodes.part(points, 0, 2, axis=1), to)
    return nodes.join(flat, nodes.mul(nodes.part(points, 2, 3, axis=1), to.depth), axis=1)


def _turned(nodes: Nodes, points: str, to: Projection) -> str:
    """Points [N, 3] in metres, turned as the region is."""
    turn = nodes.matrix([[to.cosine, to.sine], [nodes.op("Neg", to.sine), to.cosine]])
    flat = nodes.op("MatMul", nodes.part(points, 0, 2, axis=1), turn)
    return nodes.join(flat, nodes.part(points, 2, 3, axis=1), axis=1)
