"""Listens for keywords in a wav file, as if it were a stream.

python examples/spot_keywords.py words.tflite speech.wav
python examples/spot_keywords.py hey_jarvis.tflite speech.wav --features audio_preprocessor.tflite

A model of the first kind takes a stretch of sound and is asked again and again while the stretch
moves on. One of the second kind takes features that another model makes of 30 ms of sound, and
remembers what it has heard in variables.
"""

from __future__ import annotations

import argparse
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import Interpreter, WellKnownOpResolver

Array = npt.NDArray[Any]

FEATURE_RATE, FRAME, STEP = 16_000, 480, 160  # Hz; 30 ms of sound, every 10 ms


def real(codes: Array, detail: dict[str, Any]) -> Array:
    """The values of a tensor as real numbers."""
    scale, zero_point = detail["quantization"]
    return np.asarray((codes.astype(np.float32) - zero_point) * scale if scale else codes)


class Model:
    """A model with one input and one output."""

    def __init__(self, path: Path) -> None:
        self.interpreter = Interpreter(path, resolver=WellKnownOpResolver())
        self.interpreter.allocate_tensors()
        self.given, self.made = (
            self.interpreter.get_input_details()[0],
            self.interpreter.get_output_details()[0],
        )

    def __call__(self, values: Array) -> Array:
        shaped = values.astype(self.given["dtype"]).reshape(self.given["shape"])
        self.interpreter.set_tensor(self.given["index"], shaped)
        self.interpreter.invoke()
        return real(self.interpreter.get_tensor(self.made["index"]), self.made).reshape(-1)


def sound_of(path: Path, rate: int) -> Array:
    """The first channel at `rate` Hz, in [-1, 1)."""
    with wave.open(str(path)) as stream:
        assert stream.getsampwidth() == 2, "16-bit samples only"
        samples = np.frombuffer(stream.readframes(stream.getnframes()), "<i2")
        first = samples[:: stream.getnchannels()] / 32768
        seconds = np.arange(0, len(first) / stream.getframerate(), 1 / rate)
        return np.interp(seconds * stream.getframerate(), np.arange(len(first)), first)


def scores_of_stretches(model: Model, path: Path, rate: int) -> Iterator[tuple[float, Array]]:
    """(second, scores) of stretches that overlap by three quarters; the last one with silence."""
    length = int(np.prod(model.given["shape"]))
    sound = np.append(sound_of(path, rate), np.zeros(length))
    for start in range(0, len(sound) - length, length // 4):
        yield start / rate, model(sound[start : start + length])


def scores_of_features(model: Model, features: Model, path: Path) -> Iterator[tuple[float, Array]]:
    """(second, scores) after every few features, as many as the model takes at once."""
    sound = (sound_of(path, FEATURE_RATE) * 32768).astype(np.int16)
    _, slices, _ = model.given["shape"]
    heard: list[Array] = []
    for start in range(0, len(sound) - FRAME, STEP):
        heard.append(features(sound[start : start + FRAME]))
        if len(heard) == slices:
            yield start / FEATURE_RATE, model(np.stack(heard))
            heard.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("sound", type=Path, help="a wav file, 16 bits")
    parser.add_argument("--features", type=Path, help="the model that makes them")
    parser.add_argument("--rate", type=int, default=16_000, help="Hz, where metadata says none")
    parser.add_argument("--threshold", type=float, default=0.5, help="the least score")
    arguments = parser.parse_args()
    model = Model(arguments.model)
    metadata = model.interpreter.metadata
    if arguments.features is None:
        content = metadata.inputs[0].table.content if metadata.inputs else None
        rate = getattr(content and content.content_properties, "sample_rate", arguments.rate)
        heard = scores_of_stretches(model, arguments.sound, rate)
    else:
        heard = scores_of_features(model, Model(arguments.features), arguments.sound)
    labels = [name for output in metadata.outputs for name in output.labels]
    for second, scores in heard:
        best = int(np.argmax(scores))
        if scores[best] >= arguments.threshold:
            name = labels[best] if best < len(labels) else str(best)
            print(f"{second:7.2f} s  {scores[best]:.3f}  {name}")


if __name__ == "__main__":
    main()
