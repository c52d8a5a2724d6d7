"""Bodies by their points: MoveNet and PoseNet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection, projected
from tflite_ort.decode.networks import Kind, Network
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.pixel_range import PIXELS

# The points, as COCO names them.
BODY_POINTS = (
    *("nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder"),
    *("left elbow", "right elbow", "left wrist", "right wrist", "left hip", "right hip"),
    *("left knee", "right knee", "left ankle", "right ankle"),
)
_COUNT = len(BODY_POINTS)
# Of MoveNet for several bodies: the points, a box, and a score.
_BODIES, _NUMBERS = 6, 3 * _COUNT + 5
_POSENET = ((128.0,), (128.0,))


def movenet(network: Network) -> Kind | None:
    """A MoveNet for one body or for several."""
    single = network.outputs == [(1, 1, _COUNT, 3)]
    if network.picture is None or not (single or network.outputs == [(1, _BODIES, _NUMBERS)]):
        return None
    how = network.prepared(PIXELS, "MoveNet")
    how = None if how is None else replace(how, letterbox=True, outside="zeros")

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        rows = nodes.reshape(raw[0], -1, 3 * _COUNT if single else _NUMBERS)
        table = nodes.reshape(nodes.part(rows, 0, 3 * _COUNT, axis=1), -1, _COUNT, 3)
        at = nodes.pick(table, 1, 0, axis=2)
        sure = nodes.reshape(nodes.part(table, 2, 3, axis=2), -1, _COUNT)
        if single:
            score = nodes.op("ReduceMean", sure, np.array([1]), keepdims=0)
        else:
            score = nodes.pick(rows, _NUMBERS - 1, axis=1)
        return _bodies(nodes, at, sure, score, to)

    facts = {"network": "MoveNet", "points": list(BODY_POINTS)}
    return Kind("body points", build, how, facts)


def posenet(network: Network) -> Kind | None:
    """A PoseNet: maps of heat, and offsets from their cells, of which one body is read."""
    shapes, size = network.outputs, network.picture
    if size is None or len(shapes) != 4 or any(len(shape) != 4 for shape in shapes):
        return None
    rows, columns = shapes[0][1:3]
    if [shape[3] for shape in shapes[:2]] != [_COUNT, 2 * _COUNT] or min(rows, columns) < 2:
        return None
    if any(shape[1:3] != (rows, columns) for shape in shapes):
        return None
    steps = np.array([(size[0] - 1) / (rows - 1), (size[1] - 1) / (columns - 1)], np.float32)
    sides = np.array([size[1], size[0]], np.float32)

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        heat = nodes.reshape(raw[0], rows * columns, _COUNT)
        cells = nodes.op("ArgMax", heat, axis=0, keepdims=0)
        hottest = nodes.op("ReduceMax", heat, np.array([0]), keepdims=0)
        offsets = nodes.reshape(raw[1], rows * columns, 2, _COUNT)
        index = nodes.op("Expand", nodes.reshape(cells, 1, 1, _COUNT), np.array([1, 2, _COUNT]))
        moved = nodes.reshape(nodes.op("GatherElements", offsets, index, axis=0), 2, _COUNT)
        both = nodes.join(
            nodes.reshape(nodes.op("Div", cells, columns), 1, _COUNT),
            nodes.reshape(nodes.op("Mod", cells, columns), 1, _COUNT),
        )
        at = nodes.mul(nodes.cast(both, np.float32), steps.reshape(2, 1))
        at = nodes.op("Transpose", nodes.pick(nodes.add(at, moved), 1, 0), perm=[1, 0])
        at = nodes.reshape(nodes.div(at, sides), 1, _COUNT, 2)
        sure = nodes.reshape(nodes.op("Sigmoid", hottest), 1, _COUNT)
        score = nodes.op("ReduceMean", sure, np.array([1]), keepdims=0)
        return _bodies(nodes, at, sure, score, to)

    how = network.prepared(_POSENET, "PoseNet")
    return Kind("body points", build, how, {"network": "PoseNet", "points": list(BODY_POINTS)})


def _bodies(nodes: Nodes, at: str, sure: str, score: str, to: Projection) -> Outputs:
    """Points [N, 17, 2] in 0..1 of the tensor, how sure they are, [N, 17], and the bodies, [N]."""
    return {
        "keypoints": (projected(nodes, at, to), np.float32, ["bodies", _COUNT, 2]),
        "keypoint_scores": (sure, np.float32, ["bodies", _COUNT]),
        "scores": (score, np.float32, ["bodies"]),
    }
