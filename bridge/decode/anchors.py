"""The anchors of MediaPipe's single-shot detectors.

All are of size 1, so that an anchor is a point: the middle of a cell of a feature map. Layers of
the same stride share a map, and each has so many anchors in a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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
    """Of each map its rows, its columns, and how many anchors a cell has."""
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
