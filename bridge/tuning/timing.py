"""The time of each lowering of an operator, measured in sessions of this operator alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap import Target, Translator, lower
from tflite_ort.opmap.graph.choices import Chooser, Lowering
from tflite_ort.opmap.graph.windows import take_window
from tflite_ort.providers.model_session import model_session
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]
View = OperatorView[Any]

_ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Effort:
    """How long lowerings are timed.

    Args:
        seconds: for each lowering, all rounds together.
        rounds: the lowerings take turns so many times; the shortest turn counts.
    """

    seconds: float = 0.02
    rounds: int = _ROUNDS


def lowering_times(
    group: Sequence[View],
    names: Sequence[str],
    target: Target,
    translators: Registry[Translator],
    *,
    num_threads: int,
    effort: Effort = Effort(),
) -> dict[str, float]:
    """Seconds of one run of `group` by each of these lowerings of its first operator, over random
    inputs."""
    runs = [run_of(group, name, target, translators, num_threads) for name in names]
    return dict(zip(names, shortest_turns(runs, effort), strict=True))


def run_of(
    group: Sequence[View],
    name: str,
    target: Target,
    translators: Registry[Translator],
    num_threads: int,
) -> Callable[[], None]:
    """One run of operators by the lowering `name`, in a session of their own.

    Args:
        group: each but the first reads what the one before it makes.
    """
    op, *_, last = group[0], group[-1]
    inputs = [tensor for tensor in op.present_inputs() if not tensor.is_constant]
    target = replace(target, choose=forced(name))
    outputs = [*last.outputs, *op.variables()]
    lowered = lower(group, inputs, outputs, translators, target=target)
    sources = [random_array(tensor, target) for tensor in inputs]
    results = [np.zeros(tensor.shape, target.boundary_dtype(tensor)) for tensor in outputs]
    for place, tensor in enumerate(inputs):
        if tensor in op.variables():
            result = outputs.index(tensor)
            taken = take_window(lowered.model.graph, place, result)
            if taken is not None:
                results[result] = np.zeros(*taken)
                sources[place] = results[result][1:].copy()
    session = model_session(lowered.model, num_threads=num_threads)
    return partial(session.run, session.bind(sources, results))


def _always(name: str, op: View, lowerings: Sequence[Lowering]) -> str:
    return name


def forced(name: str) -> Chooser:
    """Takes the lowering `name` wherever there is one, and the first one elsewhere."""
    return partial(_always, name)


def random_array(tensor: TensorView, target: Target) -> Array:
    """Numbers that are likely in the tensor: all codes, or a normal distribution."""
    rng, dtype = np.random.default_rng(0), target.boundary_dtype(tensor)
    if dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(tensor.shape) < 0.5
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if tensor.is_quantized else (0, 1)
    return rng.integers(low, high, tensor.shape, dtype, endpoint=True)


def shortest_turns(runs: Sequence[Callable[[], None]], effort: Effort) -> list[float]:
    """Seconds of one call of each, in the shortest of the turns that they take."""
    counts = [max(1, int(effort.seconds / effort.rounds / _first(run))) for run in runs]
    turns = [
        [_turn(run, n) for run, n in zip(runs, counts, strict=True)] for _ in range(effort.rounds)
    ]
    return [min(times) for times in zip(*turns, strict=True)]


def _first(run: Callable[[], None]) -> float:
    run()
    return max(_turn(run, 2), 1e-7)


def _turn(run: Callable[[], None], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - started) / count
