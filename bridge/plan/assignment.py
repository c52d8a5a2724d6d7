"""Which backend runs which operator: delegates claim operators in turn, numpy takes the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import Lowered, lower
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import NUMPY, Partition, partitions
from tflite_ort.plan.refusals import Refusals
from tflite_ort.providers.delegates import Delegate
from tflite_ort.schema import OperatorView, Specialized
from tflite_ort.versioning.registry import Registry

# All operators as one partition, and its translation.
Whole = tuple[Partition, Lowered]


@record
class Assignment:
    """Which backend has which operator, and why the earlier ones do not.

    Args:
        backends: by operator, a delegate's name or NUMPY.
        reasons: by operator, why earlier delegates do not have it; empty for the first one.
        whole: the partition of all operators and its translation, when one delegate takes every
            one of them.
    """

    backends: Mapping[int, str]
    reasons: Mapping[int, str]
    whole: Whole | None = None


def assign(
    graph: Specialized, context: PlanContext, refusals: Refusals | None = None
) -> Assignment:
    """Delegates claim operators in the order given; numpy kernels take the rest.

    An operator of a partition that is too small for its delegate stays there all the same if
    nothing else takes it.

    Args:
        refusals: what earlier attempts have found; None: what the context knows.
    """
    claims = _Claims(graph, context, refusals or Refusals(context.unusable))
    for backend, delegate in context.backends.items():
        whole = claims.offer(backend, delegate)
        if whole is not None:
            return claims.assignment(whole)
    claims.keep_small_partitions(context.resolver.kernels)
    return claims.assignment()


class _Claims:
    """The operators that are claimed by now.

    Attributes:
        backends: by operator, who has claimed it; NUMPY for one that is still to have.
        reasons: by operator, why the delegates that have been asked do not have it.
        returned: by operator given back for its small partition, the delegate that had it and the
            reasons before.
    """

    def __init__(self, graph: Specialized, context: PlanContext, refusals: Refusals) -> None:
        self.graph, self.context, self.refusals = graph, context, refusals
        self.backends = {op.index: NUMPY for op in graph.operators}
        self.reasons: dict[int, list[str]] = {op.index: [] for op in graph.operators}
        self.returned: dict[int, tuple[str, list[str]]] = {}

    def unclaimed(self) -> list[OperatorView[Any]]:
        """The operators that no delegate has, in graph order."""
        return [op for op in self.graph.operators if self.backends[op.index] == NUMPY]

    def offer(self, backend: str, delegate: Delegate) -> Whole | None:
        """Let a delegate claim what is left; what it makes of it if it takes the whole graph."""
        left = self.unclaimed()
        reasons = {
            op.index: self.refusals.reason(backend, op.index) or _refusal(delegate, op)
            for op in left
        }
        wanted = [op for op in left if reasons[op.index] is None]
        translators, target = self.context.resolver.translators, self.context.target(delegate)
        trials = [  # one, or none of no operator
            (part, lower(part.operators, part.inputs, part.outputs, translators, target=target))
            for part in partitions(wanted, {op.index: backend for op in wanted}, self.graph.outputs)
        ]
        for _, lowered in trials:
            reasons.update(lowered.refusals)
        for index, reason in reasons.items():
            if reason is None:
                self.backends[index] = backend
            elif reason not in self.reasons[index]:
                self.reasons[index].append(reason)
        small = _too_small(self.graph, self.backends, backend, delegate)
        self._give_back(small)
        complete = len(wanted) == len(self.graph.operators) and not small
        whole = trials[0] if trials and complete else None
        return None if whole is None or whole[1].refusals else whole

    def _give_back(self, small: Mapping[int, str]) -> None:
        for index, reason in small.items():
            self.returned.setdefault(index, (self.backends[index], list(self.reasons[index])))
            self.backends[index] = NUMPY
            self.reasons[index].append(reason)

    def keep_small_partitions(self, kernels: Registry[Kernel]) -> None:
        """Give an operator that has no kernel to the delegate for which its partition was small."""
        for op in self.unclaimed():
            if op.index in self.returned and kernels.of(op) is None:
                self.backends[op.index], self.reasons[op.index] = self.returned[op.index]

    def assignment(self, whole: Whole | None = None) -> Assignment:
        """What has been claimed."""
        reasons = {index: "; ".join(texts) for index, texts in self.reasons.items()}
        return Assignment(self.backends, reasons, whole)


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
