"""What is to be said of one file: the library beside LiteRT."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy.typing as npt

from tests.fuzz.compare import difference, severity
from tests.fuzz.limits import deadline, peak
from tests.fuzz.litert import Answer, LiteRT, Question
from tests.fuzz.mutate import Mutant
from tests.fuzz.steps import Outcome, run, taken
from tflite_ort.schema import BridgeError, Model, SubGraph, Tensor, read_model

Array = npt.NDArray[Any]

MEGABYTE = 1 << 20
# More memory than this, and than LiteRT takes, is reported.
GROWTH = 1 << 30
# One export in so many is loaded by ONNX Runtime; one file in so many runs in numpy too.
_LOADED = 6
_IN_NUMPY = 6
_ASKED_SECONDS = 5.0


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
    deadline(seconds)
    outcome = taken(mutant.content, seed, load=seed % _LOADED == 0)
    deadline(0)
    took, grown = time.monotonic() - started, max(0, peak() - before)
    findings = [*_faults(mutant.content, outcome)]
    answer = Answer("")
    if litert is not None:
        answer = litert.ask(Question(mutant.content, seed, seconds=_ASKED_SECONDS))
        findings += _against(mutant.content, seed, outcome, answer, litert, seconds)
    if grown > max(GROWTH, answer.grown):
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
        said = _plain(outcome.error)
        return [Finding("refused, LiteRT runs", f"{operators(content)} | {said}")]
    if outcome.stage == "done" and answer.stage in ("read", "allocate", "invoke"):
        return [Finding("runs, LiteRT refuses", f"{operators(content)} | {_plain(answer.error)}")]
    return []


def _differences(
    content: bytes, seed: int, outcome: Outcome, answer: Answer, litert: LiteRT, seconds: float
) -> list[Finding]:
    kind = difference(outcome.outputs, answer.outputs, outcome.quantised)
    if not kind:
        return _in_numpy(content, seed, outcome, seconds) if seed % _IN_NUMPY == 1 else []
    others = {
        name: litert.ask(Question(content, seed, kernels, unset, _ASKED_SECONDS))
        for name, kernels, unset in _OTHERS
    }
    wanted = [each.outputs for each in (answer, *others.values()) if each.stage == "done"]
    least = _least(outcome, wanted)
    if not least:
        return []
    deadline(seconds)
    dynamic, numpy = run(content, seed, hybrid="dynamic"), run(content, seed, providers=[])
    deadline(0)
    if dynamic.stage == "done" and not _least(dynamic, wanted):
        return []
    shown = f"{operators(content)} | {types(content)} | {kind}"
    if _unstable(answer, others, outcome.quantised):
        return [Finding("LiteRT reads unset memory", shown)]
    if least != kind:
        shown += f" (nearest {least})"
    if numpy.stage != "done":
        shown += " | numpy refuses"
    elif not _least(numpy, wanted):
        shown += " | numpy as LiteRT"
    return [Finding("difference", shown)]


def _least(outcome: Outcome, wanted: Sequence[Sequence[Array]]) -> str:
    """The difference from the nearest of LiteRT's results."""
    found = [difference(outcome.outputs, each, outcome.quantised) for each in wanted]
    return min(found, key=severity)


_OTHERS = (
    ("optimized", "optimized", 0),
    ("reference", "reference", 0),
    ("unset", "default", 0x55),
    ("unset again", "reference", 0xAA),
)


def _unstable(answer: Answer, others: dict[str, Answer], quantised: Sequence[bool]) -> bool:
    """Whether LiteRT's result depends on what memory holds that is not set."""
    pairs = ((answer, others["unset"]), (others["reference"], others["unset again"]))
    return any(
        a.stage == b.stage == "done" and bool(difference(a.outputs, b.outputs, quantised))
        for a, b in pairs
    )


def _in_numpy(content: bytes, seed: int, outcome: Outcome, seconds: float) -> list[Finding]:
    """A difference between ONNX Runtime and the numpy kernels."""
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
    return [Finding("numpy differs", f"{operators(content)} | {types(content)} | {kind}")]


def _plain(text: str) -> str:
    """A message without its numbers, so that those of a kind are alike."""
    return "".join("#" if each.isdigit() else each for each in text)[:90]


def _graph(content: bytes) -> tuple[Model, SubGraph] | None:
    """The model and its main graph, where the file can be read."""
    try:
        model = read_model(content)
    except BridgeError:
        return None
    return (model, model.subgraphs[0]) if model.subgraphs else None


def operators(content: bytes) -> str:
    """The operators of a file, the first four of the main graph's."""
    read = _graph(content)
    if read is None:
        return "unreadable"
    model, graph = read
    names = [_name(model, op.opcode_index) for op in graph.operators]
    more = f" +{len(names) - 4}" if len(names) > 4 else ""
    return " ".join(names[:4]) + more


def _name(model: Model, index: int) -> str:
    if index >= len(model.operator_codes):
        return "?"
    code = model.operator_codes[index]
    return code.custom_code or code.builtin_code.name


def types(content: bytes) -> str:
    """The types of what the first operators read and write; q: with a scale, s: sparse."""
    read = _graph(content)
    if read is None:
        return ""
    _, graph = read
    shown = []
    for op in graph.operators[:3]:
        sides = []
        for side in (op.inputs, op.outputs):
            inside = [i for i in side if i is not None and 0 <= i < len(graph.tensors)]
            names = [_type(graph.tensors[i]) for i in inside]
            runs = [(name, len(list(run))) for name, run in groupby(names)]
            sides.append(",".join(f"{name}*{n}" if n > 1 else name for name, n in runs))
        shown.append("->".join(sides))
    return " ".join(shown)


def _type(tensor: Tensor) -> str:
    scaled = tensor.quantization is not None and tensor.quantization.scale is not None
    return tensor.type.name + "q" * scaled + "s" * (tensor.sparsity is not None)
