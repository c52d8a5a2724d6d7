"""What the iterations of a loop compute without one another, for all of them at once.

T iterations. A sequence is a tensor of the body with the iterations in front: [T, *shape].
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, translate_inside
from tflite_ort.schema import Op, OperatorView, Specialized, TensorView, Untranslatable
from tflite_ort.schema.loops.loop_rows import rows_read
from tflite_ort.schema.loops.trip_count import Counted
from tflite_ort.schema.shapes import output_shapes

View = OperatorView[Any]

_MOVING = frozenset({Op.RESHAPE, Op.EXPAND_DIMS, Op.SQUEEZE})
# Element by element, with the axes of their inputs aligned at the last one.
_ELEMENTWISE = frozenset(
    {
        *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAXIMUM, Op.MINIMUM, Op.SQUARED_DIFFERENCE),
        *(Op.ABS, Op.NEG, Op.EXP, Op.LOG, Op.SQRT, Op.RSQRT, Op.SQUARE, Op.SIN, Op.COS),
        *(Op.FLOOR, Op.CEIL, Op.ROUND, Op.CAST, Op.QUANTIZE, Op.DEQUANTIZE),
        *(Op.LOGISTIC, Op.TANH, Op.RELU, Op.RELU6, Op.RELU_N1_TO_1, Op.RELU_0_TO_1, Op.ELU),
        *(Op.LEAKY_RELU, Op.HARD_SWISH, Op.GELU),
        *(Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL),
        *(Op.LOGICAL_AND, Op.LOGICAL_OR, Op.LOGICAL_NOT, Op.SELECT_V2),
    }
)
# Along the last axis of their first input, whatever stands before it.
_ALONG_LAST = frozenset({Op.FULLY_CONNECTED, Op.SOFTMAX, Op.LOG_SOFTMAX})


# What they give is not told by their inputs alone.
_IMPURE = frozenset({Op.CUSTOM, Op.MULTINOMIAL, Op.RANDOM_STANDARD_NORMAL, Op.RANDOM_UNIFORM})


@dataclass(slots=True)
class Sequences:
    """The tensors of a loop's body that are known before it runs.

    Args:
        g: where the loop stands.
        fixed: by tensor of the body, the forms of those that no iteration changes.
        values: by tensor of the body, those that are there for all iterations.
    """

    g: Graph
    body: Specialized
    loop: Counted
    fixed: dict[int, Forms]
    values: dict[int, ir.Value] = field(default_factory=dict)
    _late: dict[int, tuple[int, ir.Value]] = field(default_factory=dict)

    def __contains__(self, tensor: TensorView) -> bool:
        index = tensor.index
        return index in self.values or index in self._late or index in self.loop.courses

    def is_fixed(self, tensor: TensorView) -> bool:
        return tensor.is_constant or tensor.index in self.fixed

    def value(self, tensor: TensorView) -> ir.Value:
        """The sequence of `tensor`, which is one."""
        index, count = tensor.index, self.loop.count
        if index in self.values:
            return self.values[index]
        if index in self._late:
            made, initial = self._late[index]
            self.values[index] = self._delayed(tensor, self.values[made], initial)
        else:
            numbers = self.loop.courses[index].all(count)
            self.values[index] = self.g.constant(numbers.astype(tensor.dtype))
        return self.values[index]

    def follow(self, taken: TensorView, made: TensorView, initial: ir.Value) -> None:
        """Let `taken` be what the iteration before has `made`, first `initial`."""
        self._late[taken.index] = (made.index, initial)

    def last(self, tensor: TensorView) -> ir.Value:
        """What the last iteration has for `tensor`."""
        return self.g.op("Gather", self.value(tensor), self._int(self.loop.count - 1), axis=0)

    def make(self, op: View) -> bool:
        """Make the results of `op`, of the body, known if they are; says whether they are."""
        inputs = op.present_inputs()
        if op.bodies or op.op in _IMPURE or any(tensor.is_variable for tensor in inputs):
            return False
        if all(map(self.is_fixed, inputs)):
            self._make_once(op)
            return True
        if any(tensor.dynamic or _by_channel(tensor) for tensor in (*inputs, *op.outputs)):
            return False
        if not all(self.is_fixed(tensor) or tensor in self for tensor in inputs):
            return False
        return self._read_rows(op) or self._reshape(op) or self._spread(op)

    def _make_once(self, op: View) -> None:
        inner = self.inside()
        translate_inside(self.g, op, inner)
        for out in op.outputs:
            self.fixed[out.index] = inner.forms_as(out, out)

    def inside(self) -> Graph:
        """A graph for the tensors of the body, which has those that no iteration changes."""
        inner = self.g.of_subgraph()
        for index, forms in self.fixed.items():
            inner.take(self.body.tensors[index], forms)
        return inner

    def _read_rows(self, op: View) -> bool:
        rows = rows_read(op, self.loop)
        source = op.present_inputs()[0]
        if rows is None or not self.is_fixed(source):
            return False
        g, count, size = self.g, self.loop.count, source.shape[0]
        whole = self.inside().read(source, domain=domain_of(source))
        end = rows.first + count * rows.step
        if rows.step == 0:
            whole = g.op("Gather", whole, self._int([rows.first] * count), axis=0)
        elif (rows.first, rows.step, count) != (0, 1, size):
            bounds = ([rows.first], [end if end >= 0 else -size - 1], [0], [rows.step])
            whole = g.op("Slice", whole, *map(self._int, bounds))
        self._set(op.output, whole, (count, *source.shape[1:]))
        return True

    def _reshape(self, op: View) -> bool:
        source = op.present_inputs()[0]
        if op.op not in _MOVING or source not in self:
            return False
        self._set(op.output, self.value(source), (self.loop.count, *source.shape))
        return True

    def _spread(self, op: View) -> bool:
        """Translate `op` once, for inputs that have all iterations along their first axis."""
        inputs = self._spread_inputs(op)
        if inputs is None:
            return False
        spread = replace(op, inputs=inputs)
        shapes = output_shapes(spread)
        count = self.loop.count
        if shapes is None or [count * prod(out.shape) for out in op.outputs] != [
            *map(prod, shapes)
        ]:
            return False
        outputs = zip(op.outputs, shapes, strict=True)
        spread = replace(spread, outputs=tuple(replace(t, shape=s) for t, s in outputs))
        inner = self.inside()
        for before, after in zip(op.inputs, inputs, strict=True):
            if before is not None and after is not None and after is not before:
                value = self.value(before)
                if after.shape != (count, *before.shape):
                    value = self.g.reshape(value, after.shape)
                inner.take(after, {inner.form(after, Layout.LAST, domain_of(after)): value})
        try:
            self.g.translate(spread, inner)
        except Untranslatable:  # with one more axis
            return False
        for out, whole in zip(op.outputs, spread.outputs, strict=True):
            self._set(out, inner.read(whole, domain=domain_of(whole)), whole.shape)
        return True

    def _spread_inputs(self, op: View) -> tuple[TensorView | None, ...] | None:
        """The inputs of `op` with the iterations in front of sequences; None if it has not the
        same meaning then."""
        rank, count = op.output.rank, self.loop.count
        spread = [t is not None and not self.is_fixed(t) for t in op.inputs]
        if op.op is Op.SPLIT and spread == [False, True]:
            axis, source = op.present_inputs()
            if axis.data is None or axis.data.item() % source.rank == 0:
                return None
            merged = (count * source.shape[0], *source.shape[1:])
            return axis, replace(source, shape=merged)
        if op.op in _ALONG_LAST:
            if spread[0] and not any(spread[1:]) and op.inputs[0] and op.inputs[0].rank:
                return (replace(op.inputs[0], shape=(count, *op.inputs[0].shape)), *op.inputs[1:])
            return None
        if op.op not in _ELEMENTWISE:
            return None
        return tuple(
            replace(t, shape=(count, *[1] * (rank - t.rank), *t.shape)) if t and is_spread else t
            for t, is_spread in zip(op.inputs, spread, strict=True)
        )

    def _set(self, tensor: TensorView, value: ir.Value, shape: Sequence[int]) -> None:
        """Let `value`, which has `shape`, be the sequence of `tensor`."""
        wanted = (self.loop.count, *tensor.shape)
        self.set(tensor, value if tuple(shape) == wanted else self.g.reshape(value, wanted))

    def set(self, tensor: TensorView, value: ir.Value) -> None:
        """Let `value`, [T, *shape], be the sequence of `tensor`."""
        self.values[tensor.index] = value

    def _delayed(self, tensor: TensorView, later: ir.Value, initial: ir.Value) -> ir.Value:
        first = self.g.reshape(initial, (1, *tensor.shape))
        earlier = self.g.op("Slice", later, *map(self._int, ([0], [self.loop.count - 1], [0])))
        return self.g.op("Concat", first, earlier, axis=0)

    def _int(self, numbers: int | Sequence[int]) -> ir.Value:
        return self.g.constant(numbers, np.int64)


def domain_of(tensor: TensorView) -> Domain:
    """In which a sequence of `tensor` stands."""
    return Domain.STORED if tensor.is_quantized else Domain.REAL


def _by_channel(tensor: TensorView) -> bool:
    """Whether it has scales along an axis, which is another one in a sequence."""
    quantization = None if tensor.is_constant else tensor.quantization
    return quantization is not None and quantization.per_channel


def needed(
    operators: Sequence[View], targets: Sequence[TensorView], known: Container[int]
) -> list[View]:
    """Those of `operators` that make `targets` of what is `known`, in order."""
    wanted = {tensor.index for tensor in targets if tensor.index not in known}
    found: list[View] = []
    for op in reversed(operators):
        if any(out.index in wanted for out in op.outputs):
            found.append(op)
            wanted.update(t.index for t in op.present_inputs() if t.index not in known)
    return found[::-1]
