"""Whether a model whose inputs were resized to a batch still has a row for each sample.

A resize changes the shapes of inputs and no operator. The results are those of a batch where every
operator works row by row; where one does not, the samples run into each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.base.warned import warn_caller
from tflite_ort.batching.graph import BatchedGraph, batch_shape
from tflite_ort.batching.parts import Parts
from tflite_ort.batching.registry import RULES
from tflite_ort.batching.samples import has_one_sample
from tflite_ort.schema import (
    BatchWarning,
    Model,
    ModelError,
    Op,
    OperatorView,
    Specialized,
    TensorView,
    Unbatchable,
)
from tflite_ort.schema.values.operators import key_of
from tflite_ort.schema.values.sizes import is_known, may_differ

Shape = tuple[int, ...]
# The elements keep their order, whatever the shape.
_IN_ORDER = frozenset({Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS})


def warn_of_regrouping(
    model: Model,
    graph: Specialized,
    shapes: Mapping[int, Shape],
    specialize: Callable[[Mapping[int, Shape]], Specialized],
) -> bool:
    """Warn if `graph`, a subgraph of `model` for these `shapes`, is resized to a batch whose
    outputs are not known to have a row for each sample; whether it is."""
    samples = batch_of_resize(model, graph.subgraph, shapes)
    names: list[str] = []
    if samples:
        try:
            names = regrouped(model, graph, specialize(samples), shapes)
        except ModelError:  # one sample alone is too small for the network
            names = [graph.tensors[index].name for index in graph.outputs]
    if names:
        text = (
            f"inputs were resized to a batch, and {', '.join(map(repr, names))} may not have a row "
            "for each sample: a resize changes shapes and no operator. Interpreter(batch=...) runs "
            "a batch."
        )
        warn_caller(text, BatchWarning)
    return bool(names)


def batch_of_resize(model: Model, subgraph: int, shapes: Mapping[int, Shape]) -> dict[int, Shape]:
    """The shapes of one sample, if `shapes` put several in the place of one; empty if not."""
    graph, samples, sizes = model.subgraphs[subgraph], dict(shapes), list[int]()
    for index, shape in shapes.items():
        tensor = graph.tensors[index]
        one = has_one_sample(model, subgraph, index)
        if one and len(shape) == len(tensor.shape) and shape[0] > 1:
            samples[index] = (1, *shape[1:])
            sizes += [shape[0]] if index in graph.inputs else []
    return samples if len(set(sizes)) == 1 else {}


def regrouped(
    model: Model, graph: Specialized, sample: Specialized, shapes: Mapping[int, Shape]
) -> list[str]:
    """The names of the outputs of a resized `graph` that are not known to have a row for each
    sample.

    Args:
        sample: the same subgraph for one sample.
        shapes: of the resized inputs.
    """
    changed = [
        i for i in sample.inputs if i in shapes and may_differ(shapes[i], sample.tensors[i].shape)
    ]
    size = shapes[changed[0]][0]
    probe = BatchedGraph(Parts(model), sample, size)
    for index in sample.inputs:
        tensor = sample.tensors[index]
        if index in changed:
            probe.result_rows(tensor)
        else:
            probe.result_same(tensor)
    for tensor in sample.tensors[: len(probe.source.tensors)]:
        if tensor.is_variable:
            probe.take_variable(tensor)
    rows = _Rows(probe, graph.tensors, set(sample.inputs), set(sample.inputs))
    for op in sample.operators:
        rows.follow(op)
    outputs = (sample.tensors[index] for index in sample.outputs)
    return [out.name for out in outputs if not rows.is_grouped(out, size)]


@record
class _Rows:
    """What is known of the tensors of a resized subgraph.

    Args:
        probe: the same operators over a batch.
        resized: the tensors as they are.
        in_rows: those that are the rows of the samples, or the same for all of them.
        in_order: those that have the elements of the samples one after the other.
    """

    probe: BatchedGraph
    resized: Sequence[TensorView]
    in_rows: set[int] = field(default_factory=set)
    in_order: set[int] = field(default_factory=set)

    def follow(self, op: OperatorView[Any]) -> None:
        """Note what is known of the results of `op`."""
        read = [t for t in op.present_inputs() if not t.is_constant]
        if any(t.index >= len(self.probe.source.tensors) for t in read):
            return self._unknown(op)
        self.in_rows.update(t.index for t in op.variables() if self._has_row_shape(t))
        if not any(map(self.probe.is_batched, read)):
            if all(t.index in self.in_rows for t in read):
                self._note_same(op)
            return None
        if op.op in _IN_ORDER:
            return self._keep_order(op)
        if all(t.index in self.in_rows for t in read) and self._is_row_by_row(op):
            return self._note(op)
        return self._unknown(op)

    def _note_same(self, op: OperatorView[Any]) -> None:
        for out in op.outputs:
            if not may_differ(self.resized[out.index].shape, out.shape):
                self.in_rows.add(out.index)
                self.in_order.add(out.index)

    def _note(self, op: OperatorView[Any]) -> None:
        for out in op.outputs:
            if self._has_row_shape(out):
                self.in_rows.add(out.index)
                self.in_order.add(out.index)

    def _has_row_shape(self, out: TensorView) -> bool:
        if not out.rank or not is_known(*out.shape):
            return False
        return not may_differ(self.resized[out.index].shape, self.probe.rows_shape(out.shape))

    def _keep_order(self, op: OperatorView[Any]) -> None:
        source, out = op.present_inputs()[0], op.output
        if self._is_row_by_row(op) and source.index in self.in_order:
            self.in_order.add(out.index)
            if self._has_row_shape(out):
                self.probe.rows(out)
                self.in_rows.add(out.index)

    def _is_row_by_row(self, op: OperatorView[Any]) -> bool:
        rule = RULES.get(key_of(op))
        try:
            if rule is None:
                raise Unbatchable("it has no rule")
            rule(op, self.probe)
        except Unbatchable:
            self._unknown(op)
            return False
        return op.op in _IN_ORDER or all(map(self.probe.has_rows, op.outputs))

    def _unknown(self, op: OperatorView[Any]) -> None:
        self.probe.forget(op.outputs)
        for out in op.outputs:
            self.probe.result(out)

    def is_grouped(self, out: TensorView, size: int) -> bool:
        """Whether an output has a row for each sample."""
        if not self.probe.is_batched(out):
            return not may_differ(self.resized[out.index].shape, out.shape)
        shape = self.resized[out.index].shape
        return out.index in self.in_rows and not may_differ(shape, batch_shape(out.shape, size))
