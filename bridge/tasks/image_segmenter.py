"""`ImageSegmenter`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import ImageSegmenterResult
from tflite_ort.tasks.image import Image, ImageFormat, with_alpha
from tflite_ort.tasks.network import Network, networks
from tflite_ort.tasks.resizing import resized
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTask, VisionTaskOptions

Array = npt.NDArray[Any]


@dataclass
class ImageSegmenterOptions(VisionTaskOptions):
    """Options of `ImageSegmenter`."""

    output_confidence_masks: bool = True
    output_category_mask: bool = False
    result_callback: ResultCallback | None = None


class ImageSegmenter(VisionTask[ImageSegmenterResult]):
    """Masks of the classes in a picture, such as people and background."""

    _options_class = ImageSegmenterOptions

    def __init__(self, options: ImageSegmenterOptions) -> None:
        super().__init__(options)
        check_wanted(options)
        (self._network,) = networks(options.base_options, {"segmenter": "segmentation"})

    @property
    def labels(self) -> list[str]:
        """The names of the classes; empty without metadata."""
        return list(self._network.labels)

    segment = VisionTask._on_image
    segment_for_video = VisionTask._on_video
    segment_async = VisionTask._on_stream

    def _result(self, frame: Frame) -> ImageSegmenterResult:
        if self._network.kind.preparation is None:
            found = segmented(self._network, with_alpha(frame.pixels, 0))
        else:
            found = self._network(frame.pixels, roi=frame.rect)
        return masks_of(found, self._options)


def check_wanted(options: Any) -> None:
    """
    Raises:
        ValueError: options ask for no mask.
    """
    if not (options.output_confidence_masks or options.output_category_mask):
        raise ValueError("At least one of CONFIDENCE_MASK and CATEGORY_MASK must be asked for.")


def segmented(network: Network, pixels: Array) -> Mapping[str, Array]:
    """What a network finds that reads a picture [height, width, 4] at its own size."""
    size = np.array([pixels.shape[1], pixels.shape[0]], np.float32)
    return network(resized(pixels, *network.kind.facts["size"]), size=size)


def masks_of(found: Mapping[str, Array], options: Any) -> ImageSegmenterResult:
    """The masks that a network gives, those that are asked for."""
    result = ImageSegmenterResult()
    if options.output_confidence_masks:
        masks = np.ascontiguousarray(found["confidence_masks"])
        result.confidence_masks = [Image(ImageFormat.VEC32F1, mask) for mask in masks]
    if options.output_category_mask:
        result.category_mask = Image(ImageFormat.GRAY8, found["category_mask"])
    return result
