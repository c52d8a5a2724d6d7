"""The ONNX node of an unrolled recurrent cell.

T steps, B batch, K numbers of a source, N units of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.loops.recurrent_cell_nodes import cell_node
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.pattern import Emit
from tflite_ort.opmap.rules.operators.unrolled_places import Chain, Chains, Joined, Source
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Any]


def unrolled(
    producers: Producers, emitted: Mapping[int, View], target: Target
) -> Iterator[tuple[Sequence[View], View, Emit]]:
    """Of each unrolled cell its operators, the one where its node is added, and what adds it.

    Args:
        emitted: by index of an operator in a group, the operator where its nodes are added.
    """
    operators = producers.operators
    try:
        chains = Chains(producers, emitted, target)
    except (*MALFORMED_OPERATOR, Untranslatable):  # which operator is, its translator says
        return
    by_index = {op.index: op for op in operators}
    for chain in chains.found:
        members = [by_index[op.index] for op in chain.members]
        yield members, by_index[chain.place.index], _Node(chain, operators).emit


class _Node:
    """The node of a chain, and what is read of it.

    Args:
        operators: those of the graph, with the sizes that it has.
    """

    def __init__(self, chain: Chain, operators: Sequence[View]) -> None:
        self._chain = chain
        tensors = (t for op in operators for t in (*op.present_inputs(), *op.outputs))
        self._tensors = {tensor.index: tensor for tensor in tensors}

    def emit(self, g: Graph, _op: View) -> None:
        """Add the nodes."""
        chain, found = self._chain, self._chain.found
        count, *_, units = chain.states.shape
        batch = chain.sizes.opened(chain.states.shape[1])
        parts = [self._sequence(g, source, batch) for source in chain.sources]
        x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=2)
        initial: list[ir.Value | None] = [None] * len(found.cell.states)
        for place, tensor in enumerate(found.initial):
            initial[place] = self._read(g, tensor, 1, batch, units)
        direction = "reverse" if chain.backward else None
        outputs, *finals = cell_node(g, found.cell, x, initial, batch, direction)
        steps = g.reshape(outputs, (count, batch, units))
        g.write(chain.states, steps)
        for joined in chain.joined:
            self._write(g, joined.op.output, self._joined(g, joined, steps))
        for tensor, value in zip(found.results[-1], finals, strict=True):
            self._write(g, tensor, value)
        for number, tensor in chain.single:
            if tensor.index != found.results[-1][0].index:
                self._write(g, tensor, g.op("Gather", steps, g.ints([number]), axis=0))

    def _read(self, g: Graph, tensor: TensorView, *shape: int) -> ir.Value:
        """The elements of `tensor` in `shape`."""
        tensor = self._tensors.get(tensor.index, tensor)
        value = g.read(tensor)
        return g.reshape(value, shape) if may_differ(tensor.shape, shape) else value

    def _write(self, g: Graph, tensor: TensorView, value: ir.Value) -> None:
        tensor = self._tensors[tensor.index]
        g.write(tensor, g.reshape(value, tensor.shape))

    def _joined(self, g: Graph, joined: Joined, steps: ir.Value) -> ir.Value:
        """The outputs that an operator joins, in its order."""
        count, batch, units = self._chain.states.shape
        if list(joined.places) != list(range(count)):
            steps, count = g.op("Gather", steps, g.ints(joined.places), axis=0), len(joined.places)
        if joined.before > 1 and count > 1:
            shape = joined.before, batch * units // joined.before
            sizes = [self._chain.sizes.opened(size) for size in shape]
            steps = g.op("Transpose", g.reshape(steps, (count, *sizes)), perm=[1, 0, 2])
        return steps

    def _sequence(self, g: Graph, source: Source, batch: int) -> ir.Value:
        """A source in all steps, [T, B, K]; the last step first where the node runs so."""
        order = slice(None, None, -1 if self._chain.backward else None)
        if source.places is None:
            shape = 1, batch, source.width
            parts = [self._read(g, tensor, *shape) for tensor in source.tensors[order]]
            return g.op("Concat", *parts, axis=0)
        (whole,), width, places = source.tensors, source.width, source.places[order]
        rows = prod(whole.shape) // width
        if source.times is None:
            return g.op("Gather", self._read(g, whole, rows, width), g.ints(places), axis=0)
        axis, numbers = source.times
        length = rows // places.shape[1]
        lead = (batch, length) if axis else (length, batch)
        value = self._read(g, whole, *lead, width)
        if list(numbers[order]) != list(range(length)):
            value = g.op("Gather", value, g.ints(numbers[order]), axis=axis)
        return g.op("Transpose", value, perm=[1, 0, 2]) if axis else value
