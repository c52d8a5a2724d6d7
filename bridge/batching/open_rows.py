"""A model of one sample whose loops count steps, with its constants for any number of samples.

A WHILE has no batch rule: what its iterations mean is not known from outside. But the operators of
an RNN work on each row alone, and only a few constants of the file say that there is one row: the
first values of states, and the shapes of RESHAPEs. With these open the model takes any number of
rows. Whether it keeps the samples apart then is for `keeps_samples_apart` to prove.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.parts import Parts
from tflite_ort.batching.plain import PlainGraph
from tflite_ort.schema import (
    Op,
    Operator,
    OperatorView,
    ReshapeOptions,
    ShapeOptions,
    Specialized,
    SubGraph,
    TensorType,
    TensorView,
    Unbatchable,
    WhileOptions,
)
from tflite_ort.schema.values.inlining import FlatModel
from tflite_ort.schema.values.sizes import is_known, is_one, known_product

View = OperatorView[Any]


def with_open_rows(model: FlatModel, sample: Specialized, given: Collection[int]) -> FlatModel:
    """The model with its constants for any number of samples.

    Args:
        sample: its first subgraph for one sample.
        given: the inputs of which there is one for each sample.

    Raises:
        Unbatchable: a constant has no axis for the samples.
    """
    parts = Parts(model)
    graph = _OpenRows(parts, sample, set(given), given)
    return FlatModel(parts.made(graph.opened()))


class _OpenRows(PlainGraph):
    """A subgraph whose constants are those of any number of samples.

    Args:
        differing: the tensors that differ between the samples.
        counted: those whose first size is the number of samples.
    """

    def __init__(
        self, parts: Parts, sample: Specialized, differing: set[int], counted: Collection[int]
    ) -> None:
        super().__init__(parts)
        self._sample, self._differing, self._counted = sample, differing, counted
        self._source = parts.model.subgraphs[sample.subgraph]
        self.tensors = list(self._source.tensors)
        self._count: int | None = None
        # By tensor that has an axis for the samples only here, its shape.
        self._kept: dict[int, Sequence[int]] = {}

    def opened(self) -> SubGraph:
        """The subgraph."""
        known = {op.index: op for op in self._sample.operators}
        for index, operator in enumerate(self._source.operators):
            op = known.get(index)
            if op is not None and any(self._differs(tensor) for tensor in op.inputs):
                operator = self._opened(op, operator)
                if op.op not in (Op.SHAPE, Op.RANK):
                    self._differing |= {out.index for out in op.outputs}
            self.operators.append(operator)
        return replace(self._source, tensors=tuple(self.tensors), operators=tuple(self.operators))

    def _differs(self, tensor: TensorView | None) -> bool:
        return tensor is not None and tensor.index in self._differing

    def _opened(self, op: View, operator: Operator) -> Operator:
        if op.op is Op.RESHAPE:
            return self._reshape(op, operator)
        if op.op is Op.WHILE:
            return self._while(op, operator)
        if op.op in (Op.SHAPE, Op.RANK) and self._kept:
            raise Unbatchable("it asks for a shape that has one more axis in a batch")
        return operator

    def _reshape(self, op: View, operator: Operator) -> Operator:
        """A RESHAPE to a shape that has the samples in an axis of their own; a TRANSPOSE where it
        moves that axis past others. One that only drops the axis keeps it: the operators after it
        broadcast, or else the proof fails."""
        out, target = op.output, op.get("shape")
        if not is_known(*out.shape) or (target is not None and not target.is_constant):
            return operator  # it follows the shapes that reach it
        source = self._kept.get(op["input"].index, op["input"].shape)
        before, after = _axis(source), _axis(out.shape)
        if before is None or (after is None and _without(source, before) != [*out.shape]):
            return operator
        if after is None:
            self._kept[out.index], shape = source, [*source]
            shape[before] = -1
        else:
            shape = [*out.shape[:after], -1, *out.shape[after + 1 :]]
        if after is not None and _moves(source[:before], out.shape[:after]):
            if _without(source, before) != _without(out.shape, after):
                return operator
            order = _without(range(len(source)), before)
            given = self.constant([*order[:after], before, *order[after:]])
            code = self.parts.code(Op.TRANSPOSE)
            place = operator.inputs[0]
            return Operator(opcode_index=code, inputs=(place, given), outputs=operator.outputs)
        inputs = operator.inputs[0], self.constant(shape)
        return replace(operator, inputs=inputs, options=ReshapeOptions(tuple(shape)))

    def _while(self, op: View, operator: Operator) -> Operator:
        """A WHILE whose states that differ between the samples begin with a row for each."""
        test, body = op.bodies
        if test.variables or body.variables:
            raise Unbatchable("it calls a subgraph that has variables")
        inputs, places = op.present_inputs(), self._states(op)
        given = {place for place, tensor in enumerate(inputs) if self._differs(tensor)}
        states = [
            self._rows(tensor) if place in places - given else tensor.index
            for place, tensor in enumerate(inputs)
        ]
        differing = {body.inputs[place] for place in places}
        whole = _OpenRows(self.parts, body, differing, ()).opened()
        options = WhileOptions(test.subgraph, self.parts.add_subgraph(whole))
        return replace(operator, inputs=tuple(states), options=options)

    def _states(self, op: View) -> set[int]:
        """The places of the states that differ between the samples in some iteration."""
        body = op.bodies[1]
        found = {place for place, tensor in enumerate(op.inputs) if self._differs(tensor)}
        while True:
            reached = {body.inputs[place] for place in found}
            for inner in body.operators:
                sized = inner.op in (Op.SHAPE, Op.RANK)
                if not sized and any(t.index in reached for t in inner.present_inputs()):
                    reached |= {out.index for out in inner.outputs}
            after = {place for place, index in enumerate(body.outputs) if index in reached}
            if after <= found:
                return found
            found |= after

    def _rows(self, tensor: TensorView) -> int:
        """A tensor that is the same for all samples, once for each."""
        place = _axis(tensor.shape)
        if place is None or not self._counted:
            raise Unbatchable(f"the state {tensor.name!r} has no axis for the samples")
        before, after = self._sizes(tensor, 0, place), self._sizes(tensor, place + 1, tensor.rank)
        sizes = self.concatenated([*before, self._samples(), *after])
        shape = [*tensor.shape[:place], -1, *tensor.shape[place + 1 :]]
        table = replace(self._source.tensors[tensor.index], type=tensor.type)
        out = self.like(table, shape, "rows")
        if tensor.data is None or tensor.dtype != np.float32 or tensor.data.any():
            self.emit(Op.BROADCAST_TO, [tensor.index, sizes], [out])
        else:
            self.emit(Op.FILL, [sizes, self.constant(0, np.float32)], [out])
        return out

    def _sizes(self, tensor: TensorView, first: int, end: int) -> list[int]:
        """The sizes of some axes as a list in a list; nothing for no axes."""
        if first == end:
            return []
        if is_known(*tensor.shape[first:end]):
            return [self.constant(tensor.shape[first:end])]
        whole = self.new(TensorType.INT32, (tensor.rank,), "sizes")
        self.emit(Op.SHAPE, [tensor.index], [whole], ShapeOptions(out_type=TensorType.INT32))
        part = self.new(TensorType.INT32, (end - first,), "sizes")
        bounds = self.constant([first]), self.constant([end - first])
        self.emit(Op.SLICE, [whole, *bounds], [part])
        return [part]

    def _samples(self) -> int:
        """How many samples there are, as an int32 list of one."""
        if self._count is None:
            first = min(self._counted)
            whole = self.new(TensorType.INT32, (len(self.tensors[first].shape),), "sizes")
            self.emit(Op.SHAPE, [first], [whole], ShapeOptions(out_type=TensorType.INT32))
            self._count = self.new(TensorType.INT32, (1,), "count")
            self.emit(Op.SLICE, [whole, self.constant([0]), self.constant([1])], [self._count])
        return self._count


def _axis(shape: Sequence[int]) -> int | None:
    """Which 1 of a shape counts the samples: the last one before the features, as in sequences
    whose first axis is time; None where there is none."""
    found = [axis for axis, size in enumerate(shape[:-1]) if is_one(size)]
    return found[-1] if found else None


def _moves(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether the samples get other axes in front of them."""
    return known_product(before) != known_product(after)


def _without(sizes: Sequence[int], axis: int) -> list[int]:
    return [*sizes[:axis], *sizes[axis + 1 :]]
