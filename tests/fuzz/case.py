"""A file whose outputs differ from LiteRT's, and how another one like it is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.compare import Array, difference, severity
from tests.fuzz.describe import makers
from tests.fuzz.limits import deadline
from tests.fuzz.litert import Answer, LiteRT, Question
from tests.fuzz.steps import Outcome, run
from tflite_ort.schema import read_model

ASKED_SECONDS = 2.0
# LiteRT's kernels, and the kernels with memory that holds something where nobody set it.
OTHERS = (
    ("optimized", "optimized", 0),
    ("reference", "reference", 0),
    ("unset", "default", 0x55),
    ("unset again", "reference", 0xAA),
)
KERNELS = ("default", "reference", "optimized")
_LOOKED_AT = 1 << 16
# So many feeds are tried, until the results are not all the same number.
_FEEDS = 4


@dataclass(frozen=True)
class Case:
    """A file, what both made of it, and what is needed to ask again.

    Args:
        options: of the interpreter whose outcome it is.
    """

    content: bytes
    seed: int
    litert: LiteRT
    seconds: float
    outcome: Outcome
    answers: dict[str, Answer]
    options: Mapping[str, Any] = field(default_factory=dict)

    def least(self) -> str:
        """The difference from the nearest of LiteRT's kernels."""
        done = [each.outputs for each in self.answers.values() if each.stage == "done"]
        return least(self.outcome, done)

    def ours(
        self, content: bytes, tame: int = 0, seed: int | None = None, **options: Any
    ) -> Outcome:
        """What the library makes of a file, fed by a seed: its own, if none is given."""
        deadline(self.seconds)
        outcome = run(
            content, self.seed if seed is None else seed, tame=tame, **{**self.options, **options}
        )
        deadline(0)
        return outcome

    def agrees(self, content: bytes, tame: int, kept: bool = False) -> bool:
        """Whether another file has a result, and it is LiteRT's: of any of its kernels, with the
        activations of either mode. Results of one number tell nothing: other feeds are tried.

        Args:
            kept: whether LiteRT keeps all tensors.
        """
        for seed in range(self.seed, self.seed + _FEEDS):
            told = self._agrees(content, tame, seed, kept)
            if told is not None:
                return told
        return self._agrees_within(content, tame)

    def _agrees_within(self, content: bytes, tame: int) -> bool:
        """Whether the results of all operators are LiteRT's, and not all the same number."""
        made = tuple(dict.fromkeys(index for _, outputs in makers(content) for index in outputs))
        question = Question(content, self.seed, "reference", 0, ASKED_SECONDS, made, tame=tame)
        answer, outcome = self.litert.ask(question), self.ours(content, tame, tensors=made)
        if not outcome.stage == answer.stage == "done" or not _varied(outcome.outputs):
            return False
        return is_close(least(outcome, [answer.outputs]))

    def _agrees(self, content: bytes, tame: int, seed: int, kept: bool) -> bool | None:
        """None: both have the same result, and it tells nothing."""
        outcome = self.ours(content, tame, seed)
        if outcome.stage != "done":
            return False
        wanted = []
        results = tuple(read_model(content).subgraphs[0].outputs) if kept else ()
        for kernels in KERNELS:
            question = Question(content, seed, kernels, 0, ASKED_SECONDS, results, tame=tame)
            answer = self.litert.ask(question)
            if answer.stage == "done":
                wanted.append(answer.outputs)
                if is_close(least(outcome, wanted[-1:])):
                    return _tells(outcome, self.outcome) or None
        if not wanted:
            return False
        dynamic = self.ours(content, tame, seed, hybrid="dynamic")
        if dynamic.stage != "done" or not is_close(least(dynamic, wanted)):
            return False
        return _tells(dynamic, self.outcome) or None


def answers_of_others(content: bytes, seed: int, litert: LiteRT) -> dict[str, Answer]:
    """The answers of LiteRT's other kernels, and with memory that holds something."""
    return {
        name: litert.ask(Question(content, seed, kernels, unset, ASKED_SECONDS))
        for name, kernels, unset in OTHERS
    }


def is_close(kind: str) -> bool:
    """Whether no more than last bits are left."""
    return severity(kind) <= severity("1e-5")


def _tells(outcome: Outcome, before: Outcome) -> bool:
    """Whether results are not all the same number, unless they were before."""
    return _varied(outcome.outputs) or not _varied(before.outputs)


def _varied(outputs: Sequence[Array]) -> bool:
    flat = (each.reshape(-1) for each in outputs)
    return any(len({x for x in each[:_LOOKED_AT].tolist() if x == x}) > 1 for each in flat)


def least(outcome: Outcome, wanted: Sequence[Sequence[Array]]) -> str:
    """The difference from the nearest of LiteRT's results."""
    found = [difference(outcome.outputs, each, outcome.quantised) for each in wanted]
    return min(found, key=severity)
