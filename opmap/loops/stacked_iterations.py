"""Tensors of the body of WHILE that are computed for all iterations at once.

The trip count is T, which an input may tell. The sequence of a tensor of the body is the stack of
its values in all iterations: [T, *shape].
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record, replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, translate_inside
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Op, OperatorView, Specialized, TensorView, Untranslatable
from tflite_ort.schema.loops.induction_variables import InductionVariable
from tflite_ort.schema.loops.loop_rows import Rows, rows_read
from tflite_ort.schema.loops.trip_count import Counted
from tflite_ort.schema.shapes import output_shapes
from tflite_ort.schema.values.sizes import (
    has_roots,
    is_known,
    may_differ,
    multiple,
    same_elements,
)

View = OperatorView[Any]

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
# These work along the last axis of their first input; the other axes may be any.
_ALONG_LAST = frozenset({Op.FULLY_CONNECTED, Op.SOFTMAX, Op.LOG_SOFTMAX})

# The results of these do not depend on their inputs alone.
_IMPURE = frozenset({Op.CUSTOM, Op.MULTINOMIAL, Op.RANDOM_STANDARD_NORMAL, Op.RANDOM_UNIFORM})


@record(frozen=False)
class Sequences:
    """The tensors of the body of WHILE whose values in all iterations are known.

    Args:
        g: the graph of the caller.
        fixed: the forms of tensors that are the same in every iteration, by index in the body.
        count: T as an int64 scalar, where an input tells it.
        values: sequences [T, *shape] that are computed, by index in the body.
    """

    g: Graph
    body: Specialized
    loop: Counted
    fixed: dict[int, Forms]
    count: ir.Value | None = None
    values: dict[int, ir.Value] = field(default_factory=dict)
    # By index in the body, the values in the last iteration that are computed apart.
    _last: dict[int, ir.Value] = field(default_factory=dict)
    # By index in the body: the tensor of the previous iteration, and the value in the first one.
    _previous: dict[int, tuple[int, ir.Value]] = field(default_factory=dict)

    def __contains__(self, tensor: TensorView) -> bool:
        index = tensor.index
        return index in self.values or index in self._previous or index in self.loop.inductions

    def is_fixed(self, tensor: TensorView) -> bool:
        """Whether `tensor` has the same value in every iteration."""
        return tensor.is_constant or tensor.index in self.fixed

    def keeps_shape(self, tensor: TensorView) -> bool:
        """Whether `tensor` has one shape in all iterations: its unknown sizes are those of what the
        body is given, such as a batch."""
        if not tensor.dynamic:
            return True
        given = (self.body.tensors[index] for index in self.body.inputs)
        return tensor.ranked and any(has_roots(tensor.shape, each.shape) for each in given)

    def value(self, tensor: TensorView) -> ir.Value:
        """The sequence [T, *shape] of `tensor`, which must be one of these."""
        index = tensor.index
        if index in self.values:
            return self.values[index]
        if index in self._previous:
            result, initial = self._previous[index]
            self.values[index] = self._delayed(tensor, self.values[result], initial)
        else:
            self.values[index] = self.numbers(self.loop.inductions[index], tensor.dtype)
        return self.values[index]

    def numbers(self, induction: InductionVariable, dtype: npt.DTypeLike = np.int64) -> ir.Value:
        """The integers [T, *shape] of all iterations."""
        g, count = self.g, self.loop.trip_count
        if self.count is None:
            return g.constant(induction.all(count), dtype)
        times = g.op("Range", g.ints(0), self.count, g.ints(1))
        if induction.first.ndim:
            times = g.reshape(times, (count, *[1] * induction.first.ndim))
        growth = g.op("Mul", times, g.constant(induction.step))
        values = g.op("Add", growth, g.constant(induction.first))
        return values if dtype == np.int64 else g.cast(values, np.dtype(dtype))

    def delay(self, argument: TensorView, result: TensorView, initial: ir.Value) -> None:
        """Let `argument` be `result` of the previous iteration, and `initial` in the first one."""
        self._previous[argument.index] = (result.index, initial)

    def last(self, tensor: TensorView) -> ir.Value:
        """The value of `tensor` in the last iteration."""
        if tensor.index in self._last:
            return self._last[tensor.index]
        return self.g.op("Gather", self.value(tensor), self.g.ints(-1), axis=0)

    def compute(self, op: View) -> bool:
        """Compute the outputs of `op` for all iterations at once, and return True, if possible."""
        inputs = op.present_inputs()
        if op.bodies or op.op in _IMPURE or any(tensor.is_variable for tensor in inputs):
            return False
        if all(map(self.is_fixed, inputs)):
            self._compute_once(op)
            return True
        tensors = (*inputs, *op.outputs)
        if any(not self.keeps_shape(tensor) or _by_channel(tensor) for tensor in tensors):
            return False
        if not all(self.is_fixed(tensor) or tensor in self for tensor in inputs):
            return False
        return self._read_rows(op) or self._reshape(op) or self._spread(op)

    def _compute_once(self, op: View) -> None:
        """The outputs of `op`, which are the same in every iteration."""
        inner = self.inside()
        translate_inside(self.g, op, inner)
        for out in op.outputs:
            self.fixed[out.index] = inner.forms_as(out, out)

    def inside(self) -> Graph:
        """A graph for the tensors of the body, in which the fixed ones have their forms."""
        inner = self.g.of_subgraph()
        for index, forms in self.fixed.items():
            inner.take(self.body.tensors[index], forms)
        return inner

    def _read_rows(self, op: View) -> bool:
        rows = rows_read(op, self.loop)
        source = op.present_inputs()[0]
        if rows is None or not self.is_fixed(source):
            return False
        g, count, size = self.g, self.loop.trip_count, source.shape[0]
        whole = self.inside().read(source, domain=domain_of(source))
        if self.count is not None:
            return self._read_first_rows(op, whole, rows)
        end = rows.first + count * rows.step
        if rows.step == 0:
            whole = g.op("Gather", whole, self.g.ints([rows.first] * count), axis=0)
        elif (rows.first, rows.step, count) != (0, 1, size):
            bounds = ([rows.first], [end if end >= 0 else -size - 1], [0], [rows.step])
            whole = g.op("Slice", whole, *map(self.g.ints, bounds))
        self._set(op.output, whole, (count, *source.shape[1:]))
        return True

    def _read_first_rows(self, op: View, whole: ir.Value, rows: Rows) -> bool:
        """The rows of as many iterations as an input tells."""
        if rows.step < 1 or self.count is None:
            return False
        g, source = self.g, op.present_inputs()[0]
        if not may_differ(source.shape[:1], (self.loop.trip_count,)):
            self._set(op.output, whole, source.shape)
            return True
        end = g.reshape(self.count, (1,))
        if rows.step != 1:
            end = g.op("Mul", end, g.ints(rows.step))
        if rows.first:
            end = g.op("Add", end, g.ints(rows.first))
        starts, axes, steps = (g.ints([number]) for number in (rows.first, 0, rows.step))
        self._set(
            op.output,
            g.op("Slice", whole, starts, end, axes, steps),
            (self.loop.trip_count, *source.shape[1:]),
        )
        return True

    def _reshape(self, op: View) -> bool:
        source = op.present_inputs()[0]
        if op.op not in RESHAPES or source not in self:
            return False
        self._set(op.output, self.value(source), (self.loop.trip_count, *source.shape))
        if source.index in self._last:
            last, shape = self._last[source.index], op.output.shape
            is_same = not may_differ(source.shape, shape)
            self._last[op.output.index] = last if is_same else self.g.reshape(last, shape)
        return True

    def _spread(self, op: View) -> bool:
        """Translate `op` once, on inputs with the iterations along their first axis."""
        inputs = self._spread_inputs(op)
        if inputs is None:
            return False
        spread = replace(op, inputs=inputs)
        shapes = output_shapes(spread)
        count = self.loop.trip_count
        if shapes is None or not all(
            same_elements((count, *out.shape), shape)
            for out, shape in zip(op.outputs, shapes, strict=True)
        ):
            return False
        outputs = zip(op.outputs, shapes, strict=True)
        spread = replace(spread, outputs=tuple(replace(t, shape=s) for t, s in outputs))
        inner = self._inside_with(op.inputs, inputs)
        try:
            self.g.translate(spread, inner)
        except Untranslatable:  # with one more axis
            return False
        for out, whole in zip(op.outputs, spread.outputs, strict=True):
            self._set(out, inner.read(whole, domain=domain_of(whole)), whole.shape)
        return True

    def _inside_with(
        self, inputs: Sequence[TensorView | None], spread: Sequence[TensorView | None]
    ) -> Graph:
        """As `inside`, where each of `spread` has the values of an input in all iterations."""
        inner = self.inside()
        for before, after in zip(inputs, spread, strict=True):
            if before is not None and after is not None and after is not before:
                value = self.value(before)
                if may_differ(after.shape, (self.loop.trip_count, *before.shape)):
                    value = self.g.reshape(value, after.shape)
                inner.take(after, {inner.form(after, Layout.LAST, domain_of(after)): value})
        return inner

    def _spread_inputs(self, op: View) -> tuple[TensorView | None, ...] | None:
        """The inputs of `op` with the iterations as a new first axis of the sequences.

        None where `op` would compute something else on these.
        """
        rank, count = op.output.rank, self.loop.trip_count
        spread = [t is not None and not self.is_fixed(t) for t in op.inputs]
        if op.op is Op.SPLIT and spread == [False, True]:
            axis, source = op.present_inputs()
            if axis.data is None or axis.data.item() % source.rank == 0:
                return None
            first, *others = source.shape
            if not is_known(count) and not is_known(first):
                return None
            rows = multiple(count, first) if is_known(first) else multiple(first, count)
            return axis, replace(source, shape=(rows, *others))
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
        """Let `value`, whose shape is `shape`, be the sequence of `tensor`."""
        wanted = (self.loop.trip_count, *tensor.shape)
        self.set(tensor, self.g.reshape(value, wanted) if may_differ(shape, wanted) else value)

    def set(self, tensor: TensorView, value: ir.Value, last: ir.Value | None = None) -> None:
        """Let `value`, [T, *shape], be the sequence of `tensor`; `last` is the end of it."""
        self.values[tensor.index] = value
        if last is not None:
            self._last[tensor.index] = last

    def _delayed(self, tensor: TensorView, later: ir.Value, initial: ir.Value) -> ir.Value:
        """The sequence `later` one iteration later, after `initial`."""
        first = self.g.reshape(initial, (1, *tensor.shape))
        bounds = ([0], [-1], [0])
        earlier = self.g.op("Slice", later, *map(self.g.ints, bounds))
        return self.g.op("Concat", first, earlier, axis=0)


def domain_of(tensor: TensorView) -> Domain:
    """The domain of the sequence of `tensor`."""
    return Domain.STORED if tensor.is_quantized else Domain.REAL


def _by_channel(tensor: TensorView) -> bool:
    """Whether `tensor` has scales along an axis, whose number a sequence would change."""
    quantization = None if tensor.is_constant else tensor.quantization
    return quantization is not None and quantization.per_channel


def needed(
    operators: Sequence[View], targets: Sequence[TensorView], known: Container[int]
) -> list[View]:
    """The operators that compute `targets` from `known`, in order."""
    wanted = {tensor.index for tensor in targets if tensor.index not in known}
    found: list[View] = []
    for op in reversed(operators):
        if any(out.index in wanted for out in op.outputs):
            found.append(op)
            wanted.update(t.index for t in op.present_inputs() if t.index not in known)
    return found[::-1]
