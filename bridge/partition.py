"""Which runtime takes which operator, and few steps that respect the flow of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.schema import ModelError, OperatorView, TensorView

# The runner of operators that no delegate takes.
NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class Partition:
    """Operators that one runner runs in one go.

    Args:
        runner: a delegate's name, or NUMPY.
        inputs: what comes from outside, constants not counted.
        outputs: what is used outside.
    """

    runner: str
    operators: Sequence[OperatorView[Any]]
    inputs: Sequence[TensorView]
    outputs: Sequence[TensorView]


def partitions(
    operators: Sequence[OperatorView[Any]], runners: Mapping[int, str], results: Sequence[int]
) -> list[Partition]:
    """`operators`, each with its runner by index, as partitions in an order that can run.

    A partition grows by every operator of its runner whose inputs are there, so that an operator
    in one branch does not cut the other branch.

    Args:
        results: tensors that must be there at the end.
    """
    names = list(dict.fromkeys(runners[op.index] for op in operators))
    candidates = [_grouped(operators, runners, first) for first in names]
    groups = min(candidates, key=len, default=[])
    return [_partition(group, groups, runners, results) for group in groups]


def _grouped(
    operators: Sequence[OperatorView[Any]], runners: Mapping[int, str], first: str
) -> list[list[OperatorView[Any]]]:
    """Greedy groups of one runner each, the first of them by `first` if it can start."""
    waiting = list(operators)
    pending = {out.index for op in operators for out in op.outputs}
    groups: list[list[OperatorView[Any]]] = []
    runner = first
    while waiting:
        group, rest = [], []
        for op in waiting:
            ready = all(tensor.index not in pending for tensor in op.present_inputs())
            if ready and runners[op.index] == runner:
                group.append(op)
                pending.difference_update(out.index for out in op.outputs)
            else:
                rest.append(op)
        if group:
            groups.append(group)
        waiting = rest
        if waiting:
            runner = _next_runner(waiting, runners, pending)
    return groups


def _next_runner(
    waiting: Sequence[OperatorView[Any]], runners: Mapping[int, str], pending: set[int]
) -> str:
    """The runner of the first operator that can run."""
    for op in waiting:
        if not any(tensor.index in pending for tensor in op.present_inputs()):
            return runners[op.index]
    raise ModelError(f"{waiting[0].label} waits for its own result")


def _partition(
    group: Sequence[OperatorView[Any]],
    groups: Sequence[Sequence[OperatorView[Any]]],
    runners: Mapping[int, str],
    results: Sequence[int],
) -> Partition:
    made = {out.index: out for op in group for out in op.outputs}
    needed = {
        tensor.index: tensor
        for op in group
        for tensor in op.present_inputs()
        if tensor.index not in made and not tensor.is_constant
    }
    used = set(results)
    for other in groups:
        if other is not group:
            used.update(tensor.index for op in other for tensor in op.present_inputs())
    outputs = [out for index, out in made.items() if index in used]
    return Partition(runners[group[0].index], group, list(needed.values()), outputs)
