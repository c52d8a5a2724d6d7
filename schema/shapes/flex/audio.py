"""Shape rules of TensorFlow's audio operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import MOST_CELLS, Shapes, flex_rule, of_rank
from tflite_ort.schema.shapes.signal import audio_spectrogram, mfcc
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView

flex_rule("AudioSpectrogram")(audio_spectrogram)
flex_rule("Mfcc")(mfcc)


@flex_rule("DecodeWav")
def decode_wav(op: OperatorView[Any]) -> Shapes:
    """[samples, channels], as far as they are asked for, and the rate."""
    of_rank(op, "contents", 0)
    sizes = [node_of(op)[name] for name in ("desired_samples", "desired_channels")]
    if min(sizes) < -1 or max(sizes) > MOST_CELLS or sizes[0] * sizes[1] > MOST_CELLS:
        raise ModelError(f"{op.label}: {sizes[0]} samples of {sizes[1]} channels")
    samples, channels = (unknown_size() if size == -1 else size for size in sizes)
    return (samples, channels), ()


@flex_rule("EncodeWav")
def encode_wav(op: OperatorView[Any]) -> Shapes:
    """A text."""
    of_rank(op, "audio", 2)
    of_rank(op, "sample_rate", 0)
    return ((),)
