"""What tasks on sound share: a clip in windows that are as long as the model's input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tflite_ort.prediction.pool import cores, spread
from tflite_ort.prediction.sound import HIGHEST_RATE
from tflite_ort.schema import ModelError
from tflite_ort.tasks.audio_data import AudioData
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import AudioRunningMode
from tflite_ort.tasks.task import Task

Array = npt.NDArray[Any]
Result = TypeVar("Result")

_DEFAULT_RATE = 16_000.0


class SoundTask(Task, Generic[Result]):
    """A task on sound. Make one by `create_from_options` or `create_from_model_path`.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
    """

    # The name of its model in a bundle, and the kind of that.
    _model: ClassVar[Mapping[str, str]]

    def __init__(self, options: Any) -> None:
        streams = options.running_mode is AudioRunningMode.AUDIO_STREAM
        if streams != (options.result_callback is not None):
            raise ValueError("a result callback is for the audio stream mode, and needed there")
        super().__init__(options)
        self._waiting = np.zeros(0, np.float32)
        self._last: int | None = None
        self._streamed: float | None = None
        (self._network,) = networks(options.base_options, self._model)
        self._rate = float(self._network.kind.facts.get("sample_rate") or _DEFAULT_RATE)
        if self._rate > HIGHEST_RATE:
            raise ModelError(f"the model asks for sound at {self._rate:.0f} Hz")
        self._shape = self._network.input_shape

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
        self._check_mode(AudioRunningMode.AUDIO_CLIPS)
        if not isinstance(audio_clip, AudioData):
            return spread(self._windows, audio_clip, cores())
        return self._windows(audio_clip)

    def _on_block(self, audio_block: AudioData, timestamp_ms: int) -> None:
        """Take the next block of a stream; the callback gets the result of each full window.

        Args:
            timestamp_ms: when the block begins; later than the last one.

        Raises:
            ValueError: the task is in another mode, the sound has no sample rate or another one
                than the blocks before, or the time is no later one.
        """
        self._check_mode(AudioRunningMode.AUDIO_STREAM)
        callback, rate = self._options.result_callback, rate_of(audio_block)
        if self._streamed not in (None, rate):
            raise ValueError(
                f"The audio sample rate provided in audio data: {rate} is inconsistent with the "
                f"previously received: {self._streamed}."
            )
        if self._last is not None and timestamp_ms <= self._last:
            raise ValueError("Input timestamp must be monotonically increasing.")
        self._streamed, self._last = rate, timestamp_ms
        self._waiting = np.concatenate([self._waiting, self._resampled(audio_block)])
        while len(self._waiting) >= self._window:
            window, self._waiting = np.split(self._waiting, [self._window])
            callback(self._heard(window, 0), timestamp_ms)

    def _windows(self, clip: AudioData) -> list[Result]:
        if not isinstance(clip, AudioData):
            raise TypeError(f"a clip is an AudioData, got {type(clip).__name__}")
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
