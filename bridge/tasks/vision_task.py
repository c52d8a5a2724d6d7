"""What all vision tasks share: pictures in three running modes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy.typing as npt

from tflite_ort.base.forks import renew_in_children
from tflite_ort.prediction.pool import cores, spread
from tflite_ort.tasks.containers import NormalizedRect
from tflite_ort.tasks.image import Image, pixels_of
from tflite_ort.tasks.options import BaseOptions, ImageProcessingOptions, RunningMode, region
from tflite_ort.tasks.rects import Rect, Size
from tflite_ort.tasks.task import Task

Array = npt.NDArray[Any]
Picture = Image | Array
Result = TypeVar("Result")


# In the live stream mode, called with the result, the picture and its timestamp, in a thread of its
# own. It is the last field of each task's options.
ResultCallback = Callable[[Any, Any, int], None]


@dataclass
class VisionTaskOptions:
    """What the options of all vision tasks begin with."""

    base_options: BaseOptions
    running_mode: RunningMode = RunningMode.IMAGE


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture that a task looks at.

    Args:
        pixels: uint8 [height, width, 3].
        rect: the part that is looked at.
        seconds: when it was taken; None for a single picture.
    """

    pixels: Array
    rect: Rect
    seconds: float | None

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        return int(self.pixels.shape[1]), int(self.pixels.shape[0])


class VisionTask(Task, Generic[Result]):
    """A task on pictures. Make one by `create_from_options` or `create_from_model_path`.

    One task is for one thread at a time.
    """

    # Whether a part of a picture can be looked at.
    _takes_region: ClassVar[bool] = False

    def __init__(self, options: Any) -> None:
        if not isinstance(options.running_mode, RunningMode):
            raise ValueError(f"a running mode is a RunningMode, got {options.running_mode!r}")
        live = options.running_mode is RunningMode.LIVE_STREAM
        if live != (options.result_callback is not None):
            raise ValueError(
                "The vision task is in live stream mode, a user-defined result callback must be "
                "provided."
                if live
                else "The vision task is in image or video mode, a user-defined result callback "
                "should not be provided."
            )
        super().__init__(options)
        self._last: int | None = None
        self._pending: Future[None] | None = None
        self._answering: int | None = None  # the thread that calls back
        self._worker = ThreadPoolExecutor(1) if live else None
        renew_in_children(self)

    def renew(self) -> None:
        """In the child of a fork no picture is in work."""
        self._pending = None
        self._worker = None if self._worker is None else ThreadPoolExecutor(1)

    def _result(self, frame: Frame) -> Result:
        raise NotImplementedError

    @overload
    def _on_image(
        self, image: Picture, image_processing_options: ImageProcessingOptions | None = None
    ) -> Result: ...

    @overload
    def _on_image(
        self,
        image: Sequence[Picture],
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> list[Result]: ...

    def _on_image(
        self,
        image: Picture | Sequence[Picture],
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> Result | list[Result]:
        """What is in a single picture, or in each picture of a list.

        Args:
            image: an `Image`, or uint8 [height, width, 3] in RGB. Pictures of a list may have
                different sizes. As many of them are worked on at once as there are cores.
            image_processing_options: which part is looked at, and how it is turned.

        Raises:
            ValueError: it is no picture, or the task is in another mode.
            DelegateError: a network fails.
        """
        self._check_mode(RunningMode.IMAGE)
        if isinstance(image, Sequence):
            frames = [self._frame(each, image_processing_options, None) for each in image]
            return spread(self._result, frames, cores())
        return self._result(self._frame(image, image_processing_options, None))

    def _on_video(
        self,
        image: Picture,
        timestamp_ms: int,
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> Result:
        """What is in the next frame of a video.

        Args:
            timestamp_ms: when the frame is shown; later than the last one.

        Raises:
            ValueError: it is no picture or no later one, or the task is in another mode.
            DelegateError: a network fails.
        """
        self._check_mode(RunningMode.VIDEO)
        self._check_time(timestamp_ms)
        return self._result(self._frame(image, image_processing_options, timestamp_ms))

    def _on_stream(
        self,
        image: Picture,
        timestamp_ms: int,
        image_processing_options: ImageProcessingOptions | None = None,
    ) -> None:
        """Look at a frame of a live stream; the callback gets the result. Frames that come while
        one is being looked at are dropped.

        Raises:
            ValueError: it is no picture or no later one, or the task is in another mode.
            Exception: what the callback raised, or the network, at the frame before.
        """
        self._check_mode(RunningMode.LIVE_STREAM)
        self._check_time(timestamp_ms)
        if self._pending is not None:
            if not self._pending.done():
                return
            done, self._pending = self._pending, None
            done.result()
        assert self._worker is not None
        frame = self._frame(image, image_processing_options, timestamp_ms)
        self._pending = self._worker.submit(self._answer, frame, image, timestamp_ms)

    def _answer(self, frame: Frame, image: Picture, timestamp_ms: int) -> None:
        self._answering = threading.get_ident()
        self._options.result_callback(self._result(frame), image, timestamp_ms)

    def convert_to_normalized_rect(
        self, options: ImageProcessingOptions | None, image: Image, roi_allowed: bool = True
    ) -> NormalizedRect:
        """The rectangle of a picture that options mean.

        Raises:
            ValueError: they are no such options.
        """
        rect = region(options, image.width, image.height, roi_allowed)
        return NormalizedRect(rect.x, rect.y, rect.width, rect.height, rect.rotation)

    def _frame(
        self, image: Picture, options: ImageProcessingOptions | None, time_ms: int | None
    ) -> Frame:
        pixels = pixels_of(image)
        height, width = pixels.shape[:2]
        rect = region(options, width, height, self._takes_region)
        return Frame(pixels, rect, None if time_ms is None else time_ms / 1000)

    def _check_time(self, timestamp_ms: int) -> None:
        if not math.isfinite(timestamp_ms):
            raise ValueError(f"a timestamp is a number of milliseconds, got {timestamp_ms}")
        if self._last is not None and timestamp_ms <= self._last:
            raise ValueError(
                f"Input timestamp must be monotonically increasing. {timestamp_ms} follows "
                f"{self._last}."
            )
        self._last = timestamp_ms

    def close(self) -> None:
        """End it; a frame that is being looked at is answered first, but in its own callback.

        Raises:
            Exception: what the last callback raised, or the network.
        """
        super().close()
        if self._worker is None:
            return
        inside = self._answering == threading.get_ident()
        self._worker.shutdown(wait=not inside)
        if self._pending is not None and not inside:
            done, self._pending = self._pending, None
            done.result()


class DetectingTask(VisionTask[Result]):
    """A task whose methods are called ``detect``."""

    detect = VisionTask._on_image
    detect_for_video = VisionTask._on_video
    detect_async = VisionTask._on_stream
