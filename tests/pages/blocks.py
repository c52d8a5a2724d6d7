"""The code blocks of the pages, and what runs them.

A block runs as it stands, after the blocks above it on its page and in their folder. A comment in
the line before a block says otherwise::

    <!-- block: openvino -->            only in the CI script with that mark
    <!-- block: not run, REASON -->     never
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Languages of blocks that run, and of blocks that are no programs.
PROGRAMS = {"python", "sh", "js"}
DATA = {"json", "mermaid", "text", "yaml"}
NOT_RUN = "not run, "
_BLOCK = re.compile(
    r"^(?:<!-- block: (?P<says>[^>]+?) -->\n+)?```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        line: of its page, where its text begins.
        mark: of the tests that run it; None for all.
        reason: why it is never run.
    """

    page: Path
    line: int
    language: str
    text: str
    mark: str | None = None
    reason: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        says = match["says"] or ""
        reason = says.removeprefix(NOT_RUN) if says.startswith(NOT_RUN) else None
        mark = says if says and reason is None else None
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(page, line, match["language"], match["text"], mark, reason))
    return found


def run(block: Block, names: dict[str, Any]) -> None:
    """Runs a block in the working directory.

    Args:
        names: what the Python blocks above on the page have defined.
    """
    if block.language == "python":
        program = "\n" * (block.line - 1) + block.text  # so that tracebacks name the page's lines
        try:
            exec(compile(program, str(block.page), "exec"), names)
        except Exception as error:
            raise AssertionError(f"{block.place}\n{traceback.format_exc(-2)}") from error
        return
    command = ["node", "--input-type=module", "-"] if block.language == "js" else ["bash", "-eu"]
    scripts = sysconfig.get_path("scripts")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{scripts}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        command,
        input=block.text,
        text=True,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{block.place}\n{done.stdout}"
