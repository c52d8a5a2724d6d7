"""Regions of interest: rotated rectangles in a picture, and how they follow from what was found.

Numbers as in MediaPipe's graphs. Middle and size are in 0..1 of the picture, so that a square of
pixels has two different numbers; angles are in radians, clockwise as the picture is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Size = tuple[int, int]

# The points of a hand that its region follows: wrist, thumb, and the two lower joints of fingers.
_PALM = [0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18]
_WRIST, _INDEX, _MIDDLE, _RING = 0, 5, 9, 13


@dataclass(frozen=True, slots=True)
class Rect:
    """A rotated rectangle."""

    x: float
    y: float
    width: float
    height: float
    rotation: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether it has a size: what is nowhere cannot be looked at."""
        numbers = (self.x, self.y, self.width, self.height, self.rotation)
        return all(map(math.isfinite, numbers)) and min(self.width, self.height) > 0

    @property
    def array(self) -> Array:
        """As the ``roi`` of a decoded model."""
        return np.array([self.x, self.y, self.width, self.height, self.rotation], np.float32)

    def scaled(
        self, size: Size, scale: float, *, shift_y: float = 0.0, square: bool = False
    ) -> Rect:
        """Moved along its own upright by `shift_y` of its height, made a square of its longer side
        if it is to be one, and then `scale` times as large.

        Args:
            size: width and height of the picture.
        """
        width, height = size
        down = self.height * height * shift_y
        x = self.x - down * math.sin(self.rotation) / width
        y = self.y + down * math.cos(self.rotation) / height
        across, along = self.width, self.height
        if square:
            longer = max(across * width, along * height)
            across, along = longer / width, longer / height
        return Rect(x, y, across * scale, along * scale, self.rotation)

    def overlap(self, other: Rect) -> float:
        """Intersection over union, without regard to rotations."""
        low_x = max(self.x - self.width / 2, other.x - other.width / 2)
        low_y = max(self.y - self.height / 2, other.y - other.height / 2)
        high_x = min(self.x + self.width / 2, other.x + other.width / 2)
        high_y = min(self.y + self.height / 2, other.y + other.height / 2)
        common = max(high_x - low_x, 0.0) * max(high_y - low_y, 0.0)
        union = self.width * self.height + other.width * other.height - common
        return common / union if union > 0 else 0.0


def extent(points: Array) -> tuple[Array, Array]:
    """The lowest and the highest coordinates of points [N, D]. numpy finds them in rows in a third
    of the time that it takes in columns."""
    rows = np.ascontiguousarray(points.T)
    return rows.min(axis=1), rows.max(axis=1)


def normalized_angle(angle: float) -> float:
    """The same angle from -pi to pi; NaN of what is none."""
    if not math.isfinite(angle):
        return math.nan
    return angle - 2 * math.pi * math.floor((angle + math.pi) / (2 * math.pi))


def angle_between(start: Array, end: Array, size: Size, upright: float) -> float:
    """How far the line between two points is turned.

    Args:
        upright: the angle, counter-clockwise from the x axis, at which it is not turned.
    """
    across, down = (end - start) * np.array(size)
    return normalized_angle(upright - math.atan2(-down, across))


def box_rect(box: Array, start: Array, end: Array, size: Size, upright: float) -> Rect:
    """The rectangle of a box (left, top, right, bottom), turned as two points say."""
    left, top, right, bottom = box.tolist()
    middle = (left + right) / 2, (top + bottom) / 2
    return Rect(*middle, right - left, bottom - top, angle_between(start, end, size, upright))


def centred_rect(middle: Array, edge: Array, size: Size, upright: float = math.pi / 2) -> Rect:
    """The square around a circle, given its middle and the point above, or where `upright` says."""
    width, height = size
    across, down = ((edge - middle) * np.array(size)).tolist()
    side = 2 * math.hypot(across, down)
    turned = angle_between(middle, edge, size, upright)
    x, y = middle.tolist()
    return Rect(x, y, side / width, side / height, turned)


def hand_rect(points: Array, size: Size) -> Rect:
    """The rectangle around a palm, turned as the hand is.

    Args:
        points: [21, 2 or 3] in 0..1.
    """
    pixels = points[:, :2] * np.array(size)
    tip = ((pixels[_INDEX] + pixels[_RING]) / 2 + pixels[_MIDDLE]) / 2
    across, down = (tip - pixels[_WRIST]).tolist()
    rotation = normalized_angle(math.pi / 2 - math.atan2(-down, across))
    palm = pixels[_PALM]
    low, high = extent(palm)
    middle = (high + low) / 2
    turn = np.array(
        [[math.cos(rotation), math.sin(rotation)], [-math.sin(rotation), math.cos(rotation)]]
    )
    own = (palm - middle) @ turn.T
    low, high = extent(own)
    centre = middle + ((low + high) / 2) @ turn
    x, y, width, height = np.concatenate([centre, high - low]) / np.array([*size, *size])
    return Rect(float(x), float(y), float(width), float(height), rotation)


def face_rect(points: Array, size: Size) -> Rect:
    """The rectangle around a face, turned as its eyes are.

    Args:
        points: [468 or 478, 2 or 3] in 0..1.
    """
    flat = points[:, :2]
    return box_rect(np.concatenate(extent(flat)), flat[33], flat[263], size, 0.0)


def wrist_rect(wrist: Array, pinky: Array, index: Array, size: Size) -> Rect:
    """The square around a hand, from three points of the body that are in 0..1."""
    return centred_rect((2 * index + pinky) / 3, wrist, size, -math.pi / 2)


def kept_before_new(tracked: Sequence[Rect], found: Sequence[Rect], threshold: float) -> list[Rect]:
    """Tracked regions, and found ones that overlap none of those before them, as for hands."""
    kept = list(tracked)
    for rect in found:
        if all(rect.overlap(other) <= threshold for other in kept):
            kept.append(rect)
    return kept


def new_before_kept(tracked: Sequence[Rect], found: Sequence[Rect], threshold: float) -> list[Rect]:
    """Tracked regions, each replaced by a found one that overlaps it, as for faces and poses."""
    kept: list[Rect] = []
    for rect in (*tracked, *found):
        kept = [other for other in kept if rect.overlap(other) <= threshold]
        kept.append(rect)
    return kept
