"""The README's table of commands is complete. tests/pages runs its programs."""

import re
from pathlib import Path

from tflite_ort.command.verb_table import VERBS

README = Path(__file__).parent.parent / "README.md"


def test_command_table_is_complete() -> None:
    listed = re.findall(r"^\| `(\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)
