"""Where MediaPipe's CPU path reads the pixels of a region, to the last bit.

MediaPipe has OpenCV warp the region. OpenCV rounds the places of pixels to 32nds. In a region whose
sides are whole numbers of 32nds many places lie in the middle between two of them, and the last
bits of the matrix decide. So the matrix is computed here as OpenCV computes it: corners in float32,
the transformation to the tensor as a system of eight linear equations, its inverse, and the places
in blocks.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.values.kept_tables import kept_table

Array = npt.NDArray[Any]
Rows = list[list[float]]

FRACTIONS = 32.0
_DEGREES = 180.0 / math.pi
# How much a region is turned at least whose places do not meet those of a grid.
_LEAST_TURN = 1e-3
# In pixels: beyond these there are no numbers that tell places apart.
_LEAST_AREA, _FARTHEST = 1e-6, 1e7
# In so many rows, and so many places, each is computed from the first one of its row.
_ROWS, _IN_BLOCK = 16, 1024


def places(roi: Array, picture: tuple[int, int], tensor: tuple[int, int], letterbox: bool) -> Array:
    """Where the elements of a tensor are in a picture, in 32nds of pixels: x and y, float32 [2, N].
    A region without an area in float32 is one place.

    Args:
        roi: middle x and y, width and height in 0..1, and the rotation in radians, float32.
        picture: its width and height.
        tensor: width and height of it.
        letterbox: the region is made larger until it has the tensor's proportions.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        corners = _corners(roi, picture, tensor, letterbox)
    if not _extended(corners):
        return np.zeros((2, tensor[0] * tensor[1]), np.float32)
    if _upright(corners):
        at = _in_blocks(_inverse(_perspective(corners, *map(float, tensor))), *tensor)
    else:
        at = _by_products(_to_picture(corners, *tensor), *tensor)
    return np.rint(at, out=at).astype(np.float32).reshape(2, -1)


def _corners(
    roi: Array, picture: tuple[int, int], tensor: tuple[int, int], letterbox: bool
) -> list[tuple[float, float]]:
    """Lower left, upper left, upper right and lower right, in float32."""
    sizes = np.array([*picture, *picture], np.float32)
    x, y, width, height = roi[:4] * sizes
    if letterbox:
        ratio = np.float32(tensor[1]) / np.float32(tensor[0])
        if ratio > height / width:
            height = width * ratio
        else:
            width = height / ratio
    degrees = float(roi[4] * np.float32(_DEGREES))
    angle = degrees * math.pi / 180.0
    half = np.float32(0.5)
    b, a = np.float32(math.cos(angle)) * half, np.float32(math.sin(angle)) * half
    two = np.float32(2)
    first = x - a * height - b * width, y + b * height - a * width
    second = x + a * height - b * width, y - b * height - a * width
    found = (first, second, *((two * x - each[0], two * y - each[1]) for each in (first, second)))
    return [(float(each[0]), float(each[1])) for each in found]


def _extended(corners: list[tuple[float, float]]) -> bool:
    """Whether a region has an area that can be computed with."""
    (x, y), (x0, y0), (x1, y1) = corners[:3]
    area = abs((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0))
    return _LEAST_AREA < area < math.inf and max(map(abs, (x0, y0))) < _FARTHEST


def _perspective(corners: list[tuple[float, float]], width: float, height: float) -> list[float]:
    """The matrix [3, 3] from the picture to the tensor, by rows."""
    to = ((0.0, height), (0.0, 0.0), (width, 0.0), (width, height))
    upper, lower = [], []
    for (x, y), (u, v) in zip(corners, to, strict=True):
        upper.append([x, y, 1.0, 0.0, 0.0, 0.0, _single(-x * u), _single(-y * u), u])
        lower.append([0.0, 0.0, 0.0, x, y, 1.0, _single(-x * v), _single(-y * v), v])
    return [*_solved(upper + lower), 1.0]


def _single(number: float) -> float:
    return float(np.float32(number))


