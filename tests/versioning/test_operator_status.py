"""The table of where each operator runs: whole, and told on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.accepted_types import accepted_types
from tflite_ort.command.operator_status import (
    MIXED,
    NUMPY,
    ORT,
    first_version,
    operator_text,
    read_record,
    type_statuses,
)
from tflite_ort.command.operators_page import operators_page
from tflite_ort.command.versions import versions_command
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.flow import INLINED
from tflite_ort.schema.values.operators import data_types
from tflite_ort.versioning.known import known_versions

RECORD = read_record()
OPERATORS = [op for op in Op if known_versions(op)]
PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_page_is_up_to_date() -> None:
    fresh = "python -m tflite_ort.command.operators_page > docs/operators.md"
    assert PAGE.read_text(encoding="utf-8") == operators_page(RECORD), f"stale, run: {fresh}"


@pytest.mark.parametrize("op", set(OPERATORS) - INLINED, ids=lambda op: op.name)
def test_every_version_and_type_has_a_place(op: Op) -> None:
    statuses = type_statuses(op, RECORD)
    assert {status.type for status in statuses} >= accepted_types(op)
    assert {status.runs_on for status in statuses} <= {ORT, MIXED, NUMPY}


@pytest.mark.parametrize("op", list(filter(data_types, OPERATORS)), ids=lambda op: op.name)
def test_a_type_that_no_kernel_takes_is_refused(op: Op) -> None:
    assert {status.type for status in type_statuses(op, RECORD)} <= accepted_types(op)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_a_type_has_a_first_version(op: Op) -> None:
    assert {first_version(op, type) for type in TensorType} <= set(known_versions(op))


def test_the_page_answers_for_a_version_and_a_type() -> None:
    lines = operators_page(RECORD).splitlines()
    (row,) = (line for line in lines if line.startswith("| CONV_2D |"))
    on_ort = row.split("|")[2]
    assert "4: int16" in on_ort
    (status,) = (
        each for each in type_statuses(Op.CONV_2D, RECORD) if each.type is TensorType.INT16
    )
    assert (status.since, status.runs_on) == (4, ORT)


def test_the_text_of_an_operator() -> None:
    assert "int16         (from 1)  ONNX Runtime, exported" in operator_text(
        Op.TRANSPOSE_CONV, RECORD
    )
    assert operator_text(Op.FLOOR, {"FLOOR": {"BFLOAT16": {"numpy": ["a reason"]}}}) == (
        "FLOOR: version 1, any other is refused\n"
        "  1  TFLite 1.9.0\n"
        "on data of these types it runs, in every version, on\n"
        "  bfloat16      (from 1)  numpy\n"
        "                numpy: a reason\n"
        "data of other types is refused"
    )


def test_the_command_tells_of_an_operator() -> None:
    text, code = versions_command("Conv_2d")
    assert (text.splitlines()[0], code) == ("CONV_2D: versions 1 to 8, any other is refused", 0)
    told = json.loads(versions_command("softmax", as_json=True)[0])
    (float32,) = (row for row in told["types"] if row["type"] == "FLOAT32")
    assert (float32["since"], float32["runs_on"]) == (1, ORT)
    assert [row["version"] for row in told["versions"]] == [1, 2, 3, 4]


def test_what_is_no_operator_is_a_file_that_is_missing() -> None:
    for name in ("no_such", Op.CONCAT_EMBEDDINGS.name):  # the second has no kernel in TFLite
        with pytest.raises(FileNotFoundError):
            versions_command(name)
