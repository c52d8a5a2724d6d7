"""What the `versions` command says of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.prediction.models import colours
from tests.prediction.test_other_jobs import with_outside
from tflite_ort import Interpreter, Predictor
from tflite_ort.command.versions import (
    OperatorVersion,
    VersionReport,
    version_report,
    versions_command,
)
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import (
    AddOptions,
    Model,
    ModelError,
    Op,
    OperatorCode,
    TensorType,
    read_model,
    write_model,
)

INT8 = T((2,), TensorType.INT8, 0.5)


def content(version: int) -> bytes:
    return one_op_model(Op.ADD, [INT8, INT8], [INT8], AddOptions(), version=version)


def report(version: int) -> VersionReport:
    return version_report(read_model(content(version)))


def test_an_honest_file() -> None:
    found = report(2)
    assert found.operators == (OperatorVersion("ADD", 1, 2, 2, "1.14.0", "int8", ""),)
    assert (found.minimum_runtime, found.required_runtime) == ("1.14.0", "1.14.0")
    assert (found.declared_runtime, found.warnings, found.refused) == (None, (), False)
    assert str(found).splitlines() == [
        "operator  count  version  required  first runtime  brings",
        "ADD       1      2        2         1.14.0         int8",
        "minimum runtime: 1.14.0 (the file says nothing)",
    ]


def test_a_version_too_low_is_warned_of() -> None:
    found = report(1)
    assert (found.minimum_runtime, found.required_runtime) == ("1.5.0", "1.14.0")
    assert len(found.warnings) == 1
    assert f"warning: {found.warnings[0]}" in str(found)


def test_a_refused_version_is_reported_with_the_reason() -> None:
    found = report(9)
    assert found.refused
    assert "TFLite and this library have versions 1 to 6" in found.operators[0].refused
    assert f"refused: {found.operators[0].refused}" in str(found)


def test_the_dictionary_is_json() -> None:
    found = json.loads(json.dumps(report(9).as_dict()))
    assert found["refused"] is True
    assert found["operators"][0]["version"] == 9


def test_a_narrower_resolver_refuses_more() -> None:
    model = read_model(one_op_model(Op.ADD, [INT8, INT8], [INT8], AddOptions(), version=2))
    other = read_model(one_op_model(Op.MUL, [INT8, INT8], [INT8], version=2))
    assert version_report(model, BuiltinOpResolver().narrowed(other)).refused


@pytest.mark.parametrize("version", [1, 2])
def test_columns_do_not_end_in_blanks(version: int) -> None:
    assert all(line == line.rstrip() for line in str(report(version)).splitlines())


@pytest.mark.parametrize(("version", "code"), [(1, 0), (2, 0), (0, 3), (7, 3)])
def test_the_command_fixes_the_file_and_tells_a_refusal_by_its_code(
    version: int, code: int, tmp_path: Path
) -> None:
    path, fixed = tmp_path / "model.tflite", tmp_path / "fixed.tflite"
    path.write_bytes(content(version))
    assert versions_command(path, fix=fixed) == (f"{report(version)}\nwrote {fixed}", code)
    text, _ = versions_command(path, as_json=True)
    assert json.loads(text) == json.loads(json.dumps(report(version).as_dict()))
    text, code_after = versions_command(fixed)
    assert code_after == 0
    assert "minimum runtime: 1.14.0 (the file says 1.14.0)" in text
    assert "warning" not in text


def test_the_command_refuses_a_code_beyond_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    codes: Any = (OperatorCode(210),)  # type: ignore[arg-type]
    path.write_bytes(write_model(Model(version=3, operator_codes=codes)))
    text, code = versions_command(path)
    assert code == 3
    assert "210" in text
    assert json.loads(versions_command(path, as_json=True)[0])["refused"] is True


def test_a_fixed_model_keeps_its_labels(tmp_path: Path) -> None:
    path, fixed = tmp_path / "model.tflite", tmp_path / "fixed.tflite"
    path.write_bytes(colours())
    versions_command(path, fix=fixed)
    (labels,) = (each.labels for each in Interpreter(str(fixed)).metadata.outputs)
    assert labels == ("red", "green", "blue")


def test_a_model_fixed_into_another_folder_has_all_constants(tmp_path: Path) -> None:
    content = with_outside(one_op_model(Op.ADD, [T((1, 4)), T((1, 4))], [T((1, 4))]), "outside.bin")
    (tmp_path / "model.tflite").write_bytes(content)
    (tmp_path / "outside.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (tmp_path / "other").mkdir()
    fixed = tmp_path / "other" / "fixed.tflite"
    versions_command(tmp_path / "model.tflite", fix=fixed)
    np.testing.assert_array_equal(Predictor(fixed)(np.ones((1, 4), np.float32)), [[2, 2, 2, 2]])


def test_an_operator_is_not_fixed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="takes a model"):
        versions_command("CONV_2D", fix=tmp_path / "out.tflite")
