"""Frames of films, and what is drawn on them; landmarks without this library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.test_tasks import FACES, IMAGE, base, face_bundle, hand_bundle
from tflite_ort import open_bundle
from tflite_ort.command.cli import app
from tflite_ort.export.bundle import export_bundle
from tflite_ort.tasks import drawing, vision

Array = npt.NDArray[Any]

EXAMPLE = Path(__file__).parents[1] / "examples" / "landmarks_onnxruntime.py"
# Runs a file as a program in a process that cannot import this library.
ALONE = """
import runpy, sys
sys.modules["tflite_ort"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def bundles(tmp_path: Path) -> dict[str, Path]:
    made = {"hand": hand_bundle(), "face": face_bundle()}
    for name, content in made.items():
        (tmp_path / f"{name}.task").write_bytes(content)
    return {name: tmp_path / f"{name}.task" for name in made}


def frames() -> list[Image.Image]:
    return [Image.new("RGB", (160, 120), colour) for colour in ("white", "gray", "white")]


@pytest.fixture(params=["folder", "animated"])
def film(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "animated":
        path = tmp_path / "film.webp"
        first, *others = frames()
        first.save(path, save_all=True, append_images=others, duration=40, lossless=True)
        return path
    folder = tmp_path / "film"
    folder.mkdir()
    (folder / "notes.txt").write_text("no frame")
    for number, frame in enumerate(frames()):
        frame.save(folder / f"{number:06}.png")
    return folder


def test_demo_draws_on_the_frames_of_a_film(
    film: Path, bundles: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["demo", "--camera", film, "--out", out, "--most", 1]
    for bundle in bundles.values():
        arguments += ["--bundle", bundle]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    assert result.output.count("1 by hand.task, 1 by face.task") == 3
    assert [path.name for path in sorted(out.iterdir())] == [f"{n:06}.png" for n in range(3)]
    with Image.open(out / "000001.png") as picture:
        drawn = np.asarray(picture)
    colours = {tuple(each) for each in drawn.reshape(-1, 3).tolist()}
    assert colours >= {(128, 128, 128), (0x18, 0xB2, 0x6B), (0xF2, 0xC2, 0x30)}


def test_demo_refuses(bundles: dict[str, Path], tmp_path: Path) -> None:
    empty, nothing = tmp_path / "empty", tmp_path / "nothing.mp4"
    empty.mkdir()
    (tmp_path / "face.tflite").write_bytes(FACES)
    for camera, bundle, said in (
        (empty, None, "needs --bundle"),
        (nothing, bundles["hand"], "No such file"),
        (empty, tmp_path / "face.tflite", "no landmarks of hands, faces or bodies"),
    ):
        arguments = ["demo", "--camera", camera, *(["--bundle", bundle] if bundle else [])]
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code in (1, 2)
        assert said in " ".join(result.output.split())


def test_a_film_is_read_by_opencv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interface alone: OpenCV gives BGR and a rate."""
    path = tmp_path / "film.mp4"
    path.write_bytes(b"no picture")
    left = [np.full((2, 3, 3), (1, 2, number), np.uint8) for number in (2, 1)]
    capture = SimpleNamespace(
        isOpened=lambda: True,
        get=lambda key: {5: 25.0}[key],
        read=lambda: (True, left.pop()) if left else (False, None),
        release=left.clear,
    )
    stand_in = SimpleNamespace(VideoCapture=lambda name: capture, CAP_PROP_FPS=5)
    monkeypatch.setitem(sys.modules, "cv2", stand_in)
    found = list(drawing.frames_of(path))
    assert [(each.name, each.time_ms) for each in found] == [("000000", 0), ("000001", 40)]
    assert found[1].pixels[0, 0].tolist() == [2, 2, 1]
    monkeypatch.delitem(sys.modules, "cv2")
    monkeypatch.setattr(drawing, "optional_module", lambda name: None)
    with pytest.raises(ImportError, match="pip install pillow"):
        next(drawing.frames_of(path))


@pytest.mark.parametrize("name", ["hand", "face"])
def test_an_exported_bundle_in_plain_onnx_runtime(
    name: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    """A detector, the region that it tells, and landmarks there, without this library."""
    folder, picture = tmp_path / "exported", tmp_path / "picture.png"
    export_bundle(open_bundle(bundles[name]), folder, decode="image")
    Image.fromarray(IMAGE).save(picture)
    command = [sys.executable, "-c", ALONE, EXAMPLE, folder, picture]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    found = np.array(json.loads(said.stdout))
    content = bundles[name].read_bytes()
    if name == "hand":
        hands = vision.HandLandmarkerOptions(base(content))
        (points,) = vision.HandLandmarker.create_from_options(hands).detect(IMAGE).hand_landmarks
    else:
        faces = vision.FaceLandmarkerOptions(base(content))
        (points,) = vision.FaceLandmarker.create_from_options(faces).detect(IMAGE).face_landmarks
    wanted = [[point.x, point.y, point.z] for point in points]
    np.testing.assert_allclose(found, [wanted], atol=1e-5)
