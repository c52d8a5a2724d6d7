"""Inputs of networks that are no plain picture: the points of a hand, what is pointed at.

A gesture embedder takes a hand's points in the picture, which hand it is, and its points in metres.
Points are turned upright, moved so that the wrist is at 0, and divided by how large the hand is.
Numbers as in MediaPipe's graphs. A network for masks takes a picture with a fourth channel, which
says what is pointed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection, normalised
from tflite_ort.decode.networks import Build, Kind
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.picture_input import PictureInput

POINTS = 21
# So that a hand of one point is not divided by 0.
_LEAST_SIZE = 1e-5
_SIZE = "size"


def add_hand_inputs(nodes: Nodes, tensors: Sequence[str], shapes: Sequence[Sequence[int]]) -> None:
    """Make the inputs of a gesture embedder from what hand landmarks are decoded to.

    New inputs are ``landmarks`` [21, 3] in 0..1 of the picture, ``handedness`` (of a right hand),
    ``world_landmarks`` [21, 3], ``size`` (width and height of the picture in pixels), and
    ``rotation``, by which the picture was turned.

    Args:
        tensors: the inputs: points, whether the hand is a right one, points in metres.
        shapes: of each.
    """
    points = nodes.input("landmarks", np.float32, [POINTS, 3])
    right = nodes.input("handedness", np.float32, [])
    world = nodes.input("world_landmarks", np.float32, [POINTS, 3])
    size = nodes.input("size", np.float32, [2])
    angle = nodes.op("Neg", nodes.input("rotation", np.float32, [], 0.0))
    cosine, sine = nodes.op("Cos", angle), nodes.op("Sin", angle)
    turn = nodes.matrix([[cosine, sine], [nodes.op("Neg", sine), cosine]])
    longer = nodes.op("ReduceMax", size, np.array([0]))
    scale = nodes.join(nodes.div(size, longer), np.ones(1, np.float32))
    made = (
        _normalised(nodes, nodes.mul(points, scale), turn),
        right,
        _normalised(nodes, world, turn),
    )
    for tensor, value, shape in zip(tensors, made, shapes, strict=True):
        nodes.named(tensor, nodes.reshape(value, *shape))


def _normalised(nodes: Nodes, points: str, turn: str) -> str:
    """Points [21, 3] turned, from the first one on, in parts of the hand's longer side."""
    away = nodes.sub(points, nodes.part(points, 0, 1))
    flat = nodes.op("MatMul", nodes.part(away, 0, 2, axis=1), turn)
    axes = np.array([0])
    sides = nodes.sub(*(nodes.op(each, flat, axes) for each in ("ReduceMax", "ReduceMin")))
    longer = nodes.op("ReduceMax", sides, np.array([1]))
    both = nodes.join(flat, nodes.part(away, 2, 3, axis=1), axis=1)
    return nodes.div(both, nodes.add(longer, _LEAST_SIZE))


def embedding(nodes: Nodes, raw: Sequence[str], to: Projection, count: int) -> Outputs:
    """The vector that a network gives."""
    return {"embedding": (nodes.reshape(raw[0], count), np.float32, [count])}


def pointed(name: str, how: PictureInput, build: Build) -> Kind:
    """The kind of a network that begins at a picture of its own size, uint8 [height, width, 4], and
    at width and height of the picture that the masks are for.

    Args:
        build: writes the nodes after it.
    """

    def begin(nodes: Nodes, names: list[str]) -> None:
        image = nodes.input("image", np.uint8, [how.height, how.width, 4])
        nodes.input(_SIZE, np.float32, [2])
        planes = nodes.op("Transpose", nodes.cast(image, np.float32), perm=[2, 0, 1])
        values = nodes.reshape(planes, 1, 4, how.height, how.width)
        nodes.named(names[0], normalised(nodes, values, how))

    def masks(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        return build(nodes, raw, replace(to, size=_SIZE))

    return Kind(name, masks, begin=begin, facts={"size": [how.height, how.width]})
