"""`ImageSegmenter`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import ImageSegmenterResult
from tflite_ort.tasks.image import Image, ImageFormat
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import ImageProcessingOptions
from tflite_ort.tasks.vision_task import Frame, VisionTask, VisionTaskOptions

Array = npt.NDArray[Any]


@dataclass
class ImageSegmenterOptions(VisionTaskOptions):
    """Options of `ImageSegmenter`."""

    output_confidence_masks: bool = True
    output_category_mask: bool = False


class ImageSegmenter(VisionTask[ImageSegmenterResult]):
    """Masks of the classes in a picture, such as people and background."""

    _options_class = ImageSegmenterOptions

    def __init__(self, options: ImageSegmenterOptions) -> None:
        super().__init__(options)
        if not (options.output_confidence_masks or options.output_category_mask):
            raise ValueError("one of the masks has to be asked for")
        (self._network,) = networks(options.base_options, {"segmenter": "segmentation"})

    @property
    def labels(self) -> list[str]:
        """Of the classes; empty without metadata."""
        return list(self._network.labels)

    def segment(
        self, image: Image | Array, image_processing_options: ImageProcessingOptions | None = None
    ) -> ImageSegmenterResult:
        """The masks of a single picture."""
        return self._on_image(image, image_processing_options)

    def segment_for_video(
        self,
        image: Image | Array,
        timestamp_ms: int,
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> ImageSegmenterResult:
        """The masks of the next frame of a video."""
        return self._on_video(image, timestamp_ms, image_processing_options)

    def segment_async(
        self,
        image: Image | Array,
        timestamp_ms: int,
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> None:
        """Look at a frame of a live stream; the callback gets the result."""
        self._on_stream(image, timestamp_ms, image_processing_options)

    def _result(self, frame: Frame) -> ImageSegmenterResult:
        found = self._network(frame.pixels, roi=frame.rect)
        result = ImageSegmenterResult()
        if self._options.output_confidence_masks:
            masks = np.ascontiguousarray(found["confidence_masks"])
            result.confidence_masks = [Image(ImageFormat.VEC32F1, mask) for mask in masks]
        if self._options.output_category_mask:
            result.category_mask = Image(ImageFormat.GRAY8, found["category_mask"])
        return result
