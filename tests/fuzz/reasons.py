"""Why a file's outputs differ from LiteRT's: a cause is taken out, and both have to agree.

A reason names a repair (`repairs.py`). It holds where the repair changes the file or what it is
fed, both run, and no difference is left. So it can be wrong: where the file differs after the
repair as before, the reason is none. The operators of a reason are those whose arithmetic was
looked at: see docs/fuzzing.md. What is left is "unexplained".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz import repair_scales, repairs
from tests.fuzz.compare import RTOL, Array, difference, severity
from tests.fuzz.describe import makers
from tests.fuzz.feeds import TEXTS
from tests.fuzz.limits import deadline
from tests.fuzz.litert import Answer, LiteRT, Question
from tests.fuzz.repairs import Repair, together
from tests.fuzz.steps import Outcome, run
from tflite_ort.schema import BridgeError, Model, read_model, write_model

ASKED_SECONDS = 5.0
# Those of sums of numbers around 4.
_LAST_BITS = 1e-6
_LOOKED_AT = 1 << 16
# LiteRT's kernels, and the kernels with memory that holds something where nobody set it.
OTHERS = (
    ("optimized", "optimized", 0),
    ("reference", "reference", 0),
    ("unset", "default", 0x55),
    ("unset again", "reference", 0xAA),
)


@dataclass(frozen=True)
class Case:
    """A file, what both made of it, and what is needed to ask again."""

    content: bytes
    seed: int
    litert: LiteRT
    seconds: float
    outcome: Outcome
    answers: dict[str, Answer]

    def least(self) -> str:
        """The difference from the nearest of LiteRT's kernels."""
        done = [each.outputs for each in self.answers.values() if each.stage == "done"]
        return least(self.outcome, done)

    def ours(self, content: bytes, tame: int = 0, **options: Any) -> Outcome:
        deadline(self.seconds)
        outcome = run(content, self.seed, tame=tame, **options)
        deadline(0)
        return outcome

    def agrees(self, content: bytes, tame: int) -> bool:
        """Whether another file has a result, and it is LiteRT's: of any of its kernels, with the
        activations of either mode."""
        outcome = self.ours(content, tame)
        if outcome.stage != "done":
            return False
        wanted = []
        for kernels in ("default", "reference", "optimized"):
            question = Question(content, self.seed, kernels, seconds=ASKED_SECONDS, tame=tame)
            answer = self.litert.ask(question)
            if answer.stage == "done":
                wanted.append(answer.outputs)
                if _close(least(outcome, wanted[-1:])):
                    return _tells(outcome, self.outcome)
        if not wanted:
            return False
        dynamic = self.ours(content, tame, hybrid="dynamic")
        near = dynamic.stage == "done" and _close(least(dynamic, wanted))
        return near and _tells(dynamic, self.outcome)


def _close(kind: str) -> bool:
    """Whether no more than last bits are left."""
    return severity(kind) <= severity("1e-5")


def _tells(outcome: Outcome, before: Outcome) -> bool:
    """Whether results are not all the same number, unless they were before."""
    return _varied(outcome) or not _varied(before)


def _varied(outcome: Outcome) -> bool:
    flat = (each.reshape(-1) for each in outcome.outputs)
    return any(len({x for x in each[:_LOOKED_AT].tolist() if x == x}) > 1 for each in flat)


def least(outcome: Outcome, wanted: Sequence[Sequence[Array]]) -> str:
    """The difference from the nearest of LiteRT's results."""
    found = [difference(outcome.outputs, each, outcome.quantised) for each in wanted]
    return min(found, key=severity)


@dataclass(frozen=True)
class Reason:
    """A cause that can be taken out.

    Args:
        repair: of the file.
        tame: of what it is fed, see `feed`.
    """

    name: str
    repair: Repair | None = None
    tame: int = 0

    def holds(self, case: Case, model: Model) -> bool:
        repaired = model if self.repair is None else self.repair(model)
        if repaired is model and not self.tame:
            return False
        content = case.content if repaired is model else _written(repaired)
        return content is not None and case.agrees(content, self.tame)


def _written(model: Model) -> bytes | None:
    try:
        return write_model(model)
    except (BridgeError, ValueError, TypeError, OverflowError):
        return None


