"""The command's help: near misses, the short option, completion in shells."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.models import model_path
from tests.pages.blocks import ROOT
from tflite_ort import ExportError, export_onnx
from tflite_ort.command.cli import app, command
from tflite_ort.command.demo import digits_model
from tflite_ort.command.options_page import options_page
from tflite_ort.command.verb_table import GROUPS, VERBS


def test_near_misses_are_named(tmp_path: Path) -> None:
    """Of operators and of files."""
    shutil.copy(digits_model("int8"), tmp_path / "digits.tflite")
    for arguments, said in (
        (["versions", "CONV2D"], "error: CONV2D is no operator; did you mean 'CONV_2D'?"),
        (["inspect", str(tmp_path / "digit.tflite")], "did you mean 'digits.tflite'?"),
    ):
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 1
        assert said in outcome.output
    far = CliRunner().invoke(app, ["inspect", str(tmp_path / "mobilenet.tflite")])
    assert "did you mean" not in far.output  # a suffix is not a name
    verb = CliRunner().invoke(app, ["exprot", "model.tflite"])
    assert verb.exit_code == 2
    assert "did you mean 'export'?" in verb.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_that_cannot_be_written_is_an_error(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "tflite_ort", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize("verb", [[], *([verb] for verb in VERBS)], ids=str)
def test_short_option_for_help(verb: list[str]) -> None:
    short, long = (CliRunner().invoke(app, [*verb, option]) for option in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.output == long.output


_OPTION = re.compile(r"^  (?:-\w, )?(--[a-z-]+)", re.MULTILINE)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "cache"])
def test_options_that_verbs_share_come_last_and_in_one_order(verb: str) -> None:
    help_text = CliRunner().invoke(app, [verb, "-h"], terminal_width=100).output
    told = _OPTION.findall(help_text)
    assert told[-1] == "--help" or "-h, --help" in help_text
    shared = ["--threads", "--provider", "--provider-option", "--hybrid", "--resolver"]
    shared += ["--external-root", "--budget", "--json", "--help"]
    own = [name for name in told if name not in [*shared, "--seed"]]
    rest = [name for name in ["--seed", *shared] if name in told]
    assert told == own + rest


def test_what_was_measured_by_operator_is_json(tmp_path: Path) -> None:
    model, out = digits_model("int8"), tmp_path / "times.json"
    asked = ["bench", str(model), "--profile", "--json", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    record = json.loads(out.read_text())[model.name]
    assert {"operator", "ms", "nodes", "provider"} == set(record["operators"][0])
    assert record["ms"] == pytest.approx(sum(each["ms"] for each in record["operators"]))


def test_the_demo_tells_numbers() -> None:
    record = json.loads(CliRunner().invoke(app, ["demo", "--json"]).stdout)
    for each in record["models"]:
        pairs = zip(each["digits"], record["digits"], strict=True)
        assert each["right"] == sum(read == there for read, there in pairs)


def test_shells_complete_verbs_and_options() -> None:
    """What bash asks the command for."""
    asked = [
        ("tflite-ort exp", 1, "export"),
        ("tflite-ort run --sig", 2, "--signature"),
        ("tflite-ort run m.tflite --provider ", 4, "openvino"),
        ("tflite-ort run m.tflite --provider au", 4, "auto"),
        ("tflite-ort verify m.tflite --runtime litert-o", 4, "litert-optimized"),
        ("tflite-ort versions CONV_3D", 2, "CONV_3D_TRANSPOSE"),
    ]
    for words, word, wanted in asked:
        environment = {"_TFLITE_ORT_COMPLETE": "complete_bash", "COMP_WORDS": words}
        environment |= {"COMP_CWORD": str(word)}
        outcome = CliRunner().invoke(app, [], env=environment, prog_name="tflite-ort")
        assert wanted in outcome.output.split()


def test_advice_that_was_taken_is_not_given_again() -> None:
    with pytest.raises(ExportError) as caught:
        export_onnx(model_path("litert__custom_op.tflite"), custom_ops="domain")
    assert "custom_ops" not in str(caught.value)


def test_every_verb_that_tells_something_tells_it_as_json(tmp_path: Path) -> None:
    model, out = str(digits_model("int8")), tmp_path
    np.save(out / "rows.npy", np.zeros((3, 8, 8, 1), np.int8))
    for arguments in (
        ["providers"],
        ["extract", model, str(out / "part.tflite")],
        ["triton", model, str(out / "repository")],
        ["predict", model, str(out / "rows.npy"), "--rows", "--out", str(out / "results.csv")],
        ["tune", model, "--out", str(out / "tuning.json"), "--seconds", "0"],
        ["compile", model, "--cache", str(out / "cache")],
        ["cache", "list", str(out / "cache")],
        ["cache", "clear", str(out / "cache")],
        ["versions", model],
        ["inspect", model],
        ["run", model],
        ["export", model, str(out / "model.onnx")],
        ["demo"],
        ["bench", model, "--profile"],
        ["verify", model, "--runtime", "kernels"],
    ):
        outcome = CliRunner().invoke(app, [*arguments, "--json"])
        assert outcome.exit_code == 0, outcome.output
        assert json.loads(outcome.stdout), arguments


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("width", [40, 80])
def test_help_fits_the_terminal_and_has_no_types_of_python(verb: str, width: int) -> None:
    outcome = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": str(width)})
    assert max(map(len, outcome.stdout.splitlines())) <= width
    assert not re.search(r"<\w+| (int|str|bool|Path|VALUE)\b", outcome.stdout)
    assert outcome.stdout.isascii()
    for each in getattr(command(verb), "params", ()):
        assert each.help, each.name


def test_help_of_the_options_says_their_values_and_defaults() -> None:
    shown = CliRunner().invoke(app, ["export", "-h"], env={"COLUMNS": "80"}).stdout
    assert shown.startswith("Usage: root export [OPTIONS] MODEL [OUT]\n")
    text = " ".join(shown.split())
    for said in (
        "--weights uint8|int8 Type of quantized weights",
        "Without, uint8 or as --for needs it.",
        "--opset N ONNX opset of the nodes; without, 21 or that of --for. [17 to 24]",
        "--stateful / --stateless",
        "without, --stateless if only layers over sequences have variables.",
    ):
        assert said in text
    assert "INPUTS..." in CliRunner().invoke(app, ["predict", "-h"]).stdout


def test_verbs_have_one_order(tmp_path: Path) -> None:
    """In the help, in completion and in README."""
    shown = CliRunner().invoke(app, ["-h"]).stdout
    assert re.findall(r"^  ([a-z]+) ", shown.partition("Run:\n")[2], re.MULTILINE) == list(VERBS)
    assert all(f"\n{group}:\n" in shown for group in GROUPS)
    environment = {"_TFLITE_ORT_COMPLETE": "complete_bash", "COMP_WORDS": "tflite-ort "}
    environment["COMP_CWORD"] = "1"
    words = CliRunner().invoke(app, [], env=environment, prog_name="tflite-ort").output.split()
    assert [word for word in words if word in VERBS] == list(VERBS)
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)", readme, re.MULTILINE)
    assert [row for row in rows if row in VERBS] == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_an_example_that_is_taken(verb: str) -> None:
    """Its options are options of the verb."""
    shown = CliRunner().invoke(app, [verb, "-h"], terminal_width=100).output
    assert shown.count("\nExample:\n") == 1
    line = VERBS[verb].example[0]
    assert f"  tflite-ort {verb} {line}".rstrip() in shown.splitlines()
    assert [each for each in re.findall(r"--[a-z-]+", line) if f"{each}" not in shown] == []
    context = command(verb).make_context(verb, shlex.split(line), resilient_parsing=True)
    assert context.info_name == verb


@pytest.mark.parametrize("more", [[], ["--samples", "1"]])
def test_the_file_of_json_may_be_left_out(more: list[str]) -> None:
    arguments = ["verify", str(digits_model("int8")), "--runtime", "kernels", "--json", *more]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["runtimes"]


def test_a_narrow_table_is_a_list() -> None:
    """No heading is folded; the cells of a row come one below the other."""
    arguments = ["inspect", str(digits_model("int8"))]
    narrow = CliRunner().invoke(app, arguments, env={"COLUMNS": "40"}).stdout.splitlines()
    wide = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, narrow)) <= 40
    assert ["runs", "on"] in [line.split()[:2] for line in narrow]
    assert any(line.startswith("subgraph 0 input ") for line in narrow)
    assert any(line.startswith("subgraph 0  name") for line in wide)


def test_the_page_of_options_is_fresh_and_has_every_option() -> None:
    text = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    fresh = "python -m tflite_ort.command.options_page > docs/options.md"
    assert text == options_page(), f"stale, run: {fresh}"
    for verb in VERBS:
        told = _OPTION.findall(CliRunner().invoke(app, [verb, "-h"], terminal_width=100).output)
        part = text.split(f"\n## {verb}")[1].split("\n## ")[0]
        assert [name for name in told if name not in part] == [], verb
