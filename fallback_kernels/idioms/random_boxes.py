"""A part of an image that is drawn at random, as TensorFlow draws it, in floats of 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.random_streams import Stream
from tflite_ort.schema import KernelError

_F = np.float32
_ALL = 1 << 32


@record
class Box:
    """From the first cell of each axis to the one after the last."""

    y: int
    x: int
    y_end: int
    x_end: int

    @property
    def area(self) -> np.float32:
        """In cells; none where an end comes first."""
        return _F(max(self.y_end - self.y, 0) * max(self.x_end - self.x, 0))

    def shared(self, other: Box) -> Box:
        """What two have in common."""
        return Box(
            max(self.y, other.y),
            max(self.x, other.x),
            min(self.y_end, other.y_end),
            min(self.x_end, other.x_end),
        )


@record(eq=False)
class Wanted:
    """What a part has to be like.

    Args:
        ratios: the least and the greatest width by height.
        areas: the least and the greatest share of the image.
        covered: so much of one of the boxes lies in it.
        attempts: after so many the whole image is taken.
    """

    ratios: tuple[float, float]
    areas: tuple[float, float]
    covered: float
    attempts: int


class _Words:
    """Random words one by one."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._at = stream, 0
        self._words: list[int] = []

    def word(self) -> int:
        if not self._words:
            self._words = self._stream.blocks(np.array([self._at]))[0].tolist()[::-1]
            self._at += 1
        return self._words.pop()

    def unit(self) -> np.float32:
        """In [0, 1)."""
        return _F(self.word() & 0x7FFFFF) * _F(2.0**-23)

    def below(self, count: int) -> int:
        """A whole number from 0 on; drawn again where the remainder would not be even."""
        if not count & (count - 1):
            return self.word() & (count - 1) if count else self.word() * 0
        least = (_ALL - 1) % count + 1
        while (word := self.word()) < least:
            pass
        return word % count


def drawn_box(stream: Stream, height: int, width: int, boxes: Sequence[Box], wanted: Wanted) -> Box:
    """The first drawn part that is as wanted, else the whole image."""
    words, (least, most) = _Words(stream), (_F(each) for each in wanted.ratios)
    for _ in range(wanted.attempts):
        ratio = words.unit() * (most - least) + least
        box = _tried(words, height, width, ratio, wanted)
        if box is not None and _covers(box, boxes, _F(wanted.covered)):
            return box
    return Box(0, 0, height, width)


def _covers(box: Box, boxes: Sequence[Box], covered: np.float32) -> bool:
    if box.area < 1:
        return False
    sized = [each for each in boxes if each.area >= 1]
    return any(box.shared(each).area / each.area >= covered for each in sized)


def _rounded(value: np.float32) -> int:
    return int(np.rint(value))


def _tried(words: _Words, height: int, width: int, ratio: np.float32, wanted: Wanted) -> Box | None:
    """A part of this ratio, unless it is smaller or larger than it may be."""
    least, most = (_F(each) * _F(width) * _F(height) for each in wanted.areas)
    if ratio <= 0 or most <= 0 or least > most:
        return None
    low, high = (_rounded(np.sqrt(area / ratio)) for area in (least, most))
    if _rounded(_F(high) * ratio) > width:
        high = int((width + 0.5 - float(_F(1e-7))) / float(ratio))
        high -= _rounded(_F(high) * ratio) > width
    high = min(high, height)
    rows = min(low, high)
    if rows < high:
        rows += words.below(high - rows + 1)
    columns = _rounded(_F(rows) * ratio)
    if columns * rows < least:
        rows += 1
        columns = _rounded(_F(rows) * ratio)
    if columns * rows > most:
        rows -= 1
        columns = _rounded(_F(rows) * ratio)
    area = _F(columns * rows)
    if area < least or area > most or not (0 < columns <= width and 0 < rows <= height):
        return None
    y = words.below(height - rows) if rows < height else 0
    x = words.below(width - columns) if columns < width else 0
    return Box(y, x, y + rows, x + columns)


def boxes_of(values: Sequence[Sequence[float]], height: int, width: int) -> list[Box]:
    """Boxes of [y, x, y end, x end] as shares of the image.

    Raises:
        KernelError: one leaves the image, or is empty.
    """
    found = []
    for y, x, y_end, x_end in values:
        if not (0 <= y < y_end <= 1 and 0 <= x < x_end <= 1):
            raise KernelError(f"a box {[y, x, y_end, x_end]} in an image of 0 to 1")
        sizes = (height, width, height, width)
        cells = (int(_F(v) * _F(n)) for v, n in zip((y, x, y_end, x_end), sizes, strict=True))
        found.append(Box(*cells))
    return found
