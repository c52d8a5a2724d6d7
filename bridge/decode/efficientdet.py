"""EfficientDet without metadata: its anchors, as they were published.

A network is told by the size of its picture, by how many boxes it gives, and by how many channels
the convolution reads that makes them: that number is another one for each EfficientDet of a size.
A box is relative to an anchor, in widths and heights of it; sizes are logarithms. There are nine
anchors in a cell: three scales, each a third of an octave above the last one, of three shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Normalization = tuple[tuple[float, ...], tuple[float, ...]]

# Mean and standard deviation of pixels.
_LITE: Normalization = ((127.0,), (128.0,))
_IMAGENET: Normalization = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))

_OCTAVES = (0.0, 1 / 3, 2 / 3)
# Width over height.
_RATIOS = (1.0, 2.0, 0.5)
PER_CELL = len(_OCTAVES) * len(_RATIOS)


@dataclass(frozen=True, slots=True)
class EfficientDet:
    """One of them.

    Args:
        scale: the side of an anchor of the first octave, in strides.
        last: its coarsest level; the finest one is 3.
    """

    scale: float
    normalization: Normalization = _IMAGENET
    last: int = 7

    def anchors(self, size: int) -> Array:
        """[N, 4]: middle y and x, height and width in 0..1 of a picture of this size."""
        return np.concatenate([self._level(cells) for cells in _cells(size, self.last)])

    def _level(self, cells: int) -> Array:
        middles = (np.arange(cells) + 0.5) / cells
        y, x = np.meshgrid(middles, middles, indexing="ij")
        sides = np.array(
            [
                [2**octave / ratio**0.5, 2**octave * ratio**0.5]
                for octave in _OCTAVES
                for ratio in _RATIOS
            ]
        )
        places = np.repeat(np.stack([y, x], -1).reshape(-1, 2), PER_CELL, axis=0)
        return np.concatenate([places, np.tile(sides * self.scale / cells, (cells**2, 1))], axis=1)


def _cells(size: int, last: int) -> Iterator[int]:
    """How many cells the sides of the levels have: halves, rounded up."""
    for level in range(1, last + 1):
        size = -(-size // 2)
        if level >= 3:
            yield size


# By the side of the picture and the channels that the boxes are made of: Lite0 to Lite4, D0 to D7x.
_PUBLISHED = {
    (320, 64): (EfficientDet(3.0, _LITE),),
    (384, 88): (EfficientDet(3.0, _LITE),),
    (448, 112): (EfficientDet(3.0, _LITE),),
    (512, 160): (EfficientDet(4.0, _LITE),),
    (640, 200): (EfficientDet(3.0, _LITE),),
    (640, 224): (EfficientDet(4.0, _LITE),),
    (512, 64): (EfficientDet(4.0),),
    (640, 88): (EfficientDet(4.0),),
    (768, 112): (EfficientDet(4.0),),
    (896, 160): (EfficientDet(4.0),),
    (1024, 224): (EfficientDet(4.0),),
    (1280, 288): (EfficientDet(4.0),),
    (1280, 384): (EfficientDet(4.0),),
    (1536, 384): (EfficientDet(5.0), EfficientDet(4.0, last=8)),
}


def efficientdet_of(height: int, width: int, channels: int, count: int) -> EfficientDet | None:
    """The one that has `count` boxes, made of so many channels, for pictures of this size."""
    for known in _PUBLISHED.get((height, channels), ()):
        cells = sum(each**2 for each in _cells(height, known.last))
        if height == width and count == PER_CELL * cells:
            return known
    return None
