"""The examples run, and hear and see what LiteRT does."""

from __future__ import annotations

import runpy
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from PIL import Image
from sklearn.datasets import load_sample_image

import classify_image
import spot_keywords
from tests.models import model_path

EXAMPLES = Path(classify_image.__file__).parent
MOBILENET = "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite"
WITHOUT_METADATA = "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
SSD = "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"
WORDS = "pypi-word-activation-recognition__star_trek_activation_phrase_v2.tflite"
STREAMED = "pypi-pymicro-wakeword__hey_jarvis.tflite"
FEATURES = "tflm__audio_preprocessor_int8.tflite"


@pytest.fixture(scope="module")
def palace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "china.png"
    Image.fromarray(load_sample_image("china.jpg")).save(path)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of a rising tone."""
    path = tmp_path_factory.mktemp("sounds") / "tone.wav"
    t = np.arange(2 * 16_000) / 16_000
    samples = (9000 * np.sin(2 * np.pi * (200 + 300 * t) * t)).astype("<i2")
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16_000)
        stream.writeframes(samples.tobytes())
    return path


Call = Callable[..., str]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs an example as a program, in this process, and gives what it prints."""

    def run(example: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [example, *map(str, arguments)])
        capsys.readouterr()
        runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_picture_is_classified(call: Call, palace: Path, tmp_path: Path) -> None:
    name, score = classify_image.classify(model_path(MOBILENET), palace)[0]
    assert name == "palace"
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"class {i}" for i in range(1001)))
    output = call("classify_image", model_path(MOBILENET), palace, "--labels", labels, "--top", 2)
    assert len(output.splitlines()) == 2
    assert output.split()[:3] == [f"{score:.4f}", "class", "699"]


def test_an_example_is_a_program_of_its_own() -> None:
    """It finds the files beside it."""
    program = [sys.executable, EXAMPLES / "detect_objects.py", "--help"]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_a_model_without_metadata_gets_the_pixels(palace: Path) -> None:
    name, _ = classify_image.classify(model_path(WITHOUT_METADATA), palace)[0]
    assert name == "palace"  # of ImageNet, by the number of classes


def test_boxes_are_drawn(call: Call, palace: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "found.png"
    output = call("detect_objects", model_path(SSD), palace, drawn, "--threshold", 0.4)
    score, name, *sides = output.splitlines()[0].split()  # the surest
    assert (name, len(sides)) == ("boat", 4)
    assert float(score) > 0.4
    before, after = (np.asarray(Image.open(path).convert("RGB")) for path in (palace, drawn))
    left, top = (
        round(float(side) * size) for side, size in zip(sides[:2], (640, 427), strict=True)
    )
    assert (after[top + 50, left] != before[top + 50, left]).any()
    assert 0.005 < (before != after).any(axis=-1).mean() < 0.1


def heard(monkeypatch: pytest.MonkeyPatch, streamed: bool, sound: Path) -> list[Any]:
    """(second, scores), of our interpreter and of LiteRT."""
    results = []
    kinds = (spot_keywords.Interpreter, lambda path, resolver: LiteRT(str(path)))
    models = [spot_keywords.Model(model_path(FEATURES)) if streamed else None for _ in kinds]
    for kind, features in zip(kinds, models, strict=True):
        monkeypatch.setattr(spot_keywords, "Interpreter", kind)
        model = spot_keywords.Model(model_path(STREAMED if streamed else WORDS))
        results.append(
            list(
                spot_keywords.scores_of_stretches(model, sound, 44_100)
                if features is None
                else spot_keywords.scores_of_features(model, features, sound)
            )
        )
    return results


@pytest.mark.parametrize("streamed", [False, True], ids=["stretches", "features"])
def test_keywords_are_heard_as_in_litert(
    monkeypatch: pytest.MonkeyPatch, streamed: bool, sound: Path
) -> None:
    ours, theirs = heard(monkeypatch, streamed, sound)
    assert len(ours) == len(theirs) > 5
    for (second, scores), (other_second, other) in zip(ours, theirs, strict=True):
        assert second == other_second
        np.testing.assert_allclose(scores, other, atol=0 if streamed else 5e-3)


def test_keywords_are_printed_with_their_labels(call: Call, sound: Path) -> None:
    output = call("spot_keywords", model_path(WORDS), sound, "--threshold", 0)
    lines = [line.split(maxsplit=3) for line in output.splitlines()]
    assert {label for *_, label in lines} <= {"0 Background Noise", "1 annuler", "2 ordinateur"}
    arguments = (model_path(STREAMED), sound, "--features", model_path(FEATURES))
    output = call("spot_keywords", *arguments, "--threshold", 0)
    assert len(output.splitlines()) == 65
