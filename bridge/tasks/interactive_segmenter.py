"""`InteractiveSegmenter`."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.networks import INTERACTIVE
from tflite_ort.tasks.containers import ImageSegmenterResult, NormalizedKeypoint
from tflite_ort.tasks.image import Image, pixels_of, with_alpha
from tflite_ort.tasks.image_segmenter import check_wanted, masks_of, segmented
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import BaseOptions, ImageProcessingOptions, region
from tflite_ort.tasks.task import Task

Array = npt.NDArray[Any]

# In a picture of so many pixels a point has a radius of one pixel; in a larger one it is larger.
_SIDE = 512


@dataclass
class InteractiveSegmenterOptions:
    """Options of `InteractiveSegmenter`."""

    base_options: BaseOptions
    output_confidence_masks: bool = True
    output_category_mask: bool = False


@dataclass
class RegionOfInterest:
    """What a user points at.

    Args:
        keypoint: in 0..1 of the picture.
    """

    class Format(enum.Enum):
        """How a user points at something."""

        UNSPECIFIED = 0
        KEYPOINT = 1

    format: Format
    keypoint: NormalizedKeypoint | None = None

    def at(self, width: int, height: int) -> tuple[int, int]:
        """The point in pixels of a picture.

        Raises:
            ValueError: there is none.
        """
        if self.keypoint is None:
            raise ValueError("Unrecognized format.")
        if self.format is not RegionOfInterest.Format.KEYPOINT:
            raise ValueError("RegionOfInterest format not specified.")
        x, y = (float(np.float32(place)) for place in (self.keypoint.x, self.keypoint.y))
        if not (0 <= x <= 1 and 0 <= y <= 1):
            raise ValueError(f"a keypoint is in 0..1, got {x}, {y}")
        return _rounded(x * width), _rounded(y * height)


def _rounded(number: float) -> int:
    """Halves away from zero."""
    return math.floor(number + 0.5)


class InteractiveSegmenter(Task):
    """A mask of what a user points at, by a network that reads the point as a fourth channel of the
    picture."""

    _options_class = InteractiveSegmenterOptions

    def __init__(self, options: InteractiveSegmenterOptions) -> None:
        check_wanted(options)
        super().__init__(options)
        (self._network,) = networks(options.base_options, {"segmenter": INTERACTIVE})

    def segment(
        self,
        image: Image | Array,
        roi: RegionOfInterest,
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> ImageSegmenterResult:
        """The masks of what a user points at. As in MediaPipe, options do not turn the picture.

        Raises:
            ValueError: it is no picture, or the user points at nothing in it.
            DelegateError: the network fails.
        """
        self._check_open()
        if not isinstance(roi, RegionOfInterest):
            raise TypeError(f"what is pointed at is a RegionOfInterest, got {type(roi).__name__}")
        pixels = pixels_of(image)
        height, width = pixels.shape[:2]
        radius = max(_rounded(max(width, height) / _SIDE), 1)
        pointed = with_alpha(pixels, disc((height, width), roi.at(width, height), radius))
        region(image_processing_options, width, height, roi=False)
        return masks_of(segmented(self._network, pointed), self._options)


# What MediaPipe 1.2 calls them.
InteractiveSegmenterLegacy = InteractiveSegmenter
InteractiveSegmenterLegacyOptions = InteractiveSegmenterOptions


def disc(shape: tuple[int, int], middle: tuple[int, int], radius: int) -> Array:
    """255 in the pixels that OpenCV fills for a circle, and 0 elsewhere: uint8 [height, width]."""
    made = np.zeros(shape, np.uint8)
    x, y = middle
    across, down, error, plus, minus = radius, 0, 0, 1, 2 * radius - 1
    while across >= down:
        for far, wide in ((down, across), (across, down)):
            for row in {y - far, y + far}:
                if 0 <= row < shape[0]:
                    made[row, max(x - wide, 0) : max(x + wide + 1, 0)] = 255
        down += 1
        error += plus
        plus += 2
        if error > 0:
            error -= minus
            across -= 1
            minus -= 2
    return made
