"""What is to be said of one file: the library beside LiteRT."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tests.fuzz.case import ASKED_SECONDS, Case, answers_of_others, least
from tests.fuzz.compare import difference, severity
from tests.fuzz.describe import makers, operators, types
from tests.fuzz.limits import deadline, peak
from tests.fuzz.lines import REFUSED_HERE, REFUSED_THERE, UNSORTED, Rows, sorted_by
from tests.fuzz.litert import Answer, LiteRT, Question
from tests.fuzz.mutate import Mutant
from tests.fuzz.reasons import reason
from tests.fuzz.steps import Outcome, run, taken

Array = npt.NDArray[Any]

MEGABYTE = 1 << 20
# More memory than this, and than LiteRT takes, is reported.
GROWTH = 1 << 30
# One export in so many is loaded by ONNX Runtime; one file in so many runs in numpy too.
_LOADED = 6
_IN_NUMPY = 6


@dataclass(frozen=True)
class Finding:
    """Something to look at: its bucket, and its kind within."""

    bucket: str
    kind: str


@dataclass(frozen=True)
class Record:
    """What happened to the file of a number."""

    number: int
    stage: str
    exported: str = ""
    litert: str = ""
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    compared: bool = False


def judged(mutant: Mutant, litert: LiteRT | None, seconds: float) -> Record:
    """The record of a file that does not end this process."""
    seed, before, started = mutant.inputs, peak(), time.monotonic()
    if litert is not None:
        litert.post(Question(mutant.content, seed, seconds=ASKED_SECONDS))
    deadline(seconds)
    outcome = taken(mutant.content, seed, load=seed % _LOADED == 0)
    deadline(0)
    took, grown = time.monotonic() - started, max(0, peak() - before)
    findings = [*_faults(mutant.content, outcome)]
    answer = Answer("")
    if litert is not None:
        answer = litert.answer()
        findings += _against(mutant.content, seed, outcome, answer, litert, seconds)
    # Results that LiteRT's process may not send take as much there, which it does not tell.
    if answer.stage != "too large" and grown > max(GROWTH, answer.grown):
        kind = f"{operators(mutant.content)} | {outcome.stage}"
        findings.append(Finding("memory", kind))
    return Record(
        mutant.number,
        outcome.stage,
        outcome.exported,
        answer.stage,
        took,
        tuple(findings),
        outcome.stage == answer.stage == "done",
    )


def _faults(content: bytes, outcome: Outcome) -> list[Finding]:
    """What is wrong whatever LiteRT says."""
    findings = []
    if outcome.untyped:
        findings.append(Finding("untyped", f"{outcome.stage}: {outcome.untyped}"))
    if outcome.exported == "untyped":
        where = " ".join(outcome.export_error.split()[:3])
        findings.append(Finding("untyped", f"export: {where}"))
    if outcome.exported == "unloadable":
        kind = f"{operators(content)} | {outcome.export_error[:60]}"
        findings.append(Finding("unloadable export", kind))
    return findings


def _against(
    content: bytes, seed: int, outcome: Outcome, answer: Answer, litert: LiteRT, seconds: float
) -> list[Finding]:
    """What differs from LiteRT."""
    if outcome.stage == "done" and answer.stage == "done":
        return _differences(content, seed, outcome, answer, litert, seconds)
    if answer.stage == "done":
        return [_line("refused, LiteRT runs", REFUSED_HERE, content, outcome.error)]
    if outcome.stage == "done" and answer.stage in ("read", "allocate", "invoke"):
        return [_line("runs, LiteRT refuses", REFUSED_THERE, content, answer.error)]
    return []


def _line(bucket: str, rows: Rows, content: bytes, error: str) -> Finding:
    """A file that one side refuses, sorted by what it says; what no row finds has its bucket."""
    kind, what = sorted_by(rows, error), f"{operators(content)} | {_plain(error)}"
    if kind == UNSORTED:
        return Finding(f"{bucket}, unsorted", what)
    return Finding(bucket, f"{kind} | {what}")


def _differences(
    content: bytes, seed: int, outcome: Outcome, answer: Answer, litert: LiteRT, seconds: float
) -> list[Finding]:
    kind = difference(outcome.outputs, answer.outputs, outcome.quantised)
    if not kind:
        asked = seed % _IN_NUMPY == 1
        return _in_numpy(content, seed, outcome, answer, litert, seconds) if asked else []
    others = answers_of_others(content, seed, litert)
    wanted = [each.outputs for each in (answer, *others.values()) if each.stage == "done"]
    apart = least(outcome, wanted)
    if not apart:
        return []
    case = Case(content, seed, litert, seconds, outcome, {"default": answer, **others})
    dynamic, numpy = case.ours(content, hybrid="dynamic"), case.ours(content, providers=[])
    if dynamic.stage == "done" and not least(dynamic, wanted):
        return []
    first = _first(content, seed, litert, seconds)
    if why := reason(case):
        where = first.removeprefix(" | first ") or operators(content)
        return [Finding("explained", f"{why} | {where}")]
    shown = f"{operators(content)} | {types(content)} | {apart}"
    if numpy.stage != "done":
        shown += " | numpy refuses"
    elif not least(numpy, wanted):
        shown += " | numpy as LiteRT"
    bucket = "difference, not finite" if apart in ("nan", "infinity") else "difference"
    return [Finding(bucket, shown + first)]


def _first(content: bytes, seed: int, litert: LiteRT, seconds: float) -> str:
    """Of several operators, the first one whose results differ."""
    made = makers(content)
    tensors = tuple(dict.fromkeys(index for _, outputs in made for index in outputs))
    if len(made) < 2:
        return ""
    question = Question(content, seed, "reference", 0, ASKED_SECONDS, tensors)
    answer = litert.ask(question)
    deadline(seconds)
    outcome = run(content, seed, tensors)
    deadline(0)
    if not outcome.stage == answer.stage == "done":
        return ""
    rows = zip(tensors, outcome.outputs, answer.outputs, outcome.quantised, strict=True)
    kinds = {index: difference([got], [want], [scaled]) for index, got, want, scaled in rows}
    for name, outputs in made:
        if kind := max((kinds[index] for index in outputs), key=severity, default=""):
            return f" | first {name}: {kind}"
    return ""


def _in_numpy(
    content: bytes, seed: int, outcome: Outcome, answer: Answer, litert: LiteRT, seconds: float
) -> list[Finding]:
    """A difference between ONNX Runtime and the numpy kernels, if these are none of LiteRT's."""
    deadline(seconds)
    numpy = run(content, seed, providers=[])
    deadline(0)
    if numpy.untyped:
        return [Finding("untyped", f"in numpy, {numpy.stage}: {numpy.untyped}")]
    if numpy.stage != "done":
        kind = f"{operators(content)} | {types(content)} | {_plain(numpy.error)}"
        return [Finding("numpy refuses", kind)]
    kind = difference(numpy.outputs, outcome.outputs, outcome.quantised)
    if not kind:
        return []
    answers = {"default": answer, **answers_of_others(content, seed, litert)}
    if not least(numpy, [each.outputs for each in answers.values() if each.stage == "done"]):
        return []
    case = Case(content, seed, litert, seconds, numpy, answers, {"providers": []})
    if why := reason(case):
        return [Finding("explained in numpy", f"{why} | {operators(content)}")]
    bucket = "numpy differs, not finite" if kind in ("nan", "infinity") else "numpy differs"
    return [Finding(bucket, f"{operators(content)} | {types(content)} | {kind}")]


def _plain(text: str) -> str:
    """A message without its numbers, so that those of a kind are alike."""
    return "".join("#" if each.isdigit() else each for each in text)[:90]
