"""Pictures of another size, to the last bit as OpenCV's `resize` makes them of bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Of a pixel's share in OpenCV's linear interpolation: of 2048.
_BITS = 11
# A share of a pixel that is less counts nothing.
_LEAST_SHARE = 1e-3


def resized(pixels: Array, height: int, width: int) -> Array:
    """A picture uint8 [H, W, C] at another size: each pixel the mean of an area where the picture
    becomes smaller in both directions, otherwise interpolated."""
    if pixels.shape[:2] == (height, width):
        return pixels
    if pixels.shape[0] > height and pixels.shape[1] > width:
        return _averaged(pixels, height, width)
    return _interpolated(pixels, height, width)


def _averaged(pixels: Array, height: int, width: int) -> Array:
    """Resize by the means of areas: sums along rows first, in float32 as OpenCV adds them."""
    rows, columns = pixels.shape[0] / height, pixels.shape[1] / width
    if rows == int(rows) and columns == int(columns):
        return _whole_areas(pixels, int(rows), int(columns))
    across = _summed(pixels.astype(np.float32).swapaxes(0, 1), width, columns).swapaxes(0, 1)
    return _saturated(_summed(across, height, rows))


def _whole_areas(pixels: Array, rows: int, columns: int) -> Array:
    """Resize by the means of areas of whole pixels."""
    height, width = pixels.shape[0] // rows, pixels.shape[1] // columns
    parts = pixels.reshape(height, rows, width, columns, -1)
    sums = parts.sum(axis=(1, 3), dtype=np.int64)
    if (rows, columns) == (2, 2):
        return np.asarray((sums + 2) >> 2, np.uint8)
    return _saturated(sums.astype(np.float32) * np.float32(1 / (rows * columns)))


def _summed(lines: Array, count: int, scale: float) -> Array:
    """Lines [N, ...] as `count` lines, each the weighted sum of `scale` of them."""
    made = np.zeros((count, *lines.shape[1:]), np.float32)
    for place in range(count):
        for line, share in _shares(place, scale, len(lines)):
            made[place] += lines[line] * np.float32(share)
    return made


def _shares(place: int, scale: float, count: int) -> list[tuple[int, float]]:
    """Which lines a line is made of, and how much of each."""
    start, end = place * scale, (place + 1) * scale
    cell = min(scale, count - start)
    first, last = math.ceil(start), min(math.floor(end), count - 1)
    first = min(first, last)
    found = []
    if first - start > _LEAST_SHARE:
        found.append((first - 1, (first - start) / cell))
    found += [(line, 1 / cell) for line in range(first, last)]
    if end - last > _LEAST_SHARE:
        found.append((last, min(min(end - last, 1.0), cell) / cell))
    return found


def _saturated(values: Array) -> Array:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


def _interpolated(pixels: Array, height: int, width: int) -> Array:
    """By linear interpolation in whole numbers. At the edges a column counts whole, and a row is
    added up of two parts, each of which is rounded down."""
    columns, across = _neighbours(pixels.shape[1], width)
    at_edge = columns[0] == columns[1]
    across = np.where(at_edge, [[1 << _BITS], [0]], across)
    rows, down = _neighbours(pixels.shape[0], height)
    wide = pixels.astype(np.int32)
    lines = wide[:, columns[0]] * across[0][:, None] + wide[:, columns[1]] * across[1][:, None]
    upper, lower = (
        ((lines[row] >> 4) * share[:, None, None]) >> 16
        for row, share in zip(rows, down, strict=True)
    )
    return np.asarray(np.clip((upper + lower + 2) >> 2, 0, 255), np.uint8)


def _neighbours(count: int, wanted: int) -> tuple[Array, Array]:
    """The two old lines beside each new one, and their shares of 2048; [2, wanted] each."""
    places = ((np.arange(wanted) + 0.5) * (count / wanted) - 0.5).astype(np.float32)
    low = np.floor(places)
    part = places - low
    shares = np.rint(np.stack([1 - part, part]) * np.float32(1 << _BITS)).astype(np.int32)
    lines = np.stack([low, low + 1]).astype(np.int64)
    return np.clip(lines, 0, count - 1), shares
