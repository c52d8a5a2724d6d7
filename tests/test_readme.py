"""The README's table of commands is complete. tests/pages runs its programs."""

import re
import tomllib
from pathlib import Path

from tflite_ort.command.verb_table import VERBS

README = Path(__file__).parent.parent / "README.md"


def test_command_table_is_complete() -> None:
    listed = re.findall(r"^\| `(\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


def test_the_citation_has_the_version() -> None:
    cited = (README.parent / "CITATION.cff").read_text(encoding="utf-8")
    told = tomllib.loads((README.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"\nversion: {told['project']['version']}\n" in cited
