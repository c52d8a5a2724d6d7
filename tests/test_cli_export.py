"""What ``export`` says of the file that it wrote."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_cli import FLOAT, call
from tests.test_decode import network
from tflite_ort import ExportError, export_onnx, export_signatures
from tflite_ort.export import exporting as export
from tflite_ort.export.check import ExportMismatch
from tflite_ort.schema import AddOptions, Op, SqueezeOptions


def test_weights_that_an_earlier_export_left_are_not_counted(tmp_path: Path) -> None:
    out = tmp_path / "m.onnx"
    data = out.with_name("m.onnx.data")
    apart = json.loads(call("export", FLOAT, out, "--external-data", "--json").stdout)
    assert apart["bytes"] == out.stat().st_size + data.stat().st_size
    whole = json.loads(call("export", FLOAT, out, "--json").stdout)
    assert data.exists()
    assert whole["bytes"] == out.stat().st_size


def test_a_small_file_has_a_size_and_one_node(tmp_path: Path) -> None:
    path = tmp_path / "add.tflite"
    path.write_bytes(one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions()))
    said = call("export", path).output
    size = path.with_suffix(".onnx").stat().st_size
    assert f"add.onnx: {size / 1e3:.1f} kB, opset 21, 1 node\n" in said
    assert "input   in0   float32  4" in said
    assert "next: the same command with --check compares" in said  # all its options count
    batched = call("export", path, "--batch", "N", "--check", "--verbose").output
    assert "open: N of in0, N of in1" in batched
    assert "next: onnxruntime.InferenceSession(" in batched
    assert "Add" in batched


def test_a_decoded_file_is_said_to_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "classes.tflite"
    path.write_bytes(network(16, [np.zeros((1, 5))], last=Op.SOFTMAX))
    said = call("export", path, "--decode", "--check")
    assert said.exit_code == 0
    assert "checked the network before its decoding" in said.output

    def differs(*_: Any, **__: Any) -> None:
        raise ExportMismatch("output 'scores' differs")

    monkeypatch.setattr(export, "check_export", differs)
    off = call("export", path, "--decode", "--check")
    assert off.exit_code == 4
    assert "output 'scores' differs" in off.output


def test_a_model_without_signatures_is_exported_as_a_whole(tmp_path: Path) -> None:
    content = one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions())
    with pytest.raises(ExportError, match="Export it as a whole"):
        export_signatures(content, tmp_path)


@pytest.mark.parametrize("form", [{"external_data": True}, {"batch": 4}, {"batch": "N"}])
def test_forms_that_a_decoded_file_cannot_have_are_refused(
    form: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "classes.tflite"
    path.write_bytes(network(16, [np.zeros((1, 5))], last=Op.SOFTMAX))
    with pytest.raises(ValueError, match="decode takes no batch"):
        export_onnx(path, tmp_path / "out.onnx", decode=True, **form)
    ((name, value),) = form.items()
    options = [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    result = call("export", path, tmp_path / "out.onnx", "--decode", *options)
    assert (result.exit_code, "--external-data" in result.output) == (2, True)
    assert not (tmp_path / "out.onnx").exists()


def test_an_unknown_argument_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="export_onnx takes no 'nhwc'; did you mean 'nchw'"):
        export_onnx(FLOAT, tmp_path / "m.onnx", nhwc=["image"])  # type: ignore[call-arg]


def test_sizes_that_cannot_stay_open_are_told(tmp_path: Path) -> None:
    path = tmp_path / "squeeze.tflite"
    input = T((1, 3, 1), shape_signature=(1, 3, -1))
    path.write_bytes(one_op_model(Op.SQUEEZE, [input], [T((3,))], SqueezeOptions()))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("export", path)
    assert result.exit_code == 0
    said = result.stderr.splitlines()
    assert said[0].startswith("warning: sizes of 'in0' that the file leaves open are fixed; with")
    assert said[1] == "  SQUEEZE_0 version 1: a rank depends on data"


def test_a_folder_gets_a_file_of_the_model_s_name(tmp_path: Path) -> None:
    """As cp does. A folder that is not there is no file without a suffix."""
    path, folder = tmp_path / "add.tflite", tmp_path / "written"
    path.write_bytes(one_op_model(Op.ADD, [T((4,)), T((4,))], [T((4,))], AddOptions()))
    folder.mkdir()
    for out in (str(folder), f"{folder}/"):
        said = call("export", path, out)
        assert said.exit_code == 0 and f"wrote {folder / 'add.onnx'}: " in said.output
        (folder / "add.onnx").unlink()
    missing = call("export", path, f"{tmp_path}/nothere/")
    assert missing.exit_code == 1
    assert f"{tmp_path / 'nothere' / 'add.onnx'}: No such file or directory" in missing.output
    assert sorted(each.name for each in tmp_path.iterdir()) == ["add.tflite", "written"]
