"""How a task is set up, with the names of ``mediapipe.tasks``."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import CPU, FULL_PRECISION
from tflite_ort.tasks import containers
from tflite_ort.tasks.rects import Rect


class RunningMode(enum.Enum):
    """What pictures come from: IMAGE, single ones; VIDEO, frames in order, each answered before the
    next one; LIVE_STREAM, frames as they come, answered by a callback."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    LIVE_STREAM = "LIVE_STREAM"


class AudioRunningMode(enum.Enum):
    """What sound comes from: single clips, or a stream answered by a callback."""

    AUDIO_CLIPS = "AUDIO_CLIPS"
    AUDIO_STREAM = "AUDIO_STREAM"


class Delegate(enum.IntEnum):
    """What runs a model, as ``mediapipe.tasks`` says it."""

    DEFAULT = 0
    CPU = 1
    GPU = 2


# By field of `BaseOptions`, what it is where nobody says anything: `install_as` fills it in.
UNSAID: dict[str, Any] = {}


@dataclass
class BaseOptions:
    """The model of a task, and what runs it.

    Args:
        model_asset_path: a ``.task`` or ``.tflite`` file.
        model_asset_buffer: the bytes of one, instead.
        delegate: instead of `providers`: the CPU, or the first provider that has a GPU; DEFAULT is
            as None.
        providers: ONNX Runtime execution providers, as `Interpreter` takes them; default the CPU.
            A network that the first one cannot load runs on the CPU, with a `DelegateWarning`.
        num_threads: within an operator; None is one for each core.
        precision: of floats, as `Interpreter` takes it.
        labels: names of the classes, or a file of them, in the place of the model's.
    """

    model_asset_path: str | os.PathLike[str] | None = None
    model_asset_buffer: bytes | None = None
    delegate: Delegate | None = None
    providers: ProviderChoices | None = None
    num_threads: int | None = None
    precision: str = FULL_PRECISION
    labels: str | os.PathLike[str] | Sequence[str] | None = None

    Delegate: ClassVar[type[Delegate]] = Delegate

    def __post_init__(self) -> None:
        for name, value in UNSAID.items():
            said = name == "providers" and self.delegate
            if not said and getattr(self, name) in (None, FULL_PRECISION):
                setattr(self, name, value)

    @property
    def runs_on(self) -> ProviderChoices | None:
        """The providers that `providers` or `delegate` name.

        Raises:
            ValueError: both are given.
        """
        if not self.delegate:
            return self.providers
        if self.providers is not None:
            raise ValueError("give one of delegate and providers")
        return ["gpu"] if self.delegate == Delegate.GPU else [CPU]

    @property
    def source(self) -> str | os.PathLike[str] | bytes:
        """What was given.

        Raises:
            ValueError: neither or both are, or the buffer is not bytes.
        """
        if (self.model_asset_path is None) == (self.model_asset_buffer is None):
            raise ValueError("give one of model_asset_path and model_asset_buffer")
        if self.model_asset_path is not None:
            return self.model_asset_path
        if not isinstance(self.model_asset_buffer, bytes | bytearray | memoryview):
            raise ValueError(f"model_asset_buffer is a {type(self.model_asset_buffer).__name__}")
        return bytes(self.model_asset_buffer)


class TwoNames:
    """Options of which some have two names.

    Raises:
        ValueError: an option is given by both.
    """

    # By the other name of a field, its name.
    _OTHERS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *options: Any, **named: Any) -> None:
        for other, name in self._OTHERS.items():
            if other in named:
                if name in named:
                    raise ValueError(f"Specify either `{name}` or `{other}`, not both.")
                named[name] = named.pop(other)
        super().__init__(*options, **named)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for other, name in cls._OTHERS.items():
            setattr(cls, other, _other(name))


def _other(name: str) -> property:
    def read(options: Any) -> Any:
        return getattr(options, name)

    def write(options: Any, value: Any) -> None:
        setattr(options, name, value)

    return property(read, write, doc=f"The other name of `{name}`.")


RectF = containers.RectF


@dataclass
class ImageProcessingOptions:
    """Which part of a picture is looked at, and how it is turned.

    Args:
        region_of_interest: None for all of it.
        rotation_degrees: clockwise, a multiple of 90, by which the picture is turned first.
    """

    region_of_interest: containers.Rect | None = None
    rotation_degrees: int = 0


def region(options: ImageProcessingOptions | None, width: int, height: int, roi: bool) -> Rect:
    """The rectangle that options mean in a picture of this size.

    Args:
        roi: whether the task takes a region of interest.

    Raises:
        ValueError: they are no such options.
    """
    if options is None:
        return Rect(0.5, 0.5, 1.0, 1.0)
    if options.rotation_degrees % 90:
        raise ValueError("Expected rotation to be a multiple of 90\N{DEGREE SIGN}.")
    part = options.region_of_interest or RectF(0.0, 0.0, 1.0, 1.0)
    if options.region_of_interest is not None and not roi:
        raise ValueError("This task doesn't support region-of-interest.")
    if not (part.left < part.right and part.top < part.bottom):
        raise ValueError("Expected Rect with left < right and top < bottom.")
    if min(part.left, part.top) < 0 or max(part.right, part.bottom) > 1:
        raise ValueError("Expected Rect values to be in [0,1].")
    across, down = part.right - part.left, part.bottom - part.top
    if options.rotation_degrees % 180:
        across, down = down * height / width, across * width / height
    turn = -options.rotation_degrees * math.pi / 180
    return Rect((part.left + part.right) / 2, (part.top + part.bottom) / 2, across, down, turn)
