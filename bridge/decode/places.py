"""Where the pixels of a region are, as nodes: what `tflite_ort.decode.warp` computes with numpy.

Corners are rounded to float32 as OpenCV rounds them, and places are polynomials of column and row
in float64. In a region that is not turned, places in the middle between two 32nds go to the even
one.
"""

from __future__ import annotations

import math

import numpy as np

from tflite_ort.decode.nodes import Nodes

FRACTIONS = 32.0
DEGREES = np.float32(180.0 / math.pi)


def places(nodes: Nodes, centre: str, extent: str, angle: str, height: int, width: int) -> str:
    """Where the elements of a tensor are, in 32nds of pixels: x and y, float32 [2, N].

    Args:
        centre, extent: x and y, width and height of the region in pixels, float32 [2].
        angle: by how much it is turned, in radians, float32.
    """
    upper_left, upper_right, lower_right, lower_left = _corners(nodes, centre, extent, angle)
    left, up = nodes.sub(upper_right, lower_right), nodes.sub(lower_left, lower_right)
    skew = nodes.sub(nodes.add(nodes.sub(upper_left, upper_right), lower_right), lower_left)
    area = _cross(nodes, left, up)
    g = nodes.div(_cross(nodes, skew, up), area)
    h = nodes.div(_cross(nodes, left, skew), area)
    by_column = _slope(nodes, upper_left, upper_right, g, width)
    by_row = _slope(nodes, upper_left, lower_left, h, height)
    columns = np.arange(width, dtype=np.float64).reshape(1, 1, width)
    rows = np.arange(height, dtype=np.float64).reshape(1, height, 1)
    start = nodes.reshape(upper_left, 2, 1, 1)
    down = nodes.add(nodes.mul(nodes.reshape(by_row, 2, 1, 1), rows), start)
    at = nodes.add(nodes.mul(nodes.reshape(by_column, 2, 1, 1), columns), down)
    factor = nodes.sub(np.float64(FRACTIONS), nodes.mul(h, rows * (FRACTIONS / height)))
    factor = nodes.sub(factor, nodes.mul(g, columns * (FRACTIONS / width)))
    whole = nodes.op("Round", nodes.mul(at, factor))
    return nodes.reshape(nodes.cast(whole, np.float32), 2, -1)


def _corners(nodes: Nodes, centre: str, extent: str, angle: str) -> list[str]:
    """Upper left, upper right, lower right and lower left: float64 [2], of numbers of float32."""
    degrees = nodes.cast(nodes.mul(angle, DEGREES), np.float64)
    turn = nodes.div(nodes.mul(degrees, np.float64(math.pi)), np.float64(180))
    halves = [
        nodes.mul(nodes.reshape(nodes.cast(nodes.op("Sin", each), np.float32), 1), 0.5)
        for each in (turn, nodes.add(turn, np.float64(math.pi / 2)))
    ]
    sine, cosine = halves
    width, height = nodes.pick(extent, 0), nodes.pick(extent, 1)
    along = nodes.mul(height, nodes.join(sine, nodes.op("Neg", cosine)))
    across = nodes.mul(width, nodes.join(cosine, sine))
    lower_left = nodes.sub(nodes.sub(centre, along), across)
    upper_left = nodes.sub(nodes.add(centre, along), across)
    twice = nodes.mul(centre, 2.0)
    upper_right, lower_right = nodes.sub(twice, lower_left), nodes.sub(twice, upper_left)
    found = (upper_left, upper_right, lower_right, lower_left)
    return [nodes.cast(each, np.float64) for each in found]


def _cross(nodes: Nodes, a: str, b: str) -> str:
    both = nodes.mul(a, nodes.pick(b, 1, 0))
    return nodes.sub(nodes.pick(both, 0), nodes.pick(both, 1))


def _slope(nodes: Nodes, start: str, end: str, bent: str, count: int) -> str:
    """How far it is from an element to the next one, [2]."""
    whole = nodes.add(nodes.sub(end, start), nodes.mul(end, bent))
    return nodes.div(whole, np.float64(count))
