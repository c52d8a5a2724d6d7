"""Pieces of sound, as ``mediapipe.tasks.components.containers`` has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass
class AudioDataFormat:
    """How sound is stored.

    Args:
        sample_rate: in hertz.
    """

    num_channels: int = 1
    sample_rate: float | None = None


class AudioData:
    """The newest samples of a sound, silence before the first ones are loaded.

    Args:
        buffer_length: how many samples a channel has.
        audio_format: one channel without a rate by default.
    """

    audio_format: AudioDataFormat

    def __init__(self, buffer_length: int, audio_format: AudioDataFormat | None = None) -> None:
        self.audio_format = audio_format or AudioDataFormat()
        self._buffer = np.zeros([buffer_length, self.audio_format.num_channels], np.float32)

    @classmethod
    def create_from_array(cls, src: Array, sample_rate: float | None = None) -> AudioData:
        """Sound of samples [samples] or [samples, channels]; whole numbers are scaled to -1..1."""
        array = np.asarray(src)
        channels = 1 if array.ndim == 1 else array.shape[1]
        made = cls(len(array), AudioDataFormat(channels, sample_rate))
        made.load_from_array(array)
        return made

    @property
    def buffer(self) -> Array:
        """float32 [samples, channels], from -1 to 1."""
        return self._buffer

    @property
    def buffer_length(self) -> int:
        """How many samples a channel has."""
        return len(self._buffer)

    def clear(self) -> None:
        """Make it silent."""
        self._buffer.fill(0)

    def load_from_array(self, src: Array, offset: int = 0, size: int = -1) -> None:
        """Put samples behind those that are there, of which as many go at the front.

        Args:
            src: [samples], or [samples, channels]; whole numbers are scaled to -1..1.
            offset: of the first sample that is taken.
            size: how many are; all where it is below 0.

        Raises:
            ValueError: `src` has another number of channels, or fewer samples.
        """
        array = np.asarray(src)
        array = array[:, np.newaxis] if array.ndim == 1 else array
        channels = self.audio_format.num_channels
        if array.ndim != 2 or array.shape[1] != channels:
            raise ValueError(
                f"Input audio contains an invalid number of channels. Expect {channels}."
            )
        size = len(array) if size < 0 else size
        if not 0 <= offset <= offset + size <= len(array):
            raise ValueError(
                f"Index out of range. offset {offset} + size {size} should be <= src's length: "
                f"{len(array)}"
            )
        if array.dtype.kind == "i":
            array = array / -float(np.iinfo(array.dtype).min)
        taken = array[offset : offset + size].astype(np.float32)
        kept = len(self._buffer)
        self._buffer = (
            np.concatenate([self._buffer, taken])[len(taken) :][-kept:] if kept else taken[:0]
        )