REASONS = (
    Reason("compressed constants", repairs.dense),
    Reason("strings without dimensions", repairs.strings_in_rows),
    Reason("seeds of 0", repairs.seeded),
    Reason("a declared shape of a variable", repairs.undeclared),
    Reason("a result that is a variable", repairs.no_variable_results),
    Reason("values that a loop exchanges", repairs.exchanged),
    Reason("transforms of one number", repairs.longer_transforms),
    Reason("ellipsis, new axes and offset of a slice", repairs.plain_slices),
    Reason("NaN and infinities", repairs.finite, 1),
    Reason("several scales of a tensor", repair_scales.one_scale),
    Reason("codes without a scale", repair_scales.own_scale),
    Reason("zero points", repair_scales.plain_zero_points),
    Reason("division of or by next to nothing", None, 3),
    Reason("the unit of a cell state", repair_scales.usual_cell_state),
    Reason("biases that overflow", repairs.small_sums),
    Reason("scales far apart", repair_scales.near_scales),
    Reason("slopes and exponents far from 1", repairs.usual_options),
    Reason("floats that overflow or vanish", repairs.bounded, 2),
    Reason("activations that XNNPACK has not", repairs.usual_activations),
    Reason("weights of -128", repairs.no_lowest, 5),
    Reason("rounded activations", repair_scales.float_weights),
    Reason("counts of a shift", repairs.small_counts, 6),
)
# Two causes in one file.
ALL = Reason(
    "several of these",
    together(
        *(repairs.dense, repairs.bounded, repairs.usual_options, repair_scales.one_scale),
        *(
            repair_scales.plain_zero_points,
            repair_scales.usual_cell_state,
            repairs.small_sums,
            repair_scales.near_scales,
        ),
        repair_scales.float_weights,
    ),
    2,
)


def reason(case: Case) -> str:
    """Why this file differs; "" where nobody knows."""
    if _unstable(case):
        return "memory that nobody set"
    try:
        model = read_model(case.content)
    except BridgeError:
        return ""
    for each in (*REASONS, ALL):
        if each.holds(case, model):
            return each.name
    return next((name for name, holds in SIGNS.items() if holds(case, model)), "")


def _unstable(case: Case) -> bool:
    """Whether LiteRT's result depends on what memory holds that is not set."""
    answers = case.answers
    pairs = (("default", "unset"), ("reference", "unset again"))
    return any(_apart(case, answers[a], answers[b]) for a, b in pairs)


def _divided(case: Case, model: Model) -> bool:
    """Whether two of LiteRT's sets of kernels are as far apart as we are from the nearest."""
    names = ("default", "optimized", "reference")
    done = [case.answers[each] for each in names if case.answers[each].stage == "done"]
    ours = severity(case.least())
    own = [_apart(case, a, b) for a in done for b in done if a is not b]
    return max(map(severity, own), default=0) >= ours


def _apart(case: Case, a: Answer, b: Answer) -> str:
    if not a.stage == b.stage == "done":
        return ""
    return difference(a.outputs, b.outputs, case.outcome.quantised)


def _grown(case: Case, model: Model) -> bool:
    """Whether LiteRT's own result changes as much when what it is given changes in the last bit."""
    content = _written(repairs.nudged(model))
    if content is None:
        return False
    ours = severity(case.least())
    for kernels in ("default", "reference"):
        before = case.answers[kernels]
        question = Question(content, case.seed, kernels, seconds=ASKED_SECONDS, tame=4)
        if severity(_apart(case, before, case.litert.ask(question))) >= ours:
            return True
    return False


def _cancelled(case: Case, model: Model) -> bool:
    """Whether floats differ by less than the last bits of numbers of a usual size."""
    for name in ("default", "optimized", "reference"):
        wanted = case.answers[name].outputs
        pairs = list(zip(case.outcome.outputs, wanted, strict=False))
        if case.answers[name].stage == "done" and all(_is_near(a, b) for a, b in pairs):
            return True
    return False


def _is_near(got: Array, want: Array) -> bool:
    if got.dtype != np.float32 or want.dtype != np.float32 or got.shape != want.shape:
        return got.shape == want.shape and bool((got == want).all())
    return bool(np.allclose(got, want, rtol=RTOL, atol=_LAST_BITS, equal_nan=True))


def _lacks_the_tenth(case: Case, model: Model) -> bool:
    """Whether positions are those of LiteRT, but for the tenth that MediaPipe adds to floats."""
    made, (most, *_) = [name for name, _ in makers(case.content)], case.outcome.outputs
    want = case.answers["default"].outputs
    if made != ["MaxPoolingWithArgmax2D"] or len(case.outcome.outputs) != 2 or len(want) != 2:
        return False
    same = most.shape == want[0].shape and np.allclose(
        most, want[0], atol=_LAST_BITS, equal_nan=True
    )
    return bool(same and np.array_equal(np.floor(case.outcome.outputs[1]), want[1]))


def _are_pointers(case: Case, model: Model) -> bool:
    """Whether LiteRT makes strings that are neither in the file nor fed."""
    known = (case.content, *TEXTS)
    return any(
        isinstance(text, bytes) and text != b"" and not any(text in each for each in known)
        for answer in case.answers.values()
        for output in answer.outputs
        if output.dtype.kind in "OS"
        for text in output.reshape(-1)
    )


# What the results tell, where nothing can be taken out.
SIGNS: dict[str, Callable[[Case, Model], bool]] = {
    "strings that nobody gave": _are_pointers,
    "positions without MediaPipe's tenth": _lacks_the_tenth,
    "the last bits of what is left": _cancelled,
    "the last bits, grown": _grown,
    "LiteRT's kernels differ as much": _divided,
}
