"""What all solutions share: pictures in, messages out, and a clock that ticks for each picture."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base.closing import Closing
from tflite_ort.tasks.messages import Message
from tflite_ort.tasks.options import RunningMode, region
from tflite_ort.tasks.vision_task import Frame

Array = npt.NDArray[Any]

# Of MediaPipe: the time from a picture to the next one, in seconds.
_TICK = 33_333e-6


class Solution(Closing):
    """A solution, which looks at one picture after the other.

    Args:
        static: whether each picture stands for itself, or follows the one before.
    """

    # The fields of a result.
    _outputs: ClassVar[tuple[str, ...]]

    def __init__(self, static: bool = True) -> None:
        self._static, self._seconds = static, 0.0

    def process(self, image: Array) -> Any:
        """What is in a picture.

        Args:
            image: uint8 [height, width, 3] in RGB.

        Returns:
            A named tuple; a field is None where nothing was found.

        Raises:
            ValueError: it is no such picture.
            DelegateError: a network fails.
        """
        pixels = np.asarray(image)
        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError("Input image must contain three channel rgb data.")
        self._seconds += _TICK
        rect = region(None, pixels.shape[1], pixels.shape[0], False)
        seconds = None if self._static else self._seconds
        found = self._found(Frame(np.ascontiguousarray(pixels), rect, seconds))
        return _kind_of_result(self._outputs)(*(found.get(name) for name in self._outputs))

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        """The fields of a result that are not None."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget the pictures before."""
        raise NotImplementedError

    def close(self) -> None:
        """End it."""


@cache
def _kind_of_result(names: tuple[str, ...]) -> Any:
    return namedtuple("SolutionOutputs", names)


def mode(static: bool) -> RunningMode:
    """The running mode of the task in a solution."""
    return RunningMode.IMAGE if static else RunningMode.VIDEO


def points_message(kind: type[Message], points: Array, visibility: Array | None = None) -> Message:
    """Points [N, 3], and how visible each is, as a list of landmarks."""
    landmark = kind.FIELDS["landmark"][0]
    columns = [*points.T, *([] if visibility is None else [visibility])]
    rows = zip(*(np.asarray(each, np.float32).tolist() for each in columns), strict=True)
    made = kind()
    for row in rows:
        point = made.landmark.add()
        # As values that are float32 already.
        point.__dict__.update(zip(landmark.FIELDS, row, strict=False))
    return made
