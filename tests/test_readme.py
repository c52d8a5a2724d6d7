"""The Python of the README and of the page on building models runs as it stands."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_ort.command.cli import VERBS
from tflite_ort.command.demo import digits_model

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PROGRAMS = [
    program
    for page in (README, ROOT / "docs" / "building_models.md")
    for program in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program_runs(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.tflite").write_bytes(digits_model("float32").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"pixels": np.zeros((1, 8, 8, 1), np.float32)}
    exec(compile(program, README.name, "exec"), names)
    if "answer" in names:
        assert names["answer"].shape == (1, 10)


def test_command_table_is_complete() -> None:
    listed = re.findall(r"^\| `(\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^):]+)\)", README.read_text(encoding="utf-8"))
    assert [link for link in links if not (README.parent / link).exists()] == []
