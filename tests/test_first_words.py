"""Words of other tools: options, verbs, modules and calls that people who know them type first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import tflite_ort.interpreter as litert_name
from tests.made_networks import network
from tests.test_cli import call
from tflite_ort import Interpreter, OpResolverType, Predictor, load_delegate, quick
from tflite_ort.command.cli import app, command
from tflite_ort.command.verb_table import OPTION_SYNONYMS, SYNONYMS, VERBS
from tflite_ort.prediction.array_files import InputError
from tflite_ort.schema import Op
from tflite_ort.tasks import vision


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = network(32, [np.array([[1.0, 4.0, 2.0]])], last=Op.SOFTMAX)
    (tmp_path / "net.tflite").write_bytes(content)
    (tmp_path / "labels.txt").write_text("wolf\nlynx\nbear\n")
    Image.new("RGB", (40, 30), (10, 200, 30)).save(tmp_path / "cat.png")
    return tmp_path


@pytest.mark.parametrize("typed", [*OPTION_SYNONYMS])
def test_options_of_other_tools(typed: str) -> None:
    """Each is told by a verb that has what is meant."""
    meant, verbs = OPTION_SYNONYMS[typed], []
    for verb in VERBS:
        known = {name for each in getattr(command(verb), "params", ()) for name in each.opts}
        if typed in known or meant not in known:
            continue
        verbs.append(verb)
        outcome = CliRunner().invoke(app, [verb, "model.tflite", f"{typed}=1"])
        assert outcome.exit_code == 2
        assert f"did you mean {meant}?" in " ".join(outcome.output.split())
    assert verbs


@pytest.mark.parametrize("typed", [*SYNONYMS])
def test_verbs_of_other_tools(typed: str) -> None:
    outcome = CliRunner().invoke(app, [typed, "model.tflite"])
    assert f"did you mean {SYNONYMS[typed]!r}?" in outcome.output
    assert SYNONYMS[typed].split()[0] in (*VERBS, "VERB")


def test_several_pictures(folder: Path) -> None:
    picture = folder / "cat.png"
    outcome = call("run", folder / "net.tflite", picture, picture)
    assert outcome.exit_code == 1
    assert "tflite-ort predict runs a model over many files" in outcome.output


def test_names_of_the_module_of_litert() -> None:
    assert litert_name.Interpreter is Interpreter
    assert litert_name.load_delegate is load_delegate
    assert litert_name.OpResolverType is OpResolverType
    with pytest.raises(AttributeError):
        litert_name.nothing  # noqa: B018


def test_what_is_found_is_at_hand(folder: Path) -> None:
    found = quick.run(folder / "net.tflite", folder / "cat.png")
    assert found.classes[0].label == "lynx"
    assert found.boxes == ()


def test_files_in_the_place_of_arrays(folder: Path) -> None:
    with pytest.raises(InputError, match=r"quick\.run\(model, file\) reads a file"):
        Predictor(folder / "net.tflite")([str(folder / "cat.png")])
    task = vision.ImageClassifier.create_from_model_path(str(folder / "net.tflite"))
    with pytest.raises(ValueError, match=r"Image\.create_from_file\(path\) reads a file"):
        task.classify("cat.png")
