"""Names and texts of a model that would reach the terminal, or a file outside the folder."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.one_op import T, one_op_model
from tflite_ort.command.arrays import read_inputs, write_outputs
from tflite_ort.command.cli import app
from tflite_ort.command.terminal import say, shown
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.schema import (
    AddOptions,
    Op,
    Operator,
    OperatorCode,
    read_model,
    write_model,
)

# Clears the screen, sets the title, goes a line up, turns the direction, begins a line.
EVIL = "\x1b[2J\x1b]0;title\x07\x9b1A\u202egpj\r\nerror: none\u2028\x7f"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose every text is evil."""
    plain = read_model(one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions()))
    (graph,) = plain.subgraphs
    tensors = (replace(tensor, name=f"{i}{EVIL}") for i, tensor in enumerate(graph.tensors))
    graph = replace(graph, tensors=tuple(tensors), name=EVIL)
    path = tmp_path / "model.tflite"
    path.write_bytes(write_model(replace(plain, subgraphs=(graph,), description=EVIL)))
    return path


@pytest.fixture
def unknown(model: Path) -> Path:
    """The same with an operator that nobody knows by that name."""
    plain = read_model(model)
    (graph,) = plain.subgraphs
    custom = Operator(opcode_index=0, inputs=(0, 1), outputs=(2,))
    graph = replace(graph, operators=(custom,))
    codes = (OperatorCode(Op.CUSTOM, EVIL),)
    path = model.with_name("unknown.tflite")
    path.write_bytes(write_model(replace(plain, subgraphs=(graph,), operator_codes=codes)))
    return path


def is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("command", ["run", "export", "inspect", "versions", "bench"])
@pytest.mark.parametrize("kind", ["model", "unknown"])
def test_every_command_shows_escapes(
    command: str, kind: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(kind)
    few = ["--rounds", "1", "--min-time", "0", "--no-memory"] if command == "bench" else []
    output = CliRunner().invoke(app, [command, str(path), *few]).output
    assert output
    assert is_plain(output), repr(output)
    assert not any(line.startswith("error: none") for line in output.split("\n"))


def test_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("größe 猫 [a]/b:0") == "größe 猫 [a]/b:0"
    assert shown("a\x1b[1m\n\u202eb") == "a\\x1b[1m\\n\\u202eb"
    say("one\ntwo\x07")
    assert capsys.readouterr().out == "one\n  two\\x07\n"


CLIMBING = [
    "../../up",
    "/etc/passwd",
    "a/../../b",
    "..",
    "",
    "C:\\x",
    "..\\..\\up",
    "a\n",
    "x" * 999,
]


def test_names_in_an_archive_do_not_climb_out(tmp_path: Path) -> None:
    names = ["StatefulPartitionedCall:0", "a/b", *CLIMBING, "../../up\x00"]
    write_outputs(tmp_path / "out.npz", dict.fromkeys(names, np.zeros(1)))
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        entries = archive.namelist()
    assert len(set(entries)) == len(names)
    assert entries[:2] == ["StatefulPartitionedCall:0.npy", "a/b.npy"]
    for entry in entries:
        assert entry.isprintable() and "\\" not in entry and len(entry) < 255
        assert not PurePosixPath(entry).is_absolute()
        assert not {"..", "."} & set(PurePosixPath(entry).parts)


def test_names_of_files_stay_in_their_folder(tmp_path: Path) -> None:
    files = write_outputs(tmp_path / "out", dict.fromkeys(CLIMBING, np.zeros(1)))
    assert len(set(files)) == len(CLIMBING)
    assert all(file.parent == tmp_path / "out" and file.exists() for file in files)


def damaged_archive() -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, x=np.arange(100))
    data = bytearray(stream.getvalue())
    data[60:90] = b"\xff" * 30
    return bytes(data)


def bomb() -> bytes:
    """Two gigabytes of zeros, as its directory says, in two kilobytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", array_file(f"{{'descr': '<f4', 'shape': ({2**29},)}}"))
    data, size = bytearray(stream.getvalue()), (2**31).to_bytes(4, "little")
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = size
    return bytes(data)


def array_file(header: str) -> bytes:
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


DAMAGED = {
    "x.npz": damaged_archive(),
    "bomb.npz": bomb(),
    "huge.npy": array_file(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**62},)}}"),
    "deep.npy": array_file("(" * 5000),
    "text.npy": array_file("{'descr': 'what', 'fortran_order': 0, 'shape': 'no'}"),
    "objects.npy": array_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
    "cut.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_inputs_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(DAMAGED[name])
    details = {"name": "x", "index": 0, "dtype": np.float32, "shape": np.array([1, 4, 4, 3])}
    details |= {"shape_signature": details["shape"], "quantization_parameters": {"scales": []}}
    with pytest.raises(InputError) as raised:
        read_inputs([str(tmp_path / name)], [InputColumn("x", details)])
    assert ("unpacks to 2147483648 bytes" in str(raised.value)) is (name == "bomb.npz")
