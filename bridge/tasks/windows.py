"""What tasks on sound share: a clip in windows that are as long as the model's input."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tflite_ort.base.closing import Closing
from tflite_ort.prediction.pool import cores, spread
from tflite_ort.prediction.sound import HIGHEST_RATE
from tflite_ort.schema import ModelError
from tflite_ort.tasks.audio_data import AudioData
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import BaseOptions

Array = npt.NDArray[Any]
Result = TypeVar("Result")

_DEFAULT_RATE = 16_000.0


class SoundTask(Closing, Generic[Result]):
    """A task on sound. Make one by `create_from_options` or `create_from_model_path`.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
    """

    _options_class: ClassVar[Callable[..., Any]]
    # The name of its model in a bundle, and the kind of that.
    _model: ClassVar[Mapping[str, str]]

    def __init__(self, options: Any) -> None:
        self._options = options
        (self._network,) = networks(options.base_options, self._model)
        self._rate = float(self._network.kind.facts.get("sample_rate") or _DEFAULT_RATE)
        if self._rate > HIGHEST_RATE:
            raise ModelError(f"the model asks for sound at {self._rate:.0f} Hz")
        self._shape = self._network.input_shape

    @classmethod
    def create_from_model_path(cls, model_path: str | os.PathLike[str]) -> Self:
        """A task for clips, with default options."""
        return cls(cls._options_class(BaseOptions(model_asset_path=model_path)))

    @classmethod
    def create_from_options(cls, options: Any) -> Self:
        """A task with these options."""
        return cls(options)

    @overload
    def _on_clip(self, audio_clip: AudioData) -> list[Result]: ...

    @overload
    def _on_clip(self, audio_clip: Sequence[AudioData]) -> list[list[Result]]: ...

    def _on_clip(
        self, audio_clip: AudioData | Sequence[AudioData]
    ) -> list[Result] | list[list[Result]]:
        """The result of each window of a clip, or of each clip of a list.

        Raises:
            ValueError: the task is in another mode, or the sound has no sample rate.
        """
        self._check_clips()
        if not isinstance(audio_clip, AudioData):
            return spread(self._windows, audio_clip, cores())
        return self._windows(audio_clip)

    def _check_clips(self) -> None:
        """
        Raises:
            ValueError: the task takes no clips.
        """

    def _windows(self, clip: AudioData) -> list[Result]:
        sound, size = self._resampled(clip), self._window
        starts = range(0, max(len(sound), 1), size)
        return [self._heard(sound[start:][:size], start) for start in starts]

    @property
    def _window(self) -> int:
        return int(np.prod(self._shape))

    def _heard(self, window: Array, start: int) -> Result:
        whole = np.zeros(self._window, np.float32)
        whole[: len(window)] = window
        return self._result(whole.reshape(self._shape), int(start * 1000 / self._rate))

    def _result(self, window: Array, time_ms: int) -> Result:
        raise NotImplementedError

    def _resampled(self, sound: AudioData) -> Array:
        """One channel at the model's rate, by linear interpolation."""
        rate, mono = rate_of(sound), np.asarray(sound.buffer.mean(axis=1))
        if rate == self._rate or not len(mono):
            return mono
        times = np.arange(0, len(mono), rate / self._rate)
        return np.asarray(np.interp(times, np.arange(len(mono)), mono), np.float32)

    def close(self) -> None:
        """End it."""


def rate_of(sound: AudioData) -> float:
    """The sample rate of a sound.

    Raises:
        ValueError: it has none.
    """
    rate = sound.audio_format.sample_rate
    if rate is None:
        raise ValueError("Must provide the audio sample rate in audio data.")
    if not 0 < rate < math.inf:
        raise ValueError(f"a sample rate is above 0, got {rate}")
    return float(rate)
