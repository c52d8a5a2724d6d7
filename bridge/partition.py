"""Which runtime takes which operator, and few steps that respect the flow of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.schema import ModelError, Op, OperatorView, TensorView

# The runner of operators that no delegate takes.
NUMPY = "numpy"

Operators = Sequence[OperatorView[Any]]


@dataclass(frozen=True, slots=True)
class Partition:
    """Operators that one runner runs in one go.

    Args:
        runner: a delegate's name, or NUMPY.
        inputs: what comes from outside, constants not counted.
        outputs: what is used outside, and the variables that are set here.
    """

    runner: str
    operators: Operators
    inputs: Sequence[TensorView]
    outputs: Sequence[TensorView]


def partitions(
    operators: Operators, runners: Mapping[int, str], results: Sequence[int]
) -> list[Partition]:
    """`operators`, each with its runner by index, as partitions in an order that can run.

    A partition grows by every operator of its runner that nothing left waiting has to precede, so
    that an operator in one branch does not cut the other branch.

    Args:
        results: tensors that must be there at the end.
    """
    earlier = predecessors(operators)
    names = list(dict.fromkeys(runners[op.index] for op in operators))
    candidates = [_grouped(operators, runners, earlier, first) for first in names]
    groups = min(candidates, key=len, default=[])
    return [_partition(group, groups, runners, results) for group in groups]


def predecessors(operators: Operators) -> dict[int, set[int]]:
    """By operator index, those that have to run before it.

    They make what it reads; or both use a variable, and one of them sets it.
    """
    maker = {out.index: op.index for op in operators for out in op.outputs}
    setter: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    earlier: dict[int, set[int]] = {}
    for op in operators:
        read = {tensor.index for tensor in op.present_inputs()}
        before = {maker[index] for index in read & maker.keys()}
        before |= {setter[index] for index in read & setter.keys()}
        for tensor in op.variables():
            before |= readers.pop(tensor.index, set())
            setter[tensor.index] = op.index
        for index in read - maker.keys():
            readers.setdefault(index, set()).add(op.index)
        earlier[op.index] = before - {op.index}
    return earlier


def _grouped(
    operators: Operators, runners: Mapping[int, str], earlier: Mapping[int, set[int]], first: str
) -> list[list[OperatorView[Any]]]:
    """Greedy groups of one runner each, the first of them by `first` if it can start."""
    waiting = list(operators)
    pending = {op.index for op in operators}
    groups: list[list[OperatorView[Any]]] = []
    runner = first
    while waiting:
        group, rest = [], []
        for op in waiting:
            if runners[op.index] == runner and earlier[op.index].isdisjoint(pending):
                group.append(op)
                pending.discard(op.index)
            else:
                rest.append(op)
        if group:
            groups.append(group)
        waiting = rest
        if waiting:
            runner = _next_runner(waiting, runners, earlier, pending)
    return groups


def _next_runner(
    waiting: Operators,
    runners: Mapping[int, str],
    earlier: Mapping[int, set[int]],
    pending: set[int],
) -> str:
    """The runner of the first operator that can run."""
    for op in waiting:
        if earlier[op.index].isdisjoint(pending):
            return runners[op.index]
    raise ModelError(f"{waiting[0].label} waits for its own result")


def _partition(
    group: Operators,
    groups: Sequence[Operators],
    runners: Mapping[int, str],
    results: Sequence[int],
) -> Partition:
    made = {out.index: out for op in group for out in op.outputs}
    needed: dict[int, TensorView] = {}
    changed: dict[int, TensorView] = {}
    for op in group:
        for tensor in op.present_inputs():
            known = tensor.index in made or tensor.index in changed or tensor.is_constant
            if not known and not only_sets(op, tensor):
                needed[tensor.index] = tensor
        changed.update((tensor.index, tensor) for tensor in op.variables())
    used = set(results)
    for other in groups:
        if other is not group:
            used.update(tensor.index for op in other for tensor in op.present_inputs())
    outputs = [out for index, out in made.items() if index in used]
    return Partition(
        runners[group[0].index], group, list(needed.values()), [*outputs, *changed.values()]
    )


def only_sets(op: OperatorView[Any], tensor: TensorView) -> bool:
    """Whether `op` gives the variable `tensor` a value without reading the one it has."""
    return op.op is Op.ASSIGN_VARIABLE and tensor.is_variable
