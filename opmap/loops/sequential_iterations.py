"""What a loop does iteration by iteration, once all else is known: unrolled, or in a Scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.bodies import element_type, results, translate_inside
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.loops.loop_carried import Moving
from tflite_ort.opmap.loops.stacked_iterations import Sequences, domain_of
from tflite_ort.schema import OperatorView, TensorView


@dataclass(frozen=True, slots=True)
class Step:
    """What has to be run iteration by iteration.

    Args:
        states: what an iteration takes from the one before.
        rows: what it makes besides, of which that of all iterations is wanted.
        used: what it takes of sequences.
    """

    g: Graph
    sequences: Sequences
    states: Sequence[Moving]
    rows: Sequence[TensorView]
    operators: Sequence[OperatorView[Any]]
    used: Sequence[TensorView]

    @property
    def keeps_shapes(self) -> bool:
        """Whether a Scan holds the states, which have to be as large in every iteration."""
        tensors = [(each.before, each.taken, each.made) for each in self.states]
        if any(tensor.dynamic for row in tensors for tensor in row):
            return False
        return all(len({tensor.shape for tensor in row}) == 1 for row in tensors)

    def unrolled(self) -> tuple[Values, Values]:
        """All iterations one after the other: the last states and the rows of all."""
        g, count = self.g, self.sequences.loop.count
        slices = [self._slices(tensor) for tensor in self.used]
        given = [g.forms_as(each.before, each.taken) for each in self.states]
        stacks: list[list[ir.Value]] = [[] for _ in self.rows]
        for iteration in range(count):
            inner = self.sequences.inside()
            for tensor, values in zip(self.used, slices, strict=True):
                self._take(inner, tensor, values[iteration])
            for each, forms in zip(self.states, given, strict=True):
                inner.take(each.taken, forms)
            for op in self.operators:
                translate_inside(g, op, inner)
            given = [inner.forms_as(each.made, each.taken) for each in self.states]
            for row, stack in zip(self.rows, stacks, strict=True):
                stack.append(g.reshape(inner.read(row, domain=domain_of(row)), (1, *row.shape)))
        finals = [inner.read(each.made, domain=each.domain) for each in self.states]
        return finals, [g.op("Concat", *stack, axis=0) for stack in stacks]

    def scanned(self) -> tuple[Values, Values]:
        """As `unrolled`, in a Scan."""
        g, states, used = self.g, self.states, self.used

        def step(taken: Values, slices: Values) -> tuple[Values, Values]:
            inner = self.sequences.inside()
            for tensor, value in zip(used, slices, strict=False):
                self._take(inner, tensor, value)
            for each, value in zip(states, taken, strict=True):
                inner.take(each.taken, {g.form(each.taken, Layout.LAST, each.domain): value})
            for op in self.operators:
                translate_inside(g, op, inner)
            made = [*(each.made for each in states), *self.rows]
            domains = [*(each.domain for each in states), *map(domain_of, self.rows)]
            values = results(g, inner, made, domains)
            return values[: len(states)], values[len(states) :]

        types = [element_type(each.taken, each.domain) for each in states]
        types += [element_type(tensor, domain_of(tensor)) for tensor in used]
        initial = [g.read(each.before, domain=each.domain) for each in states]
        values = [self.sequences.value(tensor) for tensor in used]
        if not values:  # something has to tell how often
            values = [g.constant(np.arange(self.sequences.loop.count))]
            types.append(ir.DataType.INT64)
        return scan(g, step, initial, values, single=False, types=types)

    def _take(self, inner: Graph, tensor: TensorView, value: ir.Value) -> None:
        inner.take(tensor, {inner.form(tensor, Layout.LAST, domain_of(tensor)): value})

    def _slices(self, tensor: TensorView) -> Sequence[ir.Value]:
        """The values of a sequence in each iteration."""
        g, loop = self.g, self.sequences.loop
        if tensor.index in loop.courses:
            course = loop.courses[tensor.index]
            return [g.constant(course.at(k).astype(tensor.dtype)) for k in range(loop.count)]
        first, *others = tensor.shape or (1,)
        joined = g.reshape(self.sequences.value(tensor), (loop.count * first, *others))
        sizes = g.constant([first] * loop.count, np.int64)
        parts = g.op_multi("Split", joined, sizes, outputs=loop.count, axis=0)
        return parts if tensor.rank else [g.reshape(part, ()) for part in parts]
