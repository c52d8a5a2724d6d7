"""TensorFlow's audio operators: features, and files of 16-bit samples (RIFF WAVE)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels import signal
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_SCALE = 1 << 15  # of a sample of 1.0
_BYTES = 2  # of a sample
_PCM = 1
# The fields of a format: kind, channels, rate, bytes of a second, bytes of a frame, bits.
_FORMAT = struct.Struct("<HHIIHH")
_CHUNK = struct.Struct("<4sI")
_START = 12  # bytes before the first chunk
_MOST_VALUES = 1 << 26

# Custom operators of TFLite too.
flex_kernel("AudioSpectrogram")(signal.audiospectrogram)
flex_kernel("Mfcc")(signal.mfcc)


@flex_kernel("DecodeWav")
def decode_wav(op: View, inputs: Inputs, state: State) -> Outputs:
    """Samples [samples, channels] in [-1, 1) of a file, and its rate; zeros after its end, and the
    last channel again where more are asked for."""
    node = node_of(op)
    samples, rate = _samples(bytes(inputs[0].item()))
    count, channels = node["desired_samples"], node["desired_channels"]
    channels = samples.shape[1] if channels == -1 else channels
    count = len(samples) if count == -1 else count
    if count * channels > _MOST_VALUES:
        raise KernelError(f"{count} samples of {channels} channels")
    found = np.zeros((count, channels), np.float32)
    some = samples[:count]
    found[: len(some)] = some[:, np.minimum(np.arange(channels), samples.shape[1] - 1)]
    return found / np.float32(_SCALE), np.array(rate, np.int32)


def _samples(content: bytes) -> tuple[Array, int]:
    """The samples [samples, channels] of a file as int16, and its rate."""
    if content[:4] != b"RIFF" or content[8:_START] != b"WAVE":
        raise KernelError("the content is not a RIFF WAVE file")
    kind, size, at = _chunk(content, _START)
    if kind != b"fmt " or size not in (16, 18) or at + size > len(content):
        raise KernelError("the file has no format of 16-bit samples")
    form, channels, rate, second, frame, bits = _FORMAT.unpack_from(content, at)
    if form != _PCM or bits != 8 * _BYTES or not channels or frame != _BYTES * channels:
        raise KernelError(f"samples of format {form}, {bits} bits and {channels} channels")
    if second != rate * frame or rate >= 2**31:
        raise KernelError(f"{second} bytes of a second at {rate} Hz")
    at += size
    while at < len(content):
        kind, size, at = _chunk(content, at)
        if kind == b"data":
            count = size // frame
            if at + count * frame > len(content):
                raise KernelError("the samples end early")
            return np.frombuffer(content, "<i2", count * channels, at).reshape(-1, channels), rate
        at += size
    raise KernelError("the file has no samples")


def _chunk(content: bytes, at: int) -> tuple[bytes, int, int]:
    """The kind, the size and the start of what a chunk has."""
    if at + _CHUNK.size > len(content):
        raise KernelError("the file ends early")
    kind, size = _CHUNK.unpack_from(content, at)
    return kind, size, at + _CHUNK.size


@flex_kernel("EncodeWav")
def encode_wav(op: View, inputs: Inputs, state: State) -> Outputs:
    """A file of samples [samples, channels], which are cut to [-1, 1)."""
    samples, rate = inputs[0], int(inputs[1].item())
    if samples.ndim != 2 or not samples.size or rate <= 0 or samples.shape[1] >= 2**16:
        raise KernelError(f"samples of shape {samples.shape} at {rate} Hz")
    if np.isnan(samples).any():
        raise KernelError("a sample is not a number")
    wide = samples.astype(np.float64) * _SCALE
    codes = np.trunc(wide + np.copysign(0.5, wide)).clip(-_SCALE, _SCALE - 1).astype("<i2")
    frame = _BYTES * samples.shape[1]
    form = _FORMAT.pack(_PCM, samples.shape[1], rate, rate * frame % 2**32, frame, 8 * _BYTES)
    body = codes.tobytes()
    chunks = _CHUNK.pack(b"fmt ", len(form)) + form + _CHUNK.pack(b"data", len(body)) + body
    found = np.empty((), object)
    found[()] = _CHUNK.pack(b"RIFF", len(chunks) + 4) + b"WAVE" + chunks
    return (found,)