def _solved(rows: Rows) -> list[float]:
    """The solution of linear equations, each with what it gives last, by elimination."""
    count = len(rows)
    for place in range(count):
        best = max(range(place, count), key=lambda row: abs(rows[row][place]))
        rows[place], rows[best] = rows[best], rows[place]
        pivot = rows[place]
        factor = -1 / pivot[place]
        for row in rows[place + 1 :]:
            if row[place] != 0.0:
                alpha = row[place] * factor
                row[place:] = [
                    a + alpha * b for a, b in zip(row[place:], pivot[place:], strict=True)
                ]
    found = [0.0] * count
    for place in reversed(range(count)):
        row = rows[place]
        rest = row[count]
        for other in range(place + 1, count):
            rest -= row[other] * found[other]
        found[place] = rest / row[place]
    return found


def _inverse(m: list[float]) -> list[float]:
    a, b, c, d, e, f, g, h, i = m
    scale = 1.0 / (a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
    return [
        each * scale
        for each in (
            *(e * i - f * h, c * h - b * i, b * f - c * e),
            *(f * g - d * i, a * i - c * g, c * d - a * f),
            *(d * h - e * g, b * g - a * h, a * e - b * d),
        )
    ]


def _upright(corners: list[tuple[float, float]]) -> bool:
    """Whether places may lie in the middle between two 32nds."""
    (x, y), (other_x, other_y) = corners[:2]
    across, along = abs(other_x - x), abs(other_y - y)
    return min(across, along) < _LEAST_TURN * max(across, along)


@cache
def _grid(width: int, height: int) -> tuple[Array, Array, Array]:
    """The first column of each block, each row, and the columns within a block."""
    block = min(_IN_BLOCK // min(_ROWS, height), width)
    starts = np.arange(0, width, block, dtype=np.float64)
    rows = np.arange(height, dtype=np.float64)[:, np.newaxis]
    return starts, rows, np.arange(block, dtype=np.float64)


def _in_blocks(matrix: list[float], width: int, height: int) -> Array:
    """The places, not yet rounded, to the last bit: [2, height, width]."""
    starts, rows, further = _grid(width, height)

    def linear(x: float, y: float, constant: float) -> Array:
        first = x * starts + y * rows + constant
        return first[:, :, np.newaxis] + x * further

    scale = FRACTIONS / linear(*matrix[6:])
    both = [linear(*matrix[start : start + 3]) * scale for start in (0, 3)]
    return np.stack([each.reshape(height, -1)[:, :width] for each in both])


def _to_picture(corners: list[tuple[float, float]], width: int, height: int) -> list[float]:
    """The inverse matrix without a system of equations, within a few of its last bits."""
    (x3, y3), (x0, y0), (x1, y1), (x2, y2) = corners
    left_x, left_y, up_x, up_y = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    skew_x, skew_y = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    area = left_x * up_y - up_x * left_y
    g, h = (skew_x * up_y - up_x * skew_y) / area, (left_x * skew_y - skew_x * left_y) / area
    return [
        *((x1 - x0 + g * x1) / width, (x3 - x0 + h * x3) / height, x0),
        *((y1 - y0 + g * y1) / width, (y3 - y0 + h * y3) / height, y0),
        *(g / width, h / height, 1.0),
    ]


@kept_table
def _powers(count: int) -> Array:
    """1, n and n squared of the numbers below `count`, [count, 3]."""
    powers: Array = np.arange(count, dtype=np.float64)[:, np.newaxis] ** np.arange(3)
    return powers


def _by_products(matrix: list[float], width: int, height: int) -> Array:
    """The same within 1e-6. The divisor of all places is 1 but for the rounding of the corners, so
    that 2 less the divisor does for its inverse, and a place is a polynomial of column and row."""
    right, down = -matrix[6], -matrix[7]
    factors = [
        [
            [constant, x + constant * right, x * right],
            [y + constant * down, x * down + y * right, 0.0],
            [y * down, 0.0, 0.0],
        ]
        for x, y, constant in (matrix[:3], matrix[3:6])
    ]
    by_column = np.array(factors) * FRACTIONS @ _powers(width).T
    found: Array = _powers(height) @ by_column
    return found
