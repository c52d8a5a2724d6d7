"""Which delegate runs which operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.opmap import Lowered, Target, Translator, lower
from tflite_ort.partition import NUMPY, partitions
from tflite_ort.runtime import Runtime
from tflite_ort.schema import OperatorView, Specialized
from tflite_ort.versioning.registry import Registry


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which runner has which operator, and why the earlier ones do not.

    Args:
        whole: the translation of all operators, when one delegate takes every one of them.
    """

    runners: Mapping[int, str]
    reasons: Mapping[int, str]
    whole: Lowered | None = None


def assign(graph: Specialized, runtime: Runtime) -> Assignment:
    """Delegates claim operators in the order given; numpy kernels take the rest."""
    runners = {op.index: NUMPY for op in graph.operators}
    reasons: dict[int, list[str]] = {op.index: [] for op in graph.operators}
    remaining, translators = list(graph.operators), runtime.resolver.translators
    for delegate in runtime.delegates:
        refusals = {op.index: delegate.refusal(op) for op in remaining}
        claimed = [op for op in remaining if refusals[op.index] is None]
        lowered = _trial(claimed, graph, translators, runtime.target(delegate))
        refusals.update(lowered.refusals)
        for op in remaining:
            reason = refusals[op.index]
            if reason is None:
                runners[op.index] = delegate.name
            elif reason not in reasons[op.index]:
                reasons[op.index].append(reason)
        if claimed and len(claimed) == len(graph.operators) and not lowered.refusals:
            return Assignment(runners, _joined(reasons), lowered)
        remaining = [op for op in remaining if runners[op.index] == NUMPY]
    return Assignment(runners, _joined(reasons))


def _joined(reasons: Mapping[int, Sequence[str]]) -> dict[int, str]:
    return {index: "; ".join(texts) for index, texts in reasons.items()}


def _trial(
    operators: Sequence[OperatorView[Any]],
    graph: Specialized,
    translators: Registry[Translator],
    target: Target,
) -> Lowered:
    """All `operators` as one graph, to learn which of them translate."""
    parts = partitions(operators, {op.index: "trial" for op in operators}, graph.outputs)
    inputs = {tensor.index: tensor for part in parts for tensor in part.inputs}
    outputs = [tensor for part in parts for tensor in part.outputs]
    made = {out.index for op in operators for out in op.outputs}
    outside = [tensor for index, tensor in inputs.items() if index not in made]
    return lower(operators, outside, outputs, translators, target=target)
