"""Budgets and folders of constants on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_cli import INT8, call
from tflite_ort.schema import (
    AddOptions,
    ExternalBuffer,
    ExternalBufferGroup,
    Op,
    read_model,
    write_model,
)
from tflite_ort.verification.litert import LitertProcess


@pytest.mark.parametrize(
    "command",
    [
        *("run", "export", "inspect", "bench", "verify", "extract", "tune", "triton", "compile"),
        "versions",
    ],
)
def test_constants_outside_the_folder_need_a_root(command: str, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    add = read_model(one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions()))
    (graph,) = add.subgraphs
    x, weights, y = graph.tensors
    outside = (x, replace(weights, external_buffer=1), y)
    model = replace(
        add,
        subgraphs=(replace(graph, tensors=outside, inputs=(0,)),),
        external_buffer_groups=(ExternalBufferGroup(str(tmp_path / "weights.bin")),),
        external_buffers=(ExternalBuffer(1, 0, 0, 16),),
    )
    (tmp_path / "below").mkdir()
    path = tmp_path / "below" / "model.tflite"
    path.write_bytes(write_model(model))
    few = {
        "bench": ["--rounds", "1", "--min-time", "0", "--no-litert"],
        "export": ["--check"],
        "extract": [tmp_path / "part.tflite"],
        "tune": ["--out", tmp_path / "tuned.json"],
        "compile": ["--cache", tmp_path / "cache"],
        "triton": [tmp_path / "repository"],
        "versions": ["--fix", tmp_path / "fixed.tflite"],
    }.get(command, [])
    without = call(command, path, *few)
    assert "outside the model's folder: --external-root DIR" in without.output
    result = call(command, path, "--external-root", tmp_path, *few)
    assert result.exit_code == (command == "compile")  # which keeps no such model
    assert "external_roots" not in result.output
    assert (command == "compile") == ("constants are in other files" in result.output)


@pytest.mark.parametrize("command", ["verify", "extract", "export", "tune", "compile"])
def test_a_budget_reaches_every_verb(command: str, tmp_path: Path) -> None:
    more = {"extract": [tmp_path / "part.tflite"], "export": [tmp_path / "out.onnx", "--check"]}
    path = tmp_path / "add.tflite"  # without constants, which raise the limit
    path.write_bytes(one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions()))
    few = ["--budget", "tensor_bytes=1", *more.get(command, [])]
    refused = call(command, path, *few)
    said = "tensor_bytes" in refused.output
    assert said == (command != "extract")  # which runs nothing
    assert call(command, INT8, "--budget", "none=1", *more.get(command, [])).exit_code == 2


@pytest.mark.parametrize(
    ("command", "options", "work"),
    [
        ("verify", ["--report"], "verify.verified"),
        ("verify", ["--json"], "verify.verified"),
        ("verify", ["--extract"], "verify.verified"),
        ("bench", ["--json"], "bench.measure"),
        ("bench", ["--html"], "bench.measure"),
        ("export", [], "export.export_onnx"),
        ("extract", [], "extract.extracted"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(
    command: str,
    options: list[str],
    work: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_work(*_: object, **_named: object) -> None:
        pytest.fail(f"{command} began to work")

    monkeypatch.setattr(f"tflite_ort.command.{work}", no_work)
    folder = tmp_path
    if command == "export":  # which writes into a folder, but not in the place of one
        folder = tmp_path / Path(INT8).with_suffix(".onnx").name
        folder.mkdir()
    for path, where, said in (
        (tmp_path / "no" / "file", tmp_path / "no" / "file", "No such file or directory"),
        (tmp_path, folder, "Is a directory"),
    ):
        result = call(command, INT8, *options, path)
        assert result.exit_code == 1 and f"{where}: {said}" in result.output


@pytest.mark.parametrize("folder", [".", "/", ""])
@pytest.mark.parametrize("options", [[], ["--all-signatures"]])
def test_an_export_of_a_folder_says_that_it_is_one(folder: str, options: list[str]) -> None:
    result = call("export", folder, *options)
    assert result.exit_code == 1 and "Is a directory" in result.output


@pytest.mark.parametrize("command", ["export", "extract", "versions"])
def test_nothing_is_written_over_the_model(command: str, tmp_path: Path) -> None:
    content = one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions())
    path, link = tmp_path / "add.tflite", tmp_path / "link"
    path.write_bytes(content)
    link.symlink_to(path)
    for out in (path, link):
        result = call(command, path, *(["--fix", out] if command == "versions" else [out]))
        assert (result.exit_code, "is the model itself" in result.output) == (2, True)
    assert path.read_bytes() == content


def test_fixed_versions_take_the_place_of_another_model(tmp_path: Path) -> None:
    content = one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions())
    path, out = tmp_path / "add.tflite", tmp_path / "fixed.tflite"
    path.write_bytes(content)
    out.write_bytes(content[:100])
    assert call("versions", path, "--fix", out).exit_code == 0
    assert read_model(out).subgraphs
    missing = call("versions", path, "--fix", tmp_path / "none" / "fixed.tflite")
    assert missing.exit_code == 1 and "No such file" in missing.output


@pytest.mark.parametrize(
    "option",
    ["--opset 17", "--nchw in0", "--rename out0=y", "--float16", "--exact", "--signature x"],
)
def test_a_bundle_is_not_written_in_another_form(option: str, tmp_path: Path) -> None:
    bundle = tmp_path / "b.task"
    with ZipFile(bundle, "w") as archive:
        model = one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions())
        archive.writestr("model.tflite", model)
    result = call("export", bundle, tmp_path / "out", *option.split())
    assert (result.exit_code, option.split()[0] in result.output) == (2, True)
    assert not (tmp_path / "out").exists()
    assert call("export", bundle, tmp_path / "out").exit_code == 0


@pytest.mark.parametrize("command", ["run", "verify", "bench", "export"])
@pytest.mark.parametrize("shape", [(2**31 - 1,), (2**31 - 1,) * 4])
def test_inputs_of_gigabytes_are_not_drawn(
    command: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """`run` took all memory there was, or ended in numpy's error."""
    path, few = tmp_path / "add.tflite", {"export": [tmp_path / "out.onnx", "--check"]}
    path.write_bytes(one_op_model(Op.ADD, [T(shape), T(shape)], [T(shape)], AddOptions()))
    result = call(command, path, *few.get(command, []))
    assert result.exit_code == 1
    assert "tensor bytes, more than the limit of 2000000000" in result.output
    *notes, error = result.output.strip().splitlines()
    assert error.startswith("error: ")
    assert notes == (["in0, in1: random values, as no FILE gives others"] if notes else [])


def test_litert_is_not_asked_for_what_the_budgets_forbid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels filled gigabytes for minutes, before our interpreter refused the model."""
    path, size = tmp_path / "fill.tflite", T.constant(np.array([1 << 30], np.int32))
    value = T.constant(np.float32(1))
    path.write_bytes(one_op_model(Op.FILL, [size, value], [T((1 << 30,))]))
    monkeypatch.delattr(LitertProcess, "load")
    result = call("verify", path)
    assert result.exit_code == 1
    assert "FILL_0 asks for 4294967264 tensor bytes" in result.output
