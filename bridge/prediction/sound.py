"""Sound as values of a model's input: wav files, rates, channels, and stretches of one length."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.prediction.array_files import (
    Array,
    Details,
    InputError,
    open_plain,
    signature_of,
)

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT_BYTES = 40  # of the format chunk, what is looked at
# Of an input whose metadata tell none: more numbers at a time are features.
_MOST_UNTOLD = 8
_MOST_CHANNELS = 64
# A filter for another rate reaches over so many samples of the lower rate on each side.
_REACH = 16
# Rates whose fraction has larger numbers are not converted.
_LARGEST_TERM = 1 << 12
_BLOCK_SECONDS = 2
# Of a block at once: frames at least, and values that are read, and that a filter is laid over.
_BLOCK_FRAMES, _BLOCK_READ, _BLOCK_FILTERED = 1 << 12, 1 << 21, 1 << 24
# Samples a second of files, and that a model may ask for: recorders of ultrasound reach a third of
# the highest, those of a heart a few hundred.
_LOWEST_RATE, HIGHEST_RATE = 100, 1 << 20
# A file of no more than pieces without a content would take minutes.
_MOST_CHUNKS = 1 << 14

# By (format, bits), how samples are stored, and what full scale is.
_STORED: dict[tuple[int, int], tuple[str, float]] = {
    (_PCM, 8): ("u1", 128.0),
    (_PCM, 16): ("<i2", float(1 << 15)),
    (_PCM, 24): ("", float(1 << 23)),
    (_PCM, 32): ("<i4", float(1 << 31)),
    (_FLOAT, 32): ("<f4", 1.0),
    (_FLOAT, 64): ("<f8", 1.0),
}


@dataclass(frozen=True, slots=True)
class Wav:
    """A wav file.

    Args:
        rate: samples a second of each channel.
        channels: how many.
        start, frames: the byte at which the samples begin, and how many there are of each channel.
    """

    path: Path
    rate: int
    channels: int
    form: int
    bits: int
    start: int
    frames: int

    def read(self, first: int, count: int) -> Array:
        """Samples [n, channels] from `first` on, in [-1, 1]; fewer than `count` at the end."""
        width = self.bits // 8 * self.channels
        with open_plain(self.path) as stream:
            stream.seek(self.start + first * width)
            content = stream.read(max(0, min(count, self.frames - first)) * width)
        whole = content[: len(content) // width * width]
        return self._values(whole).reshape(-1, self.channels)

    def _values(self, content: bytes) -> Array:
        code, scale = _STORED[self.form, self.bits]
        if not code:  # 24 bits, the highest byte of an int32 is the sign's
            wide = np.zeros((len(content) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
            return (wide.view("<i4")[:, 0] >> 8).astype(np.float32) / np.float32(scale)
        values = np.frombuffer(content, code).astype(np.float32)
        return (values - 128) / np.float32(scale) if code == "u1" else values / np.float32(scale)


def open_wav(path: Path) -> Wav:
    """What a wav file says of itself: PCM of 8 to 32 bits, or floats.

    Raises:
        InputError: it is no such file.
        OSError: it cannot be opened.
    """
    with open_plain(path) as stream:
        head = stream.read(12)
        if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
            raise InputError(f"{path} is not a wav file")
        found: tuple[int, int, int, int] | None = None
        for name, size in _chunks(stream):
            if name == b"fmt ":
                found = _format(stream.read(min(size, _FORMAT_BYTES)), path)
            elif name == b"data" and found is not None:
                form, channels, rate, bits = found
                start = stream.tell()
                size = min(size, stream.seek(0, 2) - start)  # a stream's header may say anything
                return Wav(path, rate, channels, form, bits, start, size // (bits // 8 * channels))
    raise InputError(f"{path} is a wav file without samples")


def _chunks(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """The name and the size of each chunk, with the stream at its content."""
    for _ in range(_MOST_CHUNKS):
        if len(head := stream.read(8)) < 8:
            return
        name, size = struct.unpack("<4sI", head)
        start = stream.tell()
        yield name, size
        stream.seek(start + size + size % 2)


def _format(content: bytes, path: Path) -> tuple[int, int, int, int]:
    """(format, channels, rate, bits) of a format chunk."""
    if len(content) < 16:
        raise InputError(f"{path} has a damaged header")
    form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", content)
    if form == _EXTENSIBLE and len(content) >= 26:
        (form,) = struct.unpack_from("<H", content, 24)
    if (form, bits) not in _STORED:
        raise InputError(f"{path} holds samples of format {form} with {bits} bits, not read here")
    if not 0 < channels <= _MOST_CHANNELS or not rate:
        raise InputError(f"{path} says {channels} channels at {rate} Hz")
    return form, channels, rate, bits


# Stretches ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ear:
    """How an input takes sound.

    Args:
        length: samples of a stretch, of each channel; None where the model takes any.
        rate: samples a second; None: as they come.
        channels: how many.
    """

    details: Details
    length: int | None
    rate: int | None
    channels: int = 1

    @classmethod
    def of(cls, details: Details, rate: int | None, channels: int | None = None) -> Ear:
        """What an input takes: [n], [1, n], or with channels [n, c], [1, n, c].

        Raises:
            InputError: it takes no sound.
        """
        signature = signature_of(details)
        inner = signature[1:] if len(signature) > 1 and signature[0] in (-1, 1) else signature
        wide = len(inner) == 2 and 0 < inner[1] <= (channels or _MOST_UNTOLD)
        if not (len(inner) == 1 or wide) or np.dtype(details["dtype"]).kind not in "fiu":
            raise InputError(
                f"input {details['name']!r} with shape {signature} takes no sound: that needs "
                f"[n] or [1, n] samples, or up to {_MOST_UNTOLD} channels after them; features of "
                "sound come from another program, as .npy"
            )
        length = None if inner[0] < 1 else inner[0]
        if length is not None and not wide and channels:
            if length % channels:
                raise InputError(
                    f"input {details['name']!r} of {length} values has no whole number of samples "
                    f"in {channels} channels"
                )
            length //= channels
        return cls(details, length, rate, inner[1] if wide else channels or 1)

    def stretches(self, wav: Wav) -> Iterator[Array]:
        """The sound as one input after the other, the last one with silence at its end."""
        waiting, count, made = [np.zeros((0, self.channels), np.float32)], 0, False
        for block in self._heard(wav):
            waiting.append(block)
            count += len(block)
            if self.length is not None and count >= self.length:
                whole = np.concatenate(waiting)
                while count >= self.length:
                    yield self.input_of(whole[: self.length])
                    whole, count, made = whole[self.length :], count - self.length, True
                waiting = [whole]
        if count or not made:
            yield self.input_of(np.concatenate(waiting))

    def input_of(self, samples: Array) -> Array:
        """Samples [n, any channels] in [-1, 1] as the input, with silence at the end.

        Raises:
            InputError: there are more than it takes, or none.
        """
        samples = self._mixed(samples)
        if self.length is not None and len(samples) > self.length:
            raise InputError(f"{len(samples)} samples; the model takes {self.length}")
        if not len(samples):
            raise InputError("there is no sound in it")
        if self.length is not None:
            samples = np.pad(samples, ((0, self.length - len(samples)), (0, 0)))
        shape = tuple(-1 if size < 1 else size for size in signature_of(self.details))
        shape = (1, *shape[1:]) if len(shape) > 1 and shape[0] == -1 else shape
        return _coded(samples, self.details).reshape(shape)

    def _heard(self, wav: Wav) -> Iterator[Array]:
        """Blocks [n, channels] at the input's rate."""
        if self.rate is not None and self.rate > HIGHEST_RATE:
            raise InputError(
                f"sound at {self.rate} Hz is asked for, at most {HIGHEST_RATE} Hz is made"
            )
        if not _LOWEST_RATE <= wav.rate <= HIGHEST_RATE:
            raise InputError(
                f"{wav.path} has sound at {wav.rate} Hz, {_LOWEST_RATE} to {HIGHEST_RATE} are read"
            )
        if self.rate in (None, wav.rate):
            step = max(_BLOCK_FRAMES, min(_BLOCK_SECONDS * wav.rate, _BLOCK_READ // wav.channels))
            for first in range(0, wav.frames, step):
                yield self._mixed(wav.read(first, step))
        else:
            assert self.rate is not None
            for block in resampled(wav, self.rate):
                yield self._mixed(block)

    def _mixed(self, samples: Array) -> Array:
        """With the input's channels: the mean of several, one repeated, or as they are."""
        if samples.shape[1] == self.channels:
            return samples
        mean = samples.mean(axis=1, keepdims=True, dtype=np.float32)
        return np.repeat(mean, self.channels, axis=1)


def resampled(wav: Wav, rate: int) -> Iterator[Array]:
    """Blocks [n, channels] of the sound at another rate, by a windowed sinc filter."""
    up, down = _ratio(wav.rate, rate)
    taps, reach = _filters(up, down)
    most = _BLOCK_FILTERED // (up * wav.channels * taps.shape[1])  # each of `down` samples
    step = max(1, min(_BLOCK_SECONDS * wav.rate // down, most)) * down
    for first in range(0, wav.frames, step):
        count = min(step, wav.frames - first)
        before = max(0, first - reach)
        heard = wav.read(before, first + count + reach - before)
        left = reach - (first - before)
        padded = np.pad(heard, ((left, count + 2 * reach - left - len(heard)), (0, 0)))
        # Where each new sample lies, in steps of 1 / up from the first sample of the block.
        places = np.arange(-(-count * up // down)) * down
        around = np.lib.stride_tricks.sliding_window_view(padded, taps.shape[1], axis=0)
        yield np.einsum("nct,nt->nc", around[places // up], taps[places % up])


def _ratio(given: int, wanted: int) -> tuple[int, int]:
    """(up, down): `wanted` is `given` times up / down."""
    common = gcd(given, wanted)
    up, down = wanted // common, given // common
    if max(up, down) > _LARGEST_TERM:
        raise InputError(f"no conversion from {given} Hz to {wanted} Hz")
    return up, down


def _filters(up: int, down: int) -> tuple[npt.NDArray[np.float32], int]:
    """Filters [up, taps], one for each place between two samples, and how far one reaches."""
    cut = min(1.0, up / down)
    reach = int(np.ceil(_REACH / cut))
    offsets = np.arange(-reach, reach + 1)[np.newaxis] - np.arange(up)[:, np.newaxis] / up
    window = np.cos(np.clip(offsets / (reach + 1), -1, 1) * np.pi / 2) ** 2
    taps = np.sinc(offsets * cut) * window
    return (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32), reach


def _coded(samples: Array, details: Details) -> Array:
    """Real values in the dtype of the input: 16-bit codes as PCM, others by the scale."""
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return samples.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    scale, zero_point = details["quantization"]
    real = samples.astype(np.float64)
    codes = np.round(real / scale) + zero_point if scale else np.round(real * (limits.max + 1))
    return codes.clip(limits.min, limits.max).astype(dtype)
