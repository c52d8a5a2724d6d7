"""Cases of audio: features, and files of samples."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

RNG = np.random.default_rng(23)


def text(content: bytes) -> Array:
    array = np.empty((), object)
    array[()] = content
    return array


def wave(samples: Array, rate: int = 16000, bits: int = 16, before: bytes = b"") -> bytes:
    """A file of 16-bit samples [samples, channels]."""
    frame = 2 * samples.shape[1]
    form = struct.pack("<HHIIHH", 1, samples.shape[1], rate, rate * frame, frame, bits)
    body = samples.astype("<i2").tobytes()
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + before
    chunks += b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


def decoded(content: bytes, note: str, refused: bool = False, **given: Any) -> Case:
    """The content stands in the file: TensorFlow's Python interpreter feeds no single text."""
    return Case(
        "DecodeWav", [text(content)], given, (0,), exports=not refused, refused=refused, note=note
    )


def files() -> list[Case]:
    mono = RNG.integers(-(2**15), 2**15, (9, 1))
    stereo = RNG.integers(-(2**15), 2**15, (5, 2))
    half = (np.arange(-6, 8) + 0.5) / 2**15
    audio = np.concatenate([half, [-2, -1, 0, 0.25, 1, 2]]).astype(np.float32).reshape(-1, 2)
    content = wave(stereo)
    return [
        decoded(wave(mono), "mono"),
        decoded(content, "stereo"),
        decoded(content, "longer", desired_samples=8),
        decoded(content, "shorter", desired_samples=3),
        decoded(content, "one", desired_channels=1),
        decoded(content, "three", desired_channels=3),
        decoded(wave(mono, 44100), "two", desired_channels=2, desired_samples=4),
        decoded(wave(mono, before=b"LIST\x04\x00\x00\x00abcd"), "more"),
        decoded(content[:-1], "cut", refused=True),
        decoded(b"RIFX" + content[4:], "other", refused=True),
        decoded(wave(mono, bits=8), "bits", refused=True),
        decoded(content[:36], "empty", refused=True),
        Case("EncodeWav", [audio, np.array(16000, np.int32)], exports=False),
        Case("EncodeWav", [audio[:, :1], np.array(8000, np.int32)], exports=False, note="mono"),
    ]


def features() -> list[Case]:
    waves = RNG.standard_normal((200, 2)).astype(np.float32) / 4
    squares = (RNG.standard_normal((1, 3, 129)) ** 2).astype(np.float32)
    rate = np.array(16000, np.int32)
    mel = {"upper_frequency_limit": 3999.5, "filterbank_channel_count": 20}
    found = []
    for squared in (False, True):
        given = {"window_size": 60, "stride": 25, "magnitude_squared": squared}
        found.append(Case("AudioSpectrogram", [waves], given, rtol=2e-6, note=f"{squared}"))
    return [
        *found,
        Case("AudioSpectrogram", [waves], {"window_size": 64, "stride": 64}, rtol=2e-6),
        Case("Mfcc", [squares, rate], {}, (1,), rtol=2e-6),
        Case("Mfcc", [squares, rate], mel, (1,), rtol=2e-6, note="20"),
        Case("Mfcc", [squares, rate], mel, exports=False, rtol=2e-6, note="computed"),
    ]


CASES = [*files(), *features()]
