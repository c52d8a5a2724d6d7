"""Which operators of a subgraph run sample by sample together, because sizes depend on data.

A tensor whose size depends on the sample has no place in a batch. The operators that make or read
such tensors, and those between them, form one group. A loop runs the group for each sample; only
what leaves the group is padded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.schema import OperatorView, Specialized

View = OperatorView[Any]


@dataclass(frozen=True, slots=True)
class Split:
    """The operators of a subgraph in the order in which a batch runs them.

    Args:
        before: of whole batches.
        inside: sample by sample, together.
        after: of whole batches, after these.
    """

    before: Sequence[View]
    inside: Sequence[View] = ()
    after: Sequence[View] = ()

    def wanted(self, outputs: Collection[int]) -> set[int]:
        """The tensors that leave the group: that `after` reads, or that are among `outputs`."""
        read = {tensor.index for op in self.after for tensor in op.present_inputs()}
        made = {out.index for op in self.inside for out in op.outputs}
        return made & (read | set(outputs))


def split(sample: Specialized, given: Collection[int] | None) -> Split:
    """The operators before, in and after the group; `inside` is empty where no size depends on
    a sample.

    Args:
        given: the inputs of which there is one for each sample, None for all.
    """
    ops = sample.operators
    group = _group(ops, set(sample.inputs if given is None else given))
    inside = [ops[number] for number in sorted(group)]
    late, state_is_late = {out.index for op in inside for out in op.outputs}, False
    before, after = list[View](), list[View]()
    for number, op in enumerate(ops):
        if number in group:
            continue
        keeps = bool(op.variables())  # the order in which states are used stays
        waits = (keeps and state_is_late) or _reads(op, late)
        if waits:
            late |= {out.index for out in op.outputs}
            state_is_late |= keeps
        (after if waits else before).append(op)
    return Split(before, inside, after)


def _group(ops: Sequence[View], differing: set[int]) -> set[int]:
    """The numbers of the operators of the group.

    Args:
        differing: the inputs of the subgraph that differ between samples.
    """
    sized = set(_sized(ops, differing))
    return sized | (_following(ops, sized) & _preceding(ops, sized))


def _sized(ops: Sequence[View], differing: set[int]) -> Iterator[int]:
    """The operators that make or read a tensor whose size depends on a sample."""
    for number, op in enumerate(ops):
        if op.variables() or _reads(op, differing):
            differing |= {out.index for out in op.outputs}
            if any(tensor.dynamic for tensor in (*op.present_inputs(), *op.outputs)):
                yield number


def _following(ops: Sequence[View], sized: set[int]) -> set[int]:
    """The operators that depend on some of `sized`."""
    made, found = set[int](), set[int]()
    for number, op in enumerate(ops):
        if number in sized or _reads(op, made):
            found.add(number)
            made |= {out.index for out in op.outputs}
    return found


def _preceding(ops: Sequence[View], sized: set[int]) -> set[int]:
    """The operators on which some of `sized` depend."""
    read, found = set[int](), set[int]()
    for number in reversed(range(len(ops))):
        if number in sized or any(out.index in read for out in ops[number].outputs):
            found.add(number)
            read |= {tensor.index for tensor in ops[number].present_inputs()}
    return found


def _reads(op: View, tensors: Collection[int]) -> bool:
    return any(tensor.index in tensors for tensor in op.present_inputs())
