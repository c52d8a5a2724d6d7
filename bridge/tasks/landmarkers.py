"""What face, hand and pose landmarkers share: finding regions, following them, and smoothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.regions import REGIONS
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import RunningMode
from tflite_ort.tasks.rects import Rect, Size, box_rect, centred_rect, extent
from tflite_ort.tasks.vision_task import DetectingTask, Frame, Result

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """One hand, face or person.

    Args:
        outputs: of the landmark network.
        rect: where it is looked for in the next frame.
    """

    outputs: Mapping[str, Array]
    rect: Rect

    @property
    def points(self) -> Array:
        """[N, 3] in 0..1."""
        return self.outputs["landmarks"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many are looked for, and how sure the networks have to be."""

    number: int
    detection: float
    presence: float
    tracking: float
    overlap: float = 0.3


class Landmarker(DetectingTask[Result]):
    """A detector, and a landmark network on each region that it finds. In a video the regions
    follow from the landmarks of the frame before; the detector runs while fewer are followed than
    are looked for."""

    # By the name of a model in the bundle, its kind: first the detector.
    _models: ClassVar[Mapping[str, str]]

    def __init__(self, options: Any, limits: Limits) -> None:
        super().__init__(options)
        if limits.number < 1:
            raise ValueError("the number that is looked for has to be 1 or more")
        self._limits = limits
        self._detector, self._landmarks = networks(options.base_options, self._models)
        self._region = REGIONS[self._landmarks.kind.name]
        self._tracked: list[Rect] = []

    @property
    def _streams(self) -> bool:
        return self._options.running_mode is not RunningMode.IMAGE

    def found(self, frame: Frame) -> list[Found]:
        """All that are in a frame."""
        found = []
        regions = [rect for rect in self._regions(frame) if rect.usable]
        for rect in regions[: self._limits.number]:
            outputs = self._landmarks(frame.pixels, roi=rect)
            if outputs["score"] > self._limits.presence:
                found.append(Found(outputs, self._next_rect(outputs, frame.size)))
        found = self._distinct(found, frame.size)
        if self._streams:
            self._tracked = [each.rect for each in found]
        return found

    def forget(self) -> None:
        """Forget what was followed."""
        self._tracked = []

    def _regions(self, frame: Frame) -> list[Rect]:
        tracked = self._tracked
        if self._streams and len(tracked) >= self._limits.number:
            return list(tracked)
        boxes = self._detector(
            frame.pixels,
            roi=frame.rect,
            min_score=float(self._limits.detection),
            min_suppression_threshold=float(self._limits.overlap),
        )
        rects = [
            self._first_rect(box, points, frame.size)
            for box, points in zip(boxes["boxes"], boxes["keypoints"], strict=True)
        ]
        rects = rects[: self._limits.number]
        if not self._streams:
            return rects
        return self._associated(tracked, rects)

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        """Which of the tracked and found regions stay."""
        raise NotImplementedError

    def _first_rect(self, box: Array, points: Array, size: Size) -> Rect:
        """Where landmarks are looked for, given what the detector found."""
        region = self._region
        start, end = points[region.start], points[region.end]
        if region.circle:
            rect = centred_rect(start, end, size)
        else:
            rect = box_rect(box, start, end, size, region.upright)
        return rect.scaled(size, region.scale, shift_y=region.shift_y, square=True)

    def _next_rect(self, outputs: Mapping[str, Array], size: Size) -> Rect:
        """Where they are looked for in the next frame."""
        raise NotImplementedError

    def _distinct(self, found: list[Found], size: Size) -> list[Found]:
        """The found ones, each once."""
        return found


def in_pixels(points: Array, size: Size) -> Array:
    """Points in 0..1 in pixels; z as x."""
    width, height = size
    pixels: Array = points * np.array([width, height, width])
    return pixels


def object_scale(points: Array) -> float:
    """How large things are seen: the mean of width and height of points in pixels."""
    low, high = extent(points[:, :2])
    return float((high - low).mean())


def smoothed(
    filter: Callable[[Array, float, float], Array],
    points: Array,
    size: Size,
    seconds: float,
    scale: float | None = None,
) -> Array:
    """Landmarks [N, 3] in 0..1 after a filter that works in pixels.

    Args:
        scale: how large the thing is seen, in pixels; default by the points.
    """
    pixels = in_pixels(points, size)
    seen = object_scale(pixels) if scale is None else scale
    if seen < 1e-6:
        return points
    calm: Array = filter(pixels, seconds, 1 / seen) / in_pixels(np.ones(3), size)
    return calm
