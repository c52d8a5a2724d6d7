"""Shared models answer with names, or say what they lack; names that a model does not carry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.first_answers import ANSWERS, FAILS, LACKS, PICTURE, made, models, said, verdict
from tests.made_networks import network
from tests.test_cli import call
from tflite_ort.model.class_names import names_of
from tflite_ort.model.other_names import DATA_SETS
from tflite_ort.schema import Op

SIZE = 32
# One in three: the whole is ``python -m tests.first_answers``.
SAMPLE = models()[::3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers")
    made(path)
    return path


@pytest.mark.parametrize("model, file", SAMPLE, ids=lambda each: getattr(each, "stem", each))
def test_an_answer_or_what_it_lacks(model: Path, file: str, folder: Path) -> None:
    text = said(model, folder / file)
    assert verdict(text) != FAILS, text


def test_verdicts() -> None:
    head = "classifier (--raw shows the tensors, --decode NAME reads them in another way)\n"
    assert verdict(f"{head}cat  70.0 %\n") == ANSWERS
    assert verdict(f"{head}class 3  70.0 %\nlacks: names: --labels FILE has them\n") == LACKS
    assert verdict(f"{head}class 3  70.0 %\n") == FAILS
    assert verdict("error: it does not work\n") == verdict("") == FAILS


@pytest.mark.parametrize("which", DATA_SETS, ids=lambda each: f"{each.file}_{each.count}")
def test_data_sets_have_as_many_names(which: object) -> None:
    assert len(which.labels) == len(set(which.labels)) + max(0, which.labels.count("???") - 1)  # type: ignore[attr-defined]
    assert len(which.labels) == which.count  # type: ignore[attr-defined]


def classifier(count: int, best: int, folder: Path, last: Op | None = Op.SOFTMAX) -> Path:
    scores = np.zeros((1, count))
    scores[0, best] = 9
    path = folder / "net.tflite"
    path.write_bytes(network(SIZE, [scores], last=last))
    return path


def lines(model: Path, folder: Path, *more: str) -> Sequence[str]:
    return call("run", model, folder / PICTURE, "--top", "1", *more).stdout.splitlines()


@pytest.mark.parametrize("last", [Op.SOFTMAX, None], ids=["scores", "logits"])
@pytest.mark.parametrize("count, best, name", [(1000, 1, "goldfish"), (1001, 2, "goldfish")])
def test_names_of_a_data_set_are_assumed(
    count: int, best: int, name: str, last: Op | None, folder: Path, tmp_path: Path
) -> None:
    found = lines(classifier(count, best, tmp_path, last), folder)
    assert found[2].startswith(name)
    assert found[3] == f"names: ImageNet's, assumed of {count} classes (--labels FILE gives others)"


def test_no_names_are_assumed_of_other_numbers(folder: Path, tmp_path: Path) -> None:
    assert "lacks: names of the 999 classes" in lines(classifier(999, 1, tmp_path), folder)[-1]
    raw = lines(classifier(1000, 1, tmp_path), folder, "--decode", "none")
    assert not [line for line in raw if "goldfish" in line or line.startswith("names")]


FILES = {
    "labels.txt": "wolf\nlynx\nbear\n",
    "net.txt": "wolf\nlynx\nbear\n",
    "net_labels.txt": "0 wolf\n1 lynx\n2 bear\n",
    "class_map.csv": "index,mid,display_name\n0,/m/1,wolf\n1,/m/2,lynx\n2,/m/3,bear\n",
    "label_map.pbtxt": "".join(
        f'item {{\n  id: {number}\n  name: "/m/{number}"\n  display_name: "{name}"\n}}\n'
        for number, name in enumerate(("wolf", "lynx", "bear"), 1)
    ),
    "config.json": '{"id2label": {"0": "wolf", "1": "lynx", "2": "bear"}}',
    "metadata.yaml": "task: detect\nnames:\n  0: wolf\n  1: lynx\n  2: 'bear'\n",
}


@pytest.mark.parametrize("file", FILES)
def test_names_beside_the_model(file: str, folder: Path, tmp_path: Path) -> None:
    model = classifier(3, 1, tmp_path)
    (tmp_path / file).write_text(FILES[file])
    found = lines(model, folder)
    assert found[2].startswith("lynx ")
    assert found[3] == f"names: those in {file} beside the model"
    assert names_of(FILES[file], Path(file).suffix) == ("wolf", "lynx", "bear")


def test_names_beside_the_model_of_another_number_are_passed_over(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "more_labels.txt").write_text("wolf\nlynx\nbear\n")
    model = classifier(3, 1, tmp_path)
    assert lines(model, folder)[3] == "names: those in more_labels.txt beside the model"
    (tmp_path / "net_labels.txt").write_text("x\ny\nz\n")
    assert lines(model, folder)[2].startswith("y ")
    named = tmp_path / "own.csv"
    named.write_text("p\nq\nr\n")
    given = lines(model, folder, "--labels", str(named))
    assert given[2].startswith("q ")
    assert len(given) == 3


@pytest.mark.parametrize(
    "text, suffix",
    [
        ("\n" * (1 << 20), ".yaml"),
        (" " * (1 << 20), ".yaml"),
        ('{"' + "9" * 9000 + '": "a"}', ".json"),
        ("item {id: " + "9" * 9000 + " name: 'a'}", ".pbtxt"),
        ("item" * (1 << 18), ".pbtxt"),
        ("a " * (1 << 19), ".pbtxt"),
    ],
    ids=["lines", "spaces", "key", "id", "items", "words"],
)
def test_hostile_files_of_names_take_no_time(text: str, suffix: str) -> None:
    assert names_of(text, suffix) == ()
