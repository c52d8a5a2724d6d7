"""Which delegate runs which operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.opmap import Lowered, Target, Translator, lower
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import NUMPY, partitions
from tflite_ort.providers.delegates import Delegate
from tflite_ort.schema import OperatorView, Specialized
from tflite_ort.versioning.registry import Registry


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which backend has which operator, and why the earlier ones do not.

    Args:
        whole: the translation of all operators, when one delegate takes every one of them.
    """

    backends: Mapping[int, str]
    reasons: Mapping[int, str]
    whole: Lowered | None = None


def assign(
    graph: Specialized, context: PlanContext, failures: Mapping[tuple[str, int], str] | None = None
) -> Assignment:
    """Delegates claim operators in the order given; numpy kernels take the rest.

    What was in too small a partition and nothing else takes stays where it was.

    Args:
        failures: by backend and operator, why it could not be made ready there.
    """
    failures = failures or {}
    kernels, left = context.resolver.kernels, dict[int, tuple[str, list[str]]]()
    backends = {op.index: NUMPY for op in graph.operators}
    reasons: dict[int, list[str]] = {op.index: [] for op in graph.operators}
    remaining, translators = list(graph.operators), context.resolver.translators
    for backend, delegate in context.backends.items():
        refusals = {
            op.index: context.failed.get(backend)
            or failures.get((backend, op.index))
            or _refusal(delegate, op)
            for op in remaining
        }
        claimed = [op for op in remaining if refusals[op.index] is None]
        lowered = _trial(claimed, graph, translators, context.target(delegate))
        refusals.update(lowered.refusals)
        for op in remaining:
            reason = refusals[op.index]
            if reason is None:
                backends[op.index] = backend
            elif reason not in reasons[op.index]:
                reasons[op.index].append(reason)
        small = _too_small(graph, backends, backend, delegate)
        for index, reason in small.items():
            backends[index] = NUMPY
            left.setdefault(index, (backend, list(reasons[index])))
            reasons[index].append(reason)
        if claimed and len(claimed) == len(graph.operators) and not (lowered.refusals or small):
            return Assignment(backends, _joined(reasons), lowered)
        remaining = [op for op in remaining if backends[op.index] == NUMPY]
    for op in remaining:
        if op.index in left and kernels.of(op) is None:
            backends[op.index], reasons[op.index] = left[op.index]
    return Assignment(backends, _joined(reasons))


def _refusal(delegate: Delegate, op: OperatorView[Any]) -> str | None:
    """Why a delegate does not take `op`, or an operator of a subgraph that it calls."""
    reason = delegate.refusal(op)
    if reason is not None:
        return reason
    for body in op.bodies:
        for inner in body.operators:
            reason = _refusal(delegate, inner)
            if reason is not None:
                return f"{inner.label} of subgraph {body.subgraph}: {reason}"
    return None


def _too_small(
    graph: Specialized, backends: Mapping[int, str], backend: str, delegate: Delegate
) -> dict[int, str]:
    """The operators of partitions that are too small for `delegate`, with the reason. One
    partition taken away can join others, so the smallest goes first."""
    left, reasons, least = dict(backends), dict[int, str](), delegate.min_partition_size
    while least > 1:
        groups = [
            part.operators
            for part in partitions(graph.operators, left, graph.outputs)
            if part.backend == backend and len(part.operators) < least
        ]
        if not groups:
            break
        smallest = min(groups, key=len)
        reason = f"in a partition of {len(smallest)}, {delegate.name} takes {least} or more"
        for op in smallest:
            left[op.index], reasons[op.index] = NUMPY, reason
    return reasons


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
