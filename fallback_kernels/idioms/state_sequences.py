"""The states that a sequence of scores is most likely to come from, as tf.text finds them.

Scores are added, or multiplied. Float32 where tf.text has it, and in between float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_LOWEST = np.finfo(np.float32).min
_ERROR = -1


@record
class Transitions:
    """What is known of pairs of states, of which the last one stands for start and end.

    Args:
        weights: [from, to], or None.
        allowed: [from, to], or None for all.
        has_ends: whether there are a start and an end.
        adds: scores and weights are added, else multiplied.
    """

    weights: Floats | None
    allowed: npt.NDArray[np.bool_] | None
    has_ends: bool
    adds: bool

    def joined(self, scores: Floats, others: Floats | Doubles) -> Floats:
        """Scores and what is added to them, or multiplied; rounded."""
        join: Callable[..., npt.NDArray[np.floating]] = np.add if self.adds else np.multiply
        with np.errstate(all="ignore"):
            return join(scores, others).astype(np.float32)


def viterbi(scores: Floats, transitions: Transitions) -> list[int]:
    """The sequence of states of the greatest score; of those that are equal the last state."""
    steps, states = scores.shape
    if not steps:
        return []
    weights, allowed = transitions.weights, transitions.allowed
    totals = np.full(states, _LOWEST, np.float64)
    usable = np.ones(states, bool)
    first = scores[0]
    if transitions.has_ends:
        usable = usable if allowed is None else allowed[states, :states]
        first = first if weights is None else transitions.joined(first, weights[states, :states])
    totals[usable] = first[usable]
    totals = totals if transitions.adds else _normalized(totals)
    sources = [np.where(usable, states, _ERROR)]
    for step in range(1, steps):
        usable = (sources[-1] != _ERROR)[:, None]
        if allowed is not None:
            usable = usable & allowed[:states, :states]
        offered = transitions.joined(
            np.broadcast_to(scores[step], (states, states)), totals[:, None]
        )
        if weights is not None:
            offered = transitions.joined(offered, weights[:states, :states])
        best, found = _best(offered, np.broadcast_to(usable, offered.shape))
        totals = best.astype(np.float64)
        totals = totals if transitions.adds else _normalized(totals)
        sources.append(found)
    usable = sources[-1] != _ERROR
    final = totals.astype(np.float32)
    if transitions.has_ends:
        usable = usable if allowed is None else usable & allowed[:states, states]
        final = final if weights is None else transitions.joined(final, weights[:states, states])
    _, last = _best(final[:, None], usable[:, None])
    return _path(sources, int(last[0]))


def _path(sources: list[npt.NDArray[np.int64]], state: int) -> list[int]:
    if state == _ERROR:
        return [_ERROR] * len(sources)
    found = []
    for step in reversed(sources):
        found.append(state)
        state = int(step[state])
    return found[::-1]


def greedy(scores: Floats, transitions: Transitions) -> list[int]:
    """The best state of each step after the one of the step before."""
    steps, states = scores.shape
    weights, allowed = transitions.weights, transitions.allowed
    found: list[int] = []
    for step in range(steps):
        before = found[-1] if found else states
        if before == _ERROR:
            return found + [_ERROR] * (steps - step)
        usable, offered = np.ones(states, bool), scores[step]
        ends = transitions.has_ends and step == steps - 1
        if found or transitions.has_ends:
            if allowed is not None:
                usable = allowed[before, :states]
                usable = usable & allowed[:states, states] if ends else usable
            if weights is not None:
                offered = transitions.joined(offered, weights[before, :states])
                if ends:
                    offered = transitions.joined(offered, weights[:states, states])
        _, best = _best(offered[:, None], usable[:, None])
        found.append(int(best[0]))
    return found


def _best(offered: Floats, usable: npt.NDArray[np.bool_]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The greatest of each column and the last row that has it; the lowest number, and -1, where
    none is usable."""
    usable = usable & (offered >= _LOWEST)
    values = np.where(usable, offered, -np.inf).astype(np.float32)
    if not len(values):
        return np.full(values.shape[1], _LOWEST, np.float32), np.full(values.shape[1], _ERROR)
    rows = len(values) - 1 - values[::-1].argmax(axis=0)
    some = usable.any(axis=0)
    best = np.where(some, values[rows, np.arange(values.shape[1])], _LOWEST)
    return best.astype(np.float32), np.where(some, rows, _ERROR)


def _normalized(totals: Doubles) -> Doubles:
    """Divided by the greatest, if that is positive; a NaN counts only where it is the first."""
    if not totals.size or np.isnan(totals[0]):
        return totals
    most = np.nanmax(totals)
    return totals / most if most > 0 else totals
