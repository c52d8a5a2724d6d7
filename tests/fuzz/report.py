"""What a run found: counts by stage, and buckets with examples."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.judge import Record
from tests.fuzz.mutate import Mutant

# What must not happen, whatever a file says; the other buckets are to be looked at.
FAULTS = ("death", "hang", "untyped", "memory", "unloadable export", "fault of the fuzzer")
# What begins with a reason.
SORTED = ("explained", "explained in numpy", "refused, LiteRT runs", "runs, LiteRT refuses")
_EXAMPLES = 5


@dataclass
class Report:
    """Records, added up.

    Args:
        title: what the files were made from.
        salt: the first part of a file's name.
        make: the file of a number.
        folder: where examples go.
    """

    title: str
    salt: str
    make: Callable[[int], Mutant]
    folder: Path | None = None
    stages: Counter[str] = field(default_factory=Counter)
    exports: Counter[str] = field(default_factory=Counter)
    litert: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    buckets: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    slowest: list[tuple[float, int]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def files(self) -> int:
        return sum(self.stages.values())

    def add(self, record: Record) -> None:
        self.stages[record.stage] += 1
        self.exports[record.exported] += 1
        self.litert[record.litert] += 1
        self.compared += record.compared
        self.slowest = sorted([*self.slowest, (record.seconds, record.number)])[-10:]
        for finding in record.findings:
            self.buckets[finding.bucket][finding.kind] += 1
            examples = self.examples[f"{finding.bucket}: {finding.kind}"]
            if len(examples) < _EXAMPLES:
                examples.append(record.number)
                self._keep(finding.bucket, finding.kind, record.number)

    def _keep(self, bucket: str, kind: str, number: int) -> None:
        if self.folder is None:
            return
        name = re.sub(r"\W+", "_", kind)[:80]
        folder = self.folder / re.sub(r"\W+", "_", bucket)
        folder.mkdir(parents=True, exist_ok=True)
        content = self.make(number).content
        (folder / f"{name}-{self.salt}-{number}.tflite").write_bytes(content)

    def faults(self) -> int:
        """Files that did what no file may do."""
        return sum(self.buckets[bucket].total() for bucket in FAULTS if bucket in self.buckets)

    def text(self, kinds: int = 12) -> str:
        """The counts, and the most frequent kinds of each bucket with an example."""
        took = time.monotonic() - self.started
        lines = [
            f"{self.files} files of {self.title} in {took:.0f} s: {self.files / took:.0f} files/s",
            f"  tflite_ort, where a file ended: {_counts(self.stages)}",
            f"  exports: {_counts(self.exports)}",
            f"  LiteRT, where a file ended: {_counts(self.litert)}",
            f"  compared: {self.compared}, slowest: "
            + ", ".join(f"{seconds:.1f} s {number}" for seconds, number in self.slowest[:-4:-1]),
        ]
        for bucket, found in sorted(self.buckets.items()):
            lines.append(f"{bucket}: {found.total()} files of {len(found)} kinds")
            if bucket in SORTED:
                lines += _by_reason(found)
            for kind, count in found.most_common(kinds):
                example = self.examples[f"{bucket}: {kind}"][0]
                lines.append(f"  {count:6d}  {kind}  [{self.salt}:{example}]")
        return "\n".join(lines)

    def write(self, file: Path) -> None:
        """Everything as JSON."""
        document = {
            "title": self.title,
            "files": self.files,
            "seconds": round(time.monotonic() - self.started, 1),
            "stages": self.stages,
            "exports": self.exports,
            "litert": self.litert,
            "compared": self.compared,
            "slowest": self.slowest,
            "buckets": {
                bucket: [
                    {"kind": kind, "count": n, "examples": self.examples[f"{bucket}: {kind}"]}
                    for kind, n in found.most_common()
                ]
                for bucket, found in self.buckets.items()
            },
        }
        file.write_text(json.dumps(document, indent=1))


def _by_reason(found: Counter[str]) -> list[str]:
    """How many files have each reason, which is the first part of a kind."""
    reasons: Counter[str] = Counter()
    for kind, count in found.items():
        reasons[kind.partition(" | ")[0]] += count
    return [f"  {count:6d}  {reason}" for reason, count in reasons.most_common()]


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name or 'none'} {count}" for name, count in counter.most_common())
