"""Partitions: operators of one backend each, as few as the flow of data allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.schema import ModelError, Op, OperatorView, TensorView
from tflite_ort.specialize import called_subgraphs

# The backend of operators that no delegate takes.
NUMPY = "numpy"

# How many beginnings of a sequence of partitions are followed; two backends have two.
_BEGINNINGS = 16

Operators = Sequence[OperatorView[Any]]


@record(eq=False)
class Partition:
    """Operators that one backend runs in one go.

    Args:
        backend: what runs them: the name of a delegate, with a number where several have the same
            one, or NUMPY.
        inputs: what comes from outside, constants not counted.
        outputs: what is used outside, and the variables that are set here.
        places: by index, the inputs and outputs that stay in the memory of a device.
        copies: those of these outputs that are wanted in the host's memory too.
    """

    backend: str
    operators: Operators
    inputs: Sequence[TensorView]
    outputs: Sequence[TensorView]
    places: Mapping[int, DeviceTensor] = field(default_factory=dict)
    copies: Sequence[TensorView] = ()

    @property
    def on_host(self) -> list[TensorView]:
        """What crosses in the host's memory."""
        crossing = (*self.inputs, *self.outputs)
        return [*(t for t in crossing if t.index not in self.places), *self.copies]


def partitions(
    operators: Operators, backends: Mapping[int, str], results: Sequence[int]
) -> list[Partition]:
    """`operators`, each with its backend by index, as few partitions in an order that can run.

    A partition takes every operator of its backend that nothing left waiting has to precede, so
    that an operator in one branch does not cut the other branch. With two backends these are the
    fewest; with more, the fewest that a search finds which follows the best beginnings.

    Args:
        results: tensors that must be there at the end.
    """
    readers: dict[int, set[int]] = {index: {-1} for index in results}
    if len({backends[op.index] for op in operators}) == 1 and _are_in_order(operators):
        return [_partition(list(operators), backends[operators[0].index], readers, 0)]
    groups = _fewest(*_in_order(operators), backends)
    for number, group in enumerate(groups):
        for op in group:
            for tensor in op.present_inputs():
                readers.setdefault(tensor.index, set()).add(number)
    return [
        _partition(group, backends[group[0].index], readers, number)
        for number, group in enumerate(groups)
    ]


def _are_in_order(operators: Operators) -> bool:
    """Whether each operator stands after what makes its inputs, and none sets a variable."""
    made = [out.index for op in operators for out in op.outputs]
    late = set(made)
    if len(late) < len(made):
        return False
    for op in operators:
        for tensor in op.present_inputs():
            if tensor.index in late or tensor.is_variable:
                return False
        late.difference_update([out.index for out in op.outputs])
    return True


def predecessors(operators: Operators) -> dict[int, set[int]]:
    """The operators that have to run before each operator, by index.

    They make what it reads; or both use a variable, and one of them sets it.
    """
    maker = {out.index: op.index for op in operators for out in op.outputs}
    setter: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    earlier: dict[int, set[int]] = {}
    for op in operators:
        read = {tensor.index for tensor in op.present_inputs()}
        before = {made[index] for made in (maker, setter) for index in read if index in made}
        for tensor in op.variables():
            before |= readers.pop(tensor.index, set())
            setter[tensor.index] = op.index
        for index in read:
            if index not in maker:
                readers.setdefault(index, set()).add(op.index)
        earlier[op.index] = before - {op.index}
    return earlier


def _in_order(operators: Operators) -> tuple[list[OperatorView[Any]], dict[int, set[int]]]:
    """`operators` with each one after those that have to run before it, and which these are."""
    earlier = predecessors(operators)
    ordered: list[OperatorView[Any]] = []
    waiting, placed = list(operators), set[int]()
    while waiting:
        late = []
        for op in waiting:
            if earlier[op.index] <= placed:
                ordered.append(op)
                placed.add(op.index)
            else:
                late.append(op)
        if len(late) == len(waiting):
            raise ModelError(f"{late[0].label} waits for its own result")
        waiting = late
    return ordered, earlier


def _fewest(
    operators: Operators, earlier: Mapping[int, set[int]], backends: Mapping[int, str]
) -> list[list[OperatorView[Any]]]:
    """Groups of one backend each, in an order that can run."""
    names = dict.fromkeys([backends[op.index] for op in operators])
    if len(names) == 1:
        return [list(operators)]
    beginnings: dict[frozenset[int], list[list[OperatorView[Any]]]] = {frozenset(): []}
    while True:
        for done, groups in beginnings.items():
            if len(done) == len(operators):
                return groups
        longer: dict[frozenset[int], list[list[OperatorView[Any]]]] = {}
        for done, groups in beginnings.items():
            for name in names:
                group, after = _group(operators, earlier, backends, name, done)
                if group and after not in longer:
                    longer[after] = [*groups, group]
        best = sorted(longer, key=len, reverse=True)[:_BEGINNINGS]
        beginnings = {done: longer[done] for done in best}


def _group(
    operators: Operators,
    earlier: Mapping[int, set[int]],
    backends: Mapping[int, str],
    name: str,
    done: frozenset[int],
) -> tuple[list[OperatorView[Any]], frozenset[int]]:
    """All that one backend can run after `done`, and what is done then."""
    group, after = [], set(done)
    for op in operators:
        if op.index not in after and backends[op.index] == name and earlier[op.index] <= after:
            group.append(op)
            after.add(op.index)
    return group, frozenset(after)


def _partition(
    group: Operators, backend: str, readers: Mapping[int, set[int]], number: int
) -> Partition:
    """Group `number` with what enters and leaves it.

    Args:
        readers: by tensor, the groups that read it.
    """
    made, own = {out.index: out for op in group for out in op.outputs}, {number}
    needed: dict[int, TensorView] = {}
    changed: dict[int, TensorView] = {}
    for op in group:
        for tensor in op.present_inputs():
            index = tensor.index
            known = index in made or index in changed or tensor.constant is not None
            if tensor.is_variable:
                changed[index] = tensor
                known = known or only_sets(op, tensor)
            if not known:
                needed[index] = tensor
    outputs = [out for index, out in made.items() if not readers.get(index, own) <= own]
    return Partition(backend, group, list(needed.values()), [*outputs, *changed.values()])


def unread(operators: Operators, outputs: Sequence[int]) -> frozenset[int]:
    """The builtin operators that neither make anything for `outputs` nor change a variable."""
    wanted, found, callers = set(outputs), set[int](), called_subgraphs.CALLERS
    for op in reversed(operators):
        kept = not op.outputs or op.op is Op.CUSTOM or op.op in callers or op.variables()
        if not kept and wanted.isdisjoint(out.index for out in op.outputs):
            found.add(op.index)
        else:
            wanted.update(tensor.index for tensor in op.present_inputs())
    return frozenset(found)


def only_sets(op: OperatorView[Any], tensor: TensorView) -> bool:
    """Whether `op` gives the variable `tensor` a value without reading the one it has."""
    return op.op is Op.ASSIGN_VARIABLE and tensor.is_variable
