"""The part of WHILE that depends on the previous iteration: unrolled, or in a Scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import declare, element_type, results, translate_inside
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.loops.loop_carried import LoopCarried, check_loops
from tflite_ort.opmap.loops.stacked_iterations import Sequences, domain_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.loops.induction_variables import InductionVariable

_ITERATION = InductionVariable(np.array(0), np.array(1))


@record
class Step:
    """The operators that have to run iteration by iteration.

    Args:
        states: the loop-carried values that they compute.
        rows: further tensors of the body whose values in all iterations are wanted.
        operators: in the order of execution.
        used: the sequences that they read.
    """

    g: Graph
    sequences: Sequences
    states: Sequence[LoopCarried]
    rows: Sequence[TensorView]
    operators: Sequence[OperatorView[Any]]
    used: Sequence[TensorView]

    @property
    def keeps_shapes(self) -> bool:
        """Whether the states have the same shape in every iteration, as a Scan needs."""
        tensors = [(state.initial, state.argument, state.result) for state in self.states]
        if any(tensor.dynamic for row in tensors for tensor in row):
            return False
        return all(len({tensor.shape for tensor in row}) == 1 for row in tensors)

    def unrolled(self) -> tuple[Values, Values]:
        """All iterations one after the other: the final states, and `rows` stacked [T, *shape]."""
        g, count = self.g, self.sequences.loop.trip_count
        slices = [self._slices(tensor) for tensor in self.used]
        arguments = [g.forms_as(state.initial, state.argument) for state in self.states]
        stacks: list[list[ir.Value]] = [[] for _ in self.rows]
        for iteration in range(count):
            inner = self.sequences.inside()
            for tensor, values in zip(self.used, slices, strict=True):
                _take(inner, tensor, values[iteration], domain_of(tensor))
            for state, forms in zip(self.states, arguments, strict=True):
                inner.take(state.argument, forms)
            for op in self.operators:
                translate_inside(g, op, inner)
            arguments = [inner.forms_as(state.result, state.argument) for state in self.states]
            for row, stack in zip(self.rows, stacks, strict=True):
                stack.append(g.reshape(inner.read(row, domain=domain_of(row)), (1, *row.shape)))
        finals = [inner.read(state.result, domain=state.domain) for state in self.states]
        return finals, [g.op("Concat", *stack, axis=0) for stack in stacks]

    def scanned(self) -> tuple[Values, Values]:
        """As `unrolled`, in a Scan."""
        check_loops(self.g)
        g, states, used = self.g, self.states, self.used

        def step(arguments: Values, slices: Values) -> tuple[Values, Values]:
            inner = self.sequences.inside()
            for tensor, value in zip(used, slices, strict=False):
                declare(value, tensor)
                _take(inner, tensor, value, domain_of(tensor))
            for state, value in zip(states, arguments, strict=True):
                declare(value, state.argument)
                _take(inner, state.argument, value, state.domain)
            for op in self.operators:
                translate_inside(g, op, inner)
            domains = [*(state.domain for state in states), *map(domain_of, self.rows)]
            tensors = [*(state.result for state in states), *self.rows]
            values = results(g, inner, tensors, domains)
            for value, tensor, domain in zip(values, tensors, domains, strict=True):
                value.dtype = element_type(tensor, domain)
                declare(value, tensor)  # what an If or a Loop made before has no shape
            return values[: len(states)], values[len(states) :]

        types = [element_type(state.argument, state.domain) for state in states]
        types += [element_type(tensor, domain_of(tensor)) for tensor in used]
        initial = [g.read(state.initial, domain=state.domain) for state in states]
        values = [self.sequences.value(tensor) for tensor in used]
        if not values:  # a Scan takes its trip count from a sequence
            values = [self.sequences.numbers(_ITERATION)]
            types.append(ir.DataType.INT64)
        return scan(g, step, initial, values, single=False, types=types)

    def _slices(self, tensor: TensorView) -> Sequence[ir.Value]:
        """The values of a sequence in each iteration."""
        g, loop = self.g, self.sequences.loop
        if tensor.index in loop.inductions:
            induction = loop.inductions[tensor.index]
            return [
                g.constant(induction.at(k).astype(tensor.dtype)) for k in range(loop.trip_count)
            ]
        first, *others = tensor.shape or (1,)
        joined = g.reshape(self.sequences.value(tensor), (loop.trip_count * first, *others))
        sizes = g.ints([first] * loop.trip_count)
        parts = g.op_multi("Split", joined, sizes, outputs=loop.trip_count, axis=0)
        return parts if tensor.rank else [g.reshape(part, ()) for part in parts]


def _take(inner: Graph, tensor: TensorView, value: ir.Value, domain: Domain) -> None:
    """Let `value`, channels-last in `domain`, be `tensor` in one iteration."""
    inner.take(tensor, {inner.form(tensor, Layout.LAST, domain): value})
