"""WHILE with a known trip count, without a Loop; also as a branch for a count that an input tells.

Values that do not depend on the previous iteration are computed for all iterations at once. A
recurrent cell becomes an ONNX RNN, GRU or LSTM. Only the rest runs iteration by iteration: unrolled
where the iterations are few and short, otherwise in a Scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tflite_ort.base.records import field, record
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.loops.affine_expressions import AffineExpressions
from tflite_ort.opmap.loops.loop_carried import (
    LoopCarried,
    forms_inside,
    loop_carried,
    pass_through,
)
from tflite_ort.opmap.loops.recurrent_cell_nodes import run_cell
from tflite_ort.opmap.loops.recurrent_cells import Cell, cells
from tflite_ort.opmap.loops.sequential_iterations import Step
from tflite_ort.opmap.loops.stacked_iterations import Sequences, needed
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, TensorView, WhileOptions
from tflite_ort.schema.loops.induction_variables import InductionVariable
from tflite_ort.schema.loops.loop_rows import Rows, rows_written
from tflite_ort.schema.loops.trip_count import Counted
from tflite_ort.schema.values.sizes import is_known, may_differ, same_elements

# A loop is unrolled up to so many operators over all iterations; a longer one is a Scan.
_UNROLLED = 64
_NOT_STACKED = frozenset({TensorType.STRING, TensorType.COMPLEX64, TensorType.COMPLEX128})


def counted_loop(op: OperatorView[WhileOptions], g: Graph, loop: Counted) -> bool:
    """Translate WHILE without a Loop; where that is impossible, write nothing and return False."""
    run = Run.of(op, g, loop)
    if not (run.is_plain and (loop.trip_count == 0 or run.finish())):
        return False
    if loop.trip_count:
        for state in run.states:
            g.write(state.final, run.finals[state.place], domain=state.domain)
    pass_through(op, g, {state.place for state in run.states} if loop.trip_count else set())
    return True


@record(frozen=False)
class Run:
    """A WHILE of known trip count under translation.

    Args:
        states: the loop-carried values.
        sequences: the tensors of the body whose values in all iterations are known so far.
        lists: by place, the loop-carried values of which an iteration sets one row.
        finals: by place, the final values that are computed so far.
    """

    g: Graph
    states: Sequence[LoopCarried]
    sequences: Sequences
    lists: Mapping[int, Rows]
    finals: dict[int, ir.Value] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        op: OperatorView[WhileOptions],
        g: Graph,
        loop: Counted,
        count: ir.Value | None = None,
    ) -> Run:
        """
        Args:
            count: the trip count as an int64 scalar, where `loop` does not know it.
        """
        body, states = op.bodies[1], loop_carried(op)
        places = {state.place for state in states}
        forms = enumerate(forms_inside(g, op.present_inputs(), body))
        fixed = {body.inputs[place]: value for place, value in forms if place not in places}
        lists = ((place, rows_written(place, body, loop)) for place in sorted(places))
        written = {place: rows for place, rows in lists if rows is not None}
        run = cls(g, states, Sequences(g, body, loop, fixed, count), written)
        for state in states:
            if state.place in loop.counters and is_known(loop.trip_count):
                final = loop.counters[state.place].at(loop.trip_count)
                run.finals[state.place] = g.constant(final.astype(state.argument.dtype))
        return run

    @property
    def is_plain(self) -> bool:
        """Whether the values of a tensor in all iterations can be stacked in one ONNX tensor."""
        body = self.sequences.body
        tensors = chain(*((*op.present_inputs(), *op.outputs) for op in body.operators))
        if body.changed() or not all(op.outputs for op in body.operators):
            return False
        if any(tensor.type in _NOT_STACKED for tensor in tensors):
            return False
        results = [(state.result, state.domain) for state in self.states]
        return not any(tensor.is_quantized and domain is Domain.FILE for tensor, domain in results)

    @property
    def pending(self) -> list[LoopCarried]:
        """The loop-carried values, lists aside, that are known only in the first iteration."""
        done = {*self.finals, *self.lists, *self.sequences.loop.counters}
        return [state for state in self.states if state.place not in done]

    def finish(self) -> bool:
        """Compute all `finals`; returns False where that takes a Loop."""
        expressions = AffineExpressions(self.sequences.body.operators, hybrid=self.g.target.rounds)
        while self._advance(expressions):
            pass
        if not self._iterate():
            return False
        by_place = {state.place: state for state in self.states}
        for place, rows in self.lists.items():
            self.finals[place] = self._list(by_place[place], rows)
        return True

    def _advance(self, expressions: AffineExpressions) -> bool:
        """Compute more tensors for all iterations at once; returns whether there were any."""
        for cell in cells(self.pending, expressions):
            if self._fits(cell):
                self.finals |= run_cell(self.g, cell, self.sequences)
                return True
        advances = [self.sequences.compute(op) for op in self._needed(self.pending)]
        for state in self.pending:
            if state.result in self.sequences and self.sequences.keeps_shape(state.argument):
                initial = self.g.read(state.initial, domain=state.domain)
                self.sequences.delay(state.argument, state.result, initial)
                self.finals[state.place] = self.sequences.last(state.result)
                return True
        return any(advances)

    def _rows(self) -> list[TensorView]:
        """The tensors of the body that are written as rows of lists."""
        return [self.sequences.body.tensors[rows.row] for rows in self.lists.values()]

    def _needed(
        self, states: Sequence[LoopCarried], assumed: Sequence[TensorView] = ()
    ) -> list[OperatorView[Any]]:
        """The operators that an iteration still has to run for `states` and for the lists.

        Args:
            assumed: tensors to take for known.
        """
        sequences = self.sequences
        tensors = sequences.body.tensors
        known = {t.index for t in tensors if sequences.is_fixed(t) or t in sequences}
        known |= {tensor.index for tensor in assumed}
        targets = [*(state.result for state in states), *self._rows()]
        return needed(sequences.body.operators, targets, known)

    def _fits(self, cell: Cell) -> bool:
        """Whether the inputs of `cell` are known, and nothing else reads its other states.

        ONNX gives the first state of all iterations, and only the last value of the others.
        """
        first, *others = cell.states
        sources = [self.sequences.body.tensors[source] for source in cell.sources]
        if any(t not in self.sequences or t.rank == 0 for t in sources):
            return False
        rows = first.argument.shape[:1]
        if not all(same_elements(source.shape[:-1], rows) for source in sources):
            return False
        outside = [state for state in self.pending if state not in cell.states]
        rest = self._needed(outside, (first.result, first.argument))
        wanted = {tensor.index for op in rest for tensor in op.present_inputs()}
        targets = (*(state.result for state in outside), *self._rows())
        wanted |= {tensor.index for tensor in targets}
        return not any({state.argument.index, state.result.index} & wanted for state in others)

    def _iterate(self) -> bool:
        """Compute what depends on the previous iteration; returns False where that takes a Loop."""
        states, sequences = self.pending, self.sequences
        rows = [row for row in self._rows() if row not in sequences]
        if not states and not rows:
            return True
        operators, targets = self._needed(states), [*(state.result for state in states), *rows]
        read = {t.index: t for op in operators for t in op.present_inputs()}
        read |= {tensor.index: tensor for tensor in targets}
        used = [t for t in read.values() if t in sequences and not sequences.is_fixed(t)]
        step = Step(self.g, sequences, states, rows, operators, used)
        count = sequences.loop.trip_count
        if is_known(count) and count * max(1, len(operators)) <= _UNROLLED:
            finals, stacked = step.unrolled()
        elif step.keeps_shapes:
            finals, stacked = step.scanned()
        else:
            return False
        self.finals |= {state.place: v for state, v in zip(states, finals, strict=True)}
        for row, value in zip(rows, stacked, strict=True):
            sequences.set(row, value)
        return True

    def _list(self, state: LoopCarried, rows: Rows) -> ir.Value:
        """The final value of a list: the rows of all iterations written into its initial value."""
        g, loop, shape = self.g, self.sequences.loop, state.initial.shape
        row = self.sequences.body.tensors[rows.row]
        if rows.step == 0 and not may_differ(shape[:1], (1,)):  # each iteration sets it anew
            return g.reshape(self.sequences.last(row), shape)
        values = g.reshape(self.sequences.value(row), (loop.trip_count, *shape[1:]))
        if rows.step == 1 and not may_differ(shape[:1], (loop.trip_count,)):
            return values
        initial = g.read(state.initial, domain=state.domain)
        if rows.step == 0:
            indices, values = g.ints([[rows.first]]), self.sequences.last(row)
        else:
            places = InductionVariable(np.array([rows.first]), np.array([rows.step]))
            indices = self.sequences.numbers(places)
        return g.op("ScatterND", initial, indices, values)
