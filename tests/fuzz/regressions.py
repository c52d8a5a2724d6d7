"""Files that were found once, each small, with what is right for it.

``regressions/index.json`` has a row for each file: where it ends (`stage`), what its inputs are
drawn from (`inputs`), and in words what it was and what is right (`was`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from tests.fuzz.judge import Record
from tests.fuzz.mutate import Mutant
from tests.fuzz.pool import judge_all
from tests.fuzz.report import FAULTS

FOLDER = Path(__file__).parent / "regressions"
INDEX = FOLDER / "index.json"
# Nothing of this may be said of a file that is kept.
WRONG = (*FAULTS, "difference", "numpy differs", "numpy refuses")


@dataclass(frozen=True)
class Regression:
    """A file that was found."""

    file: str
    stage: str
    inputs: int
    was: str

    @property
    def content(self) -> bytes:
        return (FOLDER / self.file).read_bytes()


def known() -> list[Regression]:
    """All of them, in the order of the index."""
    return [Regression(**row) for row in json.loads(INDEX.read_text(encoding="utf-8"))]


def contradictions() -> list[str]:
    """What is wrong with files that were put right."""
    files = known()
    records: list[Record] = []

    def make(number: int) -> Mutant:
        return Mutant(number, files[number].content, files[number].inputs)

    judge_all(make, islice(count(), len(files)), records.append)
    return [text for record in records for text in _wrong(files[record.number], record)]


def _wrong(file: Regression, record: Record) -> list[str]:
    said = [f"{each.bucket}: {each.kind}" for each in record.findings if each.bucket in WRONG]
    if record.stage != file.stage:
        said.append(f"ends in {record.stage}, expected {file.stage}")
    return [f"{file.file}: {text} (it was: {file.was})" for text in said]
