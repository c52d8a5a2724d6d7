"""A folder of models measured by the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tflite_ort.command.bench_suite import (
    classes,
    kind_of,
    models_of,
    read_suite,
    speed_plot,
    suite_record,
    to_html,
)
from tflite_ort.command.benchmark import Result, Timing
from tflite_ort.command.cli import app
from tflite_ort.command.demo import DIGITS, digits_model


def result(model: str, ours: float, litert: float | None, threads: int = 1) -> Result:
    other = None if litert is None else Timing(litert, 1.0, None)
    ratio = None if litert is None else litert / ours
    return Result(model, threads, Timing(ours, 1.0, None), 1.0, 1.0, 1.0, other, ratio)


KINDS = {
    "a": kind_of(digits_model("int8")),
    "b": kind_of(digits_model("float32")),
    "c": kind_of(digits_model("lstm_float32")),
    "<d>": kind_of(digits_model("float32")),
}


@pytest.mark.parametrize(
    ("name", "recurrent", "numbers"),
    [
        ("int8", False, "int8"),
        ("float32", False, "float32"),
        ("lstm_float32", True, "float32"),
        ("lstm_int8", True, "int8"),
    ],
)
def test_kinds(name: str, recurrent: bool, numbers: str) -> None:
    kind = kind_of(digits_model(name))
    assert (kind.recurrent, kind.numbers) == (recurrent, numbers)


def test_classes_are_geometric_means_by_the_time_of_litert() -> None:
    results = [result("a", 0.02, 0.01), result("b", 0.005, 0.01), result("<d>", 4.0, 2.0)]
    results += [result("c", 1.0, 3.0), result("b", 1.0, None, threads=2)]
    found = {(row.name, row.threads): row for row in classes(results, KINDS)}
    small = found["0 to 0.02 ms", 1]
    assert (small.count, small.worst) == (2, 0.5)
    assert small.mean == pytest.approx(1.0)
    assert small.most_more == pytest.approx(10)
    assert found["1 to 5 ms", 1].count == 1
    assert found["recurrent", 1].mean == pytest.approx(3.0)
    assert found["float32", 1].count == 3
    assert all(threads == 1 for _, threads in found)


def test_the_page_has_all_models_and_escapes_their_names() -> None:
    page = to_html([result("<d>", 4.0, 2.0), result("a", 1.0, None)], KINDS)
    assert "<d>" not in page
    assert page.count("<circle") == 1
    assert "&lt;d&gt;" in page


def test_a_record_has_what_the_classes_need() -> None:
    results = [result("a", 4.0, 2.0), result("b", 1.0, None, threads=2)]
    kinds = {name: KINDS[name] for name in "ab"}
    record = json.loads(json.dumps(suite_record(results, kinds)))
    assert read_suite(record) == (results, kinds)


def test_a_plot_is_a_picture_of_its_own() -> None:
    plot = ElementTree.fromstring(speed_plot([result("<d>", 4.0, 2.0)], KINDS, 1))
    assert plot.tag == "{http://www.w3.org/2000/svg}svg"
    assert "".join(plot.itertext()).count("<d>: 2.0000 ms, 0.50") == 1


def test_models_of_a_folder() -> None:
    assert digits_model("int8") in models_of(DIGITS)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("int8", "lstm_float32"):
        content = digits_model(name).read_bytes()
        (tmp_path / "sub" / f"{name}.tflite").write_bytes(content)
    page, record = tmp_path / "page.html", tmp_path / "record.json"
    arguments = ["bench", "--suite", str(tmp_path), "--html", str(page), "--json", str(record)]
    arguments += ["--rounds", "1", "--min-time", "0", "--threads", "1", "--no-memory"]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert re.search(r"recurrent +1 +1 ", outcome.output)
    assert "lstm_float32.tflite" in page.read_text()
    assert len(json.loads(record.read_text())["results"]) == 2


def test_without_models_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["bench", "--suite", str(tmp_path)]).exit_code == 2


def test_without_litert_there_is_no_table_of_classes() -> None:
    arguments = ["bench", "--suite", str(DIGITS), "--rounds", "1", "--min-time", "0", "--no-litert"]
    outcome = CliRunner().invoke(app, [*arguments, "--threads", "1", "--no-memory"])
    assert outcome.exit_code == 0, outcome.output
    assert "int8" in outcome.output and "class" not in outcome.output
