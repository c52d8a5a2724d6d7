"""Loops that run a known number of times.

What an iteration needs nothing of the one before for is computed for all iterations at once, what
is a recurrent cell becomes a node, and only the rest runs iteration by iteration: one after the
other where they are few, else in a Scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.loops.affine_expressions import LinearForms
from tflite_ort.opmap.loops.loop_carried import Moving, forms_inside, hand_on, moving
from tflite_ort.opmap.loops.recurrent_cell_nodes import run_cell
from tflite_ort.opmap.loops.recurrent_cells import Cell, cells
from tflite_ort.opmap.loops.sequential_iterations import Step
from tflite_ort.opmap.loops.stacked_iterations import Sequences, needed
from tflite_ort.schema import OperatorView, TensorType, TensorView, WhileOptions
from tflite_ort.schema.loops.loop_rows import Rows, rows_written
from tflite_ort.schema.loops.trip_count import Counted

# So many operators of all iterations stand one after the other; more are a Scan.
_UNROLLED = 64
_NOT_STACKED = frozenset({TensorType.STRING, TensorType.COMPLEX64, TensorType.COMPLEX128})


def counted_loop(op: OperatorView[WhileOptions], g: Graph, loop: Counted) -> bool:
    """Translate `op` without a Loop; False, and nothing written, where that cannot be."""
    run = _Run.of(op, g, loop)
    if not (run.is_plain and (loop.count == 0 or run.finish())):
        return False
    if loop.count:
        for each in run.states:
            g.write(each.after, run.finals[each.place], domain=each.domain)
    hand_on(op, g, {each.place for each in run.states} if loop.count else set())
    return True


@dataclass(slots=True)
class _Run:
    """A counted loop under translation.

    Args:
        states: what the iterations change.
        lists: of these, by place, those of which each iteration sets one row.
        finals: by place, what the last iteration leaves, as far as it is made.
    """

    g: Graph
    states: Sequence[Moving]
    sequences: Sequences
    lists: Mapping[int, Rows]
    finals: dict[int, ir.Value] = field(default_factory=dict)

    @classmethod
    def of(cls, op: OperatorView[WhileOptions], g: Graph, loop: Counted) -> _Run:
        body, states = op.bodies[1], moving(op)
        moved = {each.place for each in states}
        forms = enumerate(forms_inside(g, op.present_inputs(), body))
        fixed = {body.inputs[place]: given for place, given in forms if place not in moved}
        lists = ((place, rows_written(place, body, loop)) for place in sorted(moved))
        written = {place: rows for place, rows in lists if rows is not None}
        run = cls(g, states, Sequences(g, body, loop, fixed), written)
        for each in states:
            if each.place in loop.counters:
                last = loop.counters[each.place].at(loop.count)
                run.finals[each.place] = g.constant(last.astype(each.taken.dtype))
        return run

    @property
    def is_plain(self) -> bool:
        """Whether the tensors are such that those of all iterations can be one."""
        body = self.sequences.body
        tensors = chain(*((*op.present_inputs(), *op.outputs) for op in body.operators))
        if body.changed() or not all(op.outputs for op in body.operators):
            return False
        if any(tensor.type in _NOT_STACKED for tensor in tensors):
            return False
        given = [(each.made, each.domain) for each in self.states]
        return not any(made.is_quantized and domain is Domain.FILE for made, domain in given)

    @property
    def pending(self) -> list[Moving]:
        """The states that are known in no iteration but the first."""
        done = {*self.finals, *self.lists}
        return [each for each in self.states if each.place not in done]

    def finish(self) -> bool:
        """Make all `finals`; False where that takes a Loop."""
        forms = LinearForms(self.sequences.body, hybrid=self.g.target.hybrid != "float")
        while self._advance(forms):
            pass
        if not self._iterate():
            return False
        by_place = {each.place: each for each in self.states}
        for place, rows in self.lists.items():
            self.finals[place] = self._list(by_place[place], rows)
        return True

    def _advance(self, forms: LinearForms) -> bool:
        """Make more known for all iterations; whether there was something."""
        for cell in cells(self.pending, forms):
            if self._fits(cell):
                self.finals |= run_cell(self.g, cell, self.sequences)
                return True
        made = [self.sequences.make(op) for op in self._needed(self.pending)]
        for each in self.pending:
            if each.made in self.sequences and not each.taken.dynamic:
                initial = self.g.read(each.before, domain=each.domain)
                self.sequences.follow(each.taken, each.made, initial)
                self.finals[each.place] = self.sequences.last(each.made)
                return True
        return any(made)

    def _rows(self) -> list[TensorView]:
        """What is set in lists."""
        return [self.sequences.body.tensors[rows.row] for rows in self.lists.values()]

    def _needed(
        self, states: Sequence[Moving], assumed: Sequence[TensorView] = ()
    ) -> list[OperatorView[Any]]:
        """The operators that an iteration still has to run for `states` and lists, if the tensors
        `assumed` are known too."""
        sequences = self.sequences
        tensors = sequences.body.tensors
        known = {t.index for t in tensors if sequences.is_fixed(t) or t in sequences}
        known |= {tensor.index for tensor in assumed}
        targets = [*(each.made for each in states), *self._rows()]
        return needed(sequences.body.operators, targets, known)

    def _fits(self, cell: Cell) -> bool:
        """Whether what `cell` takes is known, and nothing else wants what it keeps to itself."""
        first, *others = cell.states
        sources = [self.sequences.body.tensors[source] for source in cell.sources]
        if any(t not in self.sequences or t.dynamic or t.rank != 2 for t in sources):
            return False
        if any(source.shape[0] != first.taken.shape[0] for source in sources):
            return False
        outside = [each for each in self.pending if each not in cell.states]
        rest = self._needed(outside, (first.made, first.taken))
        wanted = {tensor.index for op in rest for tensor in op.present_inputs()}
        wanted |= {tensor.index for tensor in (*(each.made for each in outside), *self._rows())}
        return not any({each.taken.index, each.made.index} & wanted for each in others)

    def _iterate(self) -> bool:
        """What each iteration does with what the one before has made."""
        states, sequences = self.pending, self.sequences
        rows = [row for row in self._rows() if row not in sequences]
        if not states and not rows:
            return True
        operators, targets = self._needed(states), [*(each.made for each in states), *rows]
        read = {t.index: t for op in operators for t in op.present_inputs()}
        read |= {tensor.index: tensor for tensor in targets}
        used = [t for t in read.values() if t in sequences and not sequences.is_fixed(t)]
        step = Step(self.g, sequences, states, rows, operators, used)
        if sequences.loop.count * max(1, len(operators)) <= _UNROLLED:
            finals, stacked = step.unrolled()
        elif step.keeps_shapes:
            finals, stacked = step.scanned()
        else:
            return False
        self.finals |= {each.place: v for each, v in zip(states, finals, strict=True)}
        for row, value in zip(rows, stacked, strict=True):
            sequences.set(row, value)
        return True

    def _list(self, state: Moving, rows: Rows) -> ir.Value:
        """A list with the rows of all iterations in it."""
        g, loop, shape = self.g, self.sequences.loop, state.before.shape
        row = self.sequences.body.tensors[rows.row]
        values = g.reshape(self.sequences.value(row), (loop.count, *shape[1:]))
        if loop.count == shape[0] and rows.step == 1:
            return values
        before = g.read(state.before, domain=state.domain)
        if rows.step == 0:
            places, values = [rows.first], self.sequences.last(row)
        else:
            places = [rows.first + k * rows.step for k in range(loop.count)]
        indices = g.constant(np.reshape(places, (-1, 1)), np.int64)
        return g.op("ScatterND", before, indices, values)
