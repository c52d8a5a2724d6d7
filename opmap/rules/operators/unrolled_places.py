"""Where the node of an unrolled recurrent cell stands, what it reads, and what is read of it.

T steps, B batch, K numbers of a source, N units of the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record
from tflite_ort.opmap.graph import Target
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.idioms.hybrid_products import digits_save_time
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.picked_rows import PickedRows, picked_rows, whole_rows
from tflite_ort.opmap.rules.operators.stand_in_sizes import StandInSizes
from tflite_ort.opmap.rules.operators.unrolled_cells import (
    StepExpressions,
    Unrolled,
    unrolled_cells,
)
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.values.semantics import normalized_axis

Array = npt.NDArray[Any]
View = OperatorView[Any]
# The rows of all steps are written down one by one; of more the steps stay.
_MOST_ROWS = 2**22


@record
class Joined:
    """An operator that joins outputs of the cell along an axis.

    Args:
        places: the numbers of these outputs in the sequence of the node.
        before: how many elements of an output stand before that axis.
    """

    op: View
    places: Sequence[int]
    before: int


@record
class Source:
    """A source in all steps.

    Args:
        tensors: what it is rows of; or what it is in each step.
        places: [T, B], the numbers of the rows; None if there is a tensor for each step.
    """

    width: int
    tensors: Sequence[TensorView]
    places: Array | None = None

    @property
    def times(self) -> tuple[int, Sequence[int]] | None:
        """Where the steps are in [S, B, K] or in [B, S, K], whichever it is rows of: the axis of
        the steps, and their numbers along it; None if it is rows of something else."""
        if self.places is None:
            return None
        batch, all_rows = self.places.shape[1], prod(self.tensors[0].shape) // self.width
        length = all_rows // batch
        firsts, rows = self.places[:, :1], np.arange(batch)
        if all_rows % batch:
            return None
        if np.array_equal(self.places, firsts + rows) and not (firsts % batch).any():
            return 0, (firsts[:, 0] // batch).tolist()
        whole = length * batch * self.width == prod(self.tensors[0].shape)
        if (
            whole
            and np.array_equal(self.places, firsts + length * rows)
            and (firsts < length).all()
        ):
            return 1, firsts[:, 0].tolist()
        return None


@record(frozen=False)
class Chain:
    """An unrolled cell whose node can stand in the graph.

    Args:
        members: the operators in whose place it stands, in execution order.
        sources: in the order of its steps.
        states: its outputs [T, B, N] in the order of the node; the file has no such tensor.
        place: the operator where the node is added.
        backward: the last step is the first of the sequence.
        joined: operators among the members that join its outputs.
        single: outputs that are read one by one, with their number in the sequence.
    """

    found: Unrolled
    members: Sequence[View]
    sources: Sequence[Source]
    states: TensorView
    place: View
    backward: bool
    sizes: StandInSizes
    joined: Sequence[Joined] = ()
    single: Sequence[tuple[int, TensorView]] = field(default_factory=list)

    @property
    def reads(self) -> Sequence[TensorView]:
        """The tensors that the node is computed from."""
        return [*self.found.initial, *(each for source in self.sources for each in source.tensors)]

    def number(self, step: int) -> int:
        """The place of a step in the sequence of the node."""
        return len(self.found.results) - 1 - step if self.backward else step


class Chains:
    """The chains of a graph, in execution order.

    Args:
        emitted: by index of an operator in a group, the operator where its nodes are added.
    """

    def __init__(self, producers: Producers, emitted: Mapping[int, View], target: Target) -> None:
        self._target = target
        self._sizes = StandInSizes(producers.operators)
        operators = self._sizes.operators
        closed = operators is not producers.operators
        self._producers = Producers(operators, producers.results) if closed else producers
        self._expressions = StepExpressions(operators, hybrid=target.rounds)
        self._position = {op.index: number for number, op in enumerate(operators)}
        self._made = {
            out.index: self._position[emitted.get(op.index, op).index]
            for op in operators
            for out in op.outputs
        }
        self._taken = set(emitted)
        self._known = dict[int, PickedRows]()
        self.found = list[Chain]()
        cells = [*unrolled_cells(operators, self._expressions)]
        for cell in sorted(cells, key=lambda each: self._made[each.results[0][0].index]):
            chain = self._placed(cell)
            if chain is not None:
                self._add(chain)
        for chain in self.found:
            chain.single = [*self._single(chain)]

    def _add(self, chain: Chain) -> None:
        self.found.append(chain)
        self._taken.update(op.index for op in chain.members)
        place = self._position[chain.place.index]
        self._made[chain.states.index] = place
        self._made.update((out.index, place) for op in chain.members for out in op.outputs)
        batch = chain.states.shape[1]
        for step, states in enumerate(chain.found.results):
            number = chain.number(step)
            self._known[states[0].index] = whole_rows(chain.states, batch, number * batch)

    def _placed(self, found: Unrolled) -> Chain | None:
        """The chain of a cell; None where its node has no place."""
        members = self._members(found)
        sources = self._sources(found)
        if members is None or sources is None or self._is_faster_in_codes(members, found):
            return None
        rows = [source.places[:, 0] for source in sources if source.places is not None]
        backward = bool(rows) and all((np.diff(each) < 0).all() for each in rows)
        output = found.results[-1][0]
        shape = len(found.results), prod(output.shape[:-1]), output.shape[-1]
        states = TensorView(-2 - output.index, f"{output.name}/steps", TensorType.FLOAT32, shape)
        if self._sizes.is_open(shape[1]) and not all(
            source.places is None or source.times for source in sources
        ):
            return None
        chain = Chain(found, (), sources, states, members[0], backward, self._sizes)
        chain.joined = [*self._joins(chain)]
        joining = [op for each in chain.joined for op in self._leading_to(each.op, found)]
        chain.members = sorted([*members, *joining], key=lambda op: self._position[op.index])
        return chain if self._has_place(chain) else None

    def _members(self, found: Unrolled) -> Sequence[View] | None:
        """The operators of all steps; None where something else reads what they make inside."""
        edge = self._expressions.cut | {t.index for states in found.results for t in states}
        edge.update(tensor.index for tensor in found.initial)
        edge.update(source for sources in found.sources for source in sources)
        members = dict[int, View]()
        waiting = [tensor.index for states in found.results for tensor in states]
        while waiting:
            op = self._expressions.maker(waiting.pop())
            if op is None or op.index in members:
                continue
            members[op.index] = op
            inputs = [each for each in op.present_inputs() if not each.is_constant]
            waiting += [each.index for each in inputs if each.index not in edge]
        if not members.keys().isdisjoint(self._taken):
            return None
        last = [tensor.index for tensor in found.results[-1]]
        outer = {*last, *(states[0].index for states in found.results)}
        inner = (t for op in members.values() for t in op.outputs if t.index not in outer)
        if not all(self._is_inside(tensor, members) for tensor in inner):
            return None
        return sorted(members.values(), key=lambda op: self._position[op.index])

    def _is_inside(self, tensor: TensorView, members: Collection[int]) -> bool:
        readers = self._producers.readers(tensor)
        inside = all(op.index in members for op in readers)
        return inside and not self._producers.is_result(tensor)

    def _is_faster_in_codes(self, members: Sequence[View], found: Unrolled) -> bool:
        """Whether one row is multiplied by so many recurrent weights of 8 bits that it is faster
        not to make them floats."""
        output = found.results[-1][0]
        weights = len(found.cell.gates) * output.shape[-1] ** 2
        if not self._target.cpu_kernels or prod(output.shape[:-1]) > 1:
            return False
        if not digits_save_time(self._target, weights, repeated=True):
            return False
        products = [op.inputs[1] for op in members if op.op is Op.FULLY_CONNECTED]
        return any(filter is not None and filter.is_quantized for filter in products)

    def _sources(self, found: Unrolled) -> Sequence[Source] | None:
        sources = [self._source(numbers) for numbers in zip(*found.sources, strict=True)]
        usable = [each for each in sources if each is not None]
        return usable if len(usable) == len(sources) else None

    def _source(self, numbers: Sequence[int]) -> Source | None:
        """The source that has these numbers in the steps; None where it is rows of several products
        that are computed for all steps at once."""
        found = [self._rows(number) for number in numbers]
        picked = [each for each in found if each is not None]
        tensors = [self._expressions.source(number) for number in numbers]
        if not picked or any(each.whole.is_variable for each in picked):
            return None
        first = tensors[0]
        width = picked[0].whole.shape[-1] if first is None else first.shape[-1]
        rows = sum(prod(size for size, _ in each.runs) for each in picked)
        if rows > _MOST_ROWS:
            return None
        if len({each.whole.index for each in picked}) == 1 and len(picked) == len(numbers):
            places = np.array([each.places for each in picked])
            return Source(width, [picked[0].whole], places)
        present = [tensor for tensor in tensors if tensor is not None]
        return Source(width, present) if len(present) == len(numbers) else None

    def _rows(self, number: int) -> PickedRows | None:
        tensor = self._expressions.source(number)
        if tensor is None:
            return self._expressions.picked(number)
        return picked_rows(tensor, self._expressions.maker, self._known)

    def _joins(self, chain: Chain) -> Iterator[Joined]:
        """The operators that join outputs of the cell and nothing else."""
        steps = {states[0].index: step for step, states in enumerate(chain.found.results)}
        seen = set[int]()
        for states in chain.found.results:
            for op in self._readers_behind_reshapes(states[0]):
                if op.index in seen or op.op not in (Op.PACK, Op.CONCATENATION):
                    continue
                seen.add(op.index)
                joined = self._joined(op, chain, steps)
                if joined is not None and op.index not in self._taken:
                    yield joined

    def _readers_behind_reshapes(self, tensor: TensorView) -> Iterator[View]:
        for op in self._producers.readers(tensor):
            if op.op in RESHAPES:
                yield from self._producers.readers(op.output)
            yield op

    def _joined(self, op: View, chain: Chain, steps: Mapping[int, int]) -> Joined | None:
        inputs = op.present_inputs()
        found = [steps.get(self._before_reshape(tensor).index) for tensor in inputs]
        places = [chain.number(step) for step in found if step is not None]
        if len(places) != len(inputs) or len({tensor.shape for tensor in inputs}) != 1:
            return None
        if getattr(op.options, "fused_activation_function", 0):
            return None
        axis = normalized_axis(op.options.axis, op.output.rank)
        return Joined(op, places, prod(inputs[0].shape[:axis]))

    def _before_reshape(self, tensor: TensorView) -> TensorView:
        op = self._expressions.maker(tensor.index)
        return op.present_inputs()[0] if op is not None and op.op in RESHAPES else tensor

    def _leading_to(self, op: View, found: Unrolled) -> Iterator[View]:
        """`op`, which joins outputs, and the RESHAPEs that only it reads."""
        yield op
        outputs = {states[0].index for states in found.results}
        for tensor in op.present_inputs():
            if tensor.index not in outputs and self._is_inside(tensor, {op.index}):
                maker = self._expressions.maker(tensor.index)
                if maker is not None:
                    yield maker

    def _has_place(self, chain: Chain) -> bool:
        """Set the place of `chain`: an operator of it behind all that is read, and before all that
        reads; False where there is none."""
        ready = max((self._made.get(tensor.index, -1) for tensor in chain.reads), default=-1)
        own = {op.index for op in chain.members}
        after = [
            self._position[reader.index]
            for op in chain.members
            for out in op.outputs
            for reader in self._producers.readers(out)
            if reader.index not in own
        ]
        for op in chain.members:
            if ready < self._position[op.index]:
                chain.place = op
                return self._position[op.index] < min(after, default=len(self._position))
        return False

    def _single(self, chain: Chain) -> Iterator[tuple[int, TensorView]]:
        """The outputs that are read one by one."""
        own = {op.index for op in chain.members}
        readers = {op.index: each for each in self.found for op in each.members}
        for step, states in enumerate(chain.found.results):
            tensor = states[0]
            for op in self._producers.readers(tensor):
                reader = readers.get(op.index)
                read = reader is None or tensor.index in [each.index for each in reader.reads]
                if op.index not in own and read:
                    break
            else:
                if not self._producers.is_result(tensor):
                    continue
            yield chain.number(step), tensor
