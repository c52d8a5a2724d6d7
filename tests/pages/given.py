"""The files that a reader of the pages has: made when a block names them."""

from __future__ import annotations

import shutil
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.models import model_path
from tests.test_tasks import hand_bundle
from tflite_ort.command.demo import digits_model
from tflite_ort.schema import ModelBuilder, Op, ReducerOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAINING = Path(__file__).parents[1] / "flex/training"


def _copied(source: Callable[[], Path]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        shutil.copy(source(), path)

    return make


def _shared(name: str) -> Callable[[Path], None]:
    return _copied(lambda: model_path(name))


def _picture(path: Path) -> None:
    y, x = np.mgrid[:240, :320]
    colours = np.stack([x * 255 // 320, y * 255 // 240, (x + y) % 256], -1)
    Image.fromarray(colours.astype(np.uint8)).save(path)


def _pictures(folder: Path) -> None:
    folder.mkdir()
    for number in range(3):
        _picture(folder / f"{number}.png")


def _sound(path: Path) -> None:
    t = np.arange(16_000) / 16_000
    samples = (9000 * np.sin(2 * np.pi * (200 + 300 * t) * t)).astype("<i2")
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16_000)
        stream.writeframes(samples.tobytes())


def _written(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _sums_of_squares() -> bytes:
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 8, 8, 4)).tensor("squares", (1, 8, 8, 4))
    main.constant("axes", np.int32([1, 2])).tensor("sums", (1, 4))
    main.operator(Op.SQUARE, ["x"], ["squares"])
    main.operator(Op.SUM, ["squares", "axes"], ["sums"], ReducerOptions())
    main.inputs("x").outputs("sums")
    return builder.write()


# By name: what makes it. `model.tflite` reads digits of 8 x 8 pixels.
GIVEN: dict[str, Callable[[Path], None]] = {
    "model.tflite": _copied(lambda: digits_model("float32")),
    "int8.tflite": _copied(lambda: digits_model("int8")),
    "mobilenet.tflite": _shared("tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite"),
    "mobilenet_v2.tflite": _shared("tflite-support__mobilenet_v2_1.0_224_quant.tflite"),
    "face_detector.tflite": _shared("pypi-mediapipe__face_detection_short_range.tflite"),
    "face_landmark_with_attention.tflite": _shared(
        "pypi-mediapipe__face_landmark_with_attention.tflite"
    ),
    "wake_word.tflite": _shared("pypi-pymicro-wakeword__hey_jarvis.tflite"),
    "training.tflite": _copied(lambda: TRAINING / "keras.tflite"),
    "audio_preprocessor.tflite": _shared("tflm__audio_preprocessor_int8.tflite"),
    "hand_landmarker.task": lambda path: _written(path, hand_bundle()),
    "signatures.tflite": _shared("litert__multi_signature_def.tflite"),
    "deeplab.tflite": _shared("tflite-support__deeplabv3.tflite"),
    "selfie_segmentation.tflite": _shared("pypi-mediapipe__selfie_segmentation.tflite"),
    "pose_landmark_lite.tflite": _shared("npm-mediapipe-holistic__pose_landmark_lite.tflite"),
    "face_detection_full_range_sparse.tflite": _shared(
        "pypi-mediapipe__face_detection_full_range_sparse.tflite"
    ),
    "vww_int8.tflite": _shared("mlperf-tiny__vww_96_int8.tflite"),
    "lstm.tflite": _shared("tf__lstm_seq_f32.tflite"),
    "squares.tflite": lambda path: _written(path, _sums_of_squares()),
    "street.jpg": _picture,
    "cat.jpg": _picture,
    "photo.jpg": _picture,
    "people.jpg": _picture,
    "pictures": _pictures,
    "sound.wav": _sound,
    "examples": lambda path: path.symlink_to(EXAMPLES),
}


def give(folder: Path, text: str) -> None:
    """Makes the files in `folder` that `text` names."""
    for name, make in GIVEN.items():
        if name in text and not (folder / name).exists():
            make(folder / name)
