"""Names that meet in a folder, numbers that JSON lacks, pictures that block or unfold, label files
of nothing but lines."""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.made_bundles import ONE, TWO, adding, task
from tests.schema.test_model_metadata import METADATA
from tests.test_cli import call, refusal
from tests.test_cli_run import two_signatures
from tests.test_metadata import described
from tests.test_tasks import IMAGE, base, detector, face_bundle, hand_bundle
from tflite_ort import BudgetExceeded, Interpreter, MalformedBundle, open_bundle
from tflite_ort.base.files import portable_names
from tflite_ort.base.json_text import written
from tflite_ort.command.terminal import complain
from tflite_ort.export.bundle import export_bundle
from tflite_ort.prediction.triton import _states
from tflite_ort.providers.exported_state import FIRST, PAIRS
from tflite_ort.schema import QuantizationParameters, read_model, write_model
from tflite_ort.schema.file.model_metadata import write_metadata
from tflite_ort.tasks import vision


@pytest.mark.parametrize(
    "names",
    [
        ["a", "A", "0_a"],
        ["1_a", "a", "A", "a"],
        ["ß", "ss", "SS"],
        ["x" * 300, "x" * 301],
        ["..", ""],
    ],
)
def test_names_do_not_meet(names: list[str]) -> None:
    found = portable_names(names)
    assert len({each.casefold() for each in found}) == len(names)
    assert all(0 < len(each.encode()) < 230 and set(each) - {"."} for each in found)


def test_every_model_of_a_bundle_has_a_file(tmp_path: Path) -> None:
    """Also where folders become parts of names, or a signature is called as another model."""
    names = ["x/y", "x.y", "x.y_0", "s.both", "S.weights", "/".join(["é" * 100] * 5)]
    files = {"s.tflite": two_signatures()}
    files |= {f"{name}.tflite": adding(at) for at, name in enumerate(names)}
    index = export_bundle(open_bundle(task(files)), tmp_path / "out")
    paths = []
    for each in json.loads(index.read_text())["models"]:
        paths += [each["file"]] if "file" in each else [each["weights"]]
        paths += [said["file"] for said in each["signatures"].values() if "file" in said]
    assert len({path.casefold() for path in paths}) == len(names) + 3
    assert sorted([*paths, "bundle.json"]) == sorted(os.listdir(tmp_path / "out"))


@pytest.mark.parametrize("name", ["CON.tflite", "a/nul", "aux.x.txt", "Com1 .txt", "é" * 200])
def test_names_that_some_system_cannot_write(name: str) -> None:
    with pytest.raises(MalformedBundle, match="entry name"):
        open_bundle(task({name: ONE, "ok.tflite": TWO}))
    assert open_bundle(task({"console.tflite": ONE, "com.txt": b"", "nullable": b""})).models


def test_states_have_files_of_their_own(tmp_path: Path) -> None:
    names = ["a/b", "a:b", "..", "."]
    values = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in names]
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", values, []))
    first = {name: {"shape": [1], "elements": [at + 1]} for at, name in enumerate(names)}
    said = {PAIRS: json.dumps([[name, f"{name} next"] for name in names]), FIRST: json.dumps(first)}
    onnx.helper.set_model_props(proto, said)
    states = _states(proto, batched=False)
    for state in states:
        state.write(tmp_path)
    for at, state in enumerate(states):
        content = (tmp_path / "initial_state" / state.file).read_bytes()
        assert np.frombuffer(content, np.float32) == at + 1


def strict(text: str) -> Any:
    """What a reader of JSON reads that knows no NaN."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refused)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf])
def test_json_of_numbers_that_it_lacks(scale: float, tmp_path: Path) -> None:
    model = read_model(ONE)
    (graph,) = model.subgraphs
    scales = QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([0]))
    tensors = tuple(replace(each, quantization=scales) for each in graph.tensors)
    graph = replace(graph, tensors=tensors)
    path = tmp_path / "m.tflite"
    path.write_bytes(write_model(replace(model, subgraphs=(graph,))))
    said = strict(call("inspect", path, "--json").stdout)
    assert str(scale) in json.dumps(said)
    assert strict(written({"a": [scale, (np.float64(scale), 1.5)]}))["a"][1][1] == 1.5


@pytest.mark.parametrize("line", [b"\n", b"\r", b"\r\n"])
def test_a_label_file_of_nothing_but_lines(line: bytes) -> None:
    content = described(write_metadata(METADATA), {"labels.txt": line * 5_000_000})
    with pytest.raises(BudgetExceeded, match="metadata bytes"):
        Interpreter(model_content=content).metadata  # noqa: B018
    content = described(write_metadata(METADATA), {"labels.txt": b"a\xe2\x80\xa8b\r\nc\rd\n"})
    labels = Interpreter(model_content=content).metadata.outputs[0].labels
    assert labels == ("a\N{LINE SEPARATOR}b", "c", "d")


def png_bomb() -> bytes:
    """A picture of 3.6 thousand million pixels in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["bomb", "pipe", "folder", "damaged"])
@pytest.mark.parametrize("within", [True, False])
def test_a_film_that_is_none(kind: str, within: bool, tmp_path: Path) -> None:
    film = tmp_path / "film"
    film.mkdir()
    path = film / "0.png"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        (path / "0.png").mkdir(parents=True)
    else:
        path.write_bytes(png_bomb() if kind == "bomb" else png_bomb()[:20])
    bundle = tmp_path / "hand.task"
    bundle.write_bytes(hand_bundle())
    camera = film if within or kind == "folder" else path
    arguments = ["demo", "--camera", camera, "--bundle", bundle, "--out", tmp_path / "out"]
    if kind == "damaged" and not within:  # not a picture: a film, for which OpenCV may be missing
        assert call(*arguments).exit_code in (1, 2)
        return
    assert "0.png" in refusal(*arguments)


def test_a_detector_that_finds_nowhere() -> None:
    """Points that are no numbers are no face, and no untyped error."""
    nowhere = np.full((6, 2), math.nan)
    name = "face_landmarks_detector.tflite"
    files = {name: bytes(open_bundle(face_bundle()).content(name))}
    content = task({"face_detector.tflite": detector(128, 896, 6, 34, nowhere), **files})
    options = vision.FaceLandmarkerOptions(base(content))
    with vision.FaceLandmarker.create_from_options(options) as landmarker:
        assert landmarker.detect(IMAGE).face_landmarks == []


@pytest.mark.parametrize(
    ("error", "said"), [(MemoryError(), "not enough memory"), (RecursionError(), "RecursionError")]
)
def test_an_error_without_a_text_says_what_it_is(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    complain(error)
    assert said in capsys.readouterr().err


def test_many_files_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(described(write_metadata(METADATA), {f"f{i}.txt": b"" for i in range(3000)}))
    said = call("inspect", path).stdout
    assert "file: f49.txt, 0 bytes\nand 2950 more files\n" in said
    assert "f50.txt" not in said


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_inspect_of_a_model_without_subgraphs(more: list[str], tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(write_model(replace(read_model(ONE), subgraphs=(), signature_defs=())))
    result = call("inspect", path, *more)
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 3
