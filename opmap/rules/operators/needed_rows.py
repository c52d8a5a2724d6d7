"""Which rows of its operands an operator reads for some rows of its result.

A row is a place along one axis. Most operators of a transformer compute each token by itself: for
the token of which a network makes its answer they read that token only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.values.constant_slices import constant_slice
from tflite_ort.schema.values.elementwise import BROADCASTING, UNARY
from tflite_ort.schema.values.operators import key_of

View = OperatorView[Any]
Shape = tuple[int, ...]

_TYPES = {
    *(TensorType.FLOAT32, TensorType.BOOL, TensorType.INT8, TensorType.UINT8),
    *(TensorType.INT16, TensorType.INT32, TensorType.INT64),
}
_CUTTING = (Op.SLICE, Op.STRIDED_SLICE)
# Tensors of more runs than this between two shapes are not followed.
_MOST_RUNS = 2**14


@record
class Rows:
    """Places along an axis of a tensor: `count` of them from `first` on, `step` apart."""

    axis: int
    first: int
    step: int
    count: int

    @classmethod
    def of(cls, axis: int, places: npt.NDArray[np.int64]) -> Rows | None:
        """These places, in rising order; None where they are not equally far apart."""
        steps = np.diff(places)
        if not len(places) or (steps != steps[:1]).any():
            return None
        return cls(axis, int(places[0]), int(steps[0]) if steps.size else 1, len(places))

    @property
    def taken(self) -> slice:
        """For numpy, along the axis."""
        return slice(self.first, self.first + self.step * (self.count - 1) + 1, self.step)

    def along(self, axis: int) -> Rows:
        """The same places of another axis."""
        return Rows(axis, self.first, self.step, self.count)

    def shape(self, shape: Shape) -> Shape:
        """That of these rows of a tensor of `shape`."""
        return (*shape[: self.axis], self.count, *shape[self.axis + 1 :])

    def reshaped(self, shape: Shape, other: Shape) -> Rows | None:
        """The same elements of a tensor of `shape` in the shape `other`; None where these are no
        rows there."""
        inner, total = prod(shape[self.axis + 1 :]), prod(shape)
        for axis, size in enumerate(other):
            if size == shape[self.axis] and prod(other[axis + 1 :]) == inner:
                return self.along(axis)
        for axis, size in enumerate(other):
            other_inner = prod(other[axis + 1 :])
            run = gcd(inner, other_inner)
            if size == 1 or total // run > _MOST_RUNS:
                continue
            starts = np.arange(total // run) * run
            places = np.arange(shape[self.axis])[self.taken]
            read = starts[np.isin(starts // inner % shape[self.axis], places)]
            found = np.unique(read // other_inner % size)
            if len(found) < size and len(read) * size == len(found) * len(starts):
                return Rows.of(axis, found)
        return None


# What an operator reads of each input for some rows of its result: those, or None for all; None
# where it needs all for any row.
Rule = Callable[[View, Rows], Sequence[Rows | None] | None]


def rows_needed(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    """What `op` reads of each input for `rows` of its result; of an input it is all where None.
    None where it does not compute rows by themselves."""
    rule = _RULES.get(key_of(op))
    if rule is None or len(op.outputs) != 1:
        return None
    moved = (
        (*op.inputs[:1], *op.outputs) if op.op is Op.FULLY_CONNECTED else (*op.inputs, *op.outputs)
    )
    found = rule(op, rows) if all(map(_can_be_cut, moved)) else None
    return None if found is None else [*found, *(None for _ in op.inputs[len(found) :])]


def _can_be_cut(tensor: TensorView | None) -> bool:
    """Whether rows of a tensor can be cut out; so of one that is left out."""
    if tensor is None:
        return True
    quantization, plain = tensor.quantization, tensor.type in _TYPES and tensor.blocks is None
    whole = tensor.dynamic or tensor.is_variable or 0 in tensor.shape
    return plain and not whole and (quantization is None or not quantization.per_channel)


def _input(op: View, place: int) -> TensorView | None:
    """An input; None where it is left out, as a kernel of a user may allow."""
    return op.inputs[place] if place < len(op.inputs) else None


def _elementwise(op: View, rows: Rows) -> Sequence[Rows | None]:
    return [None if tensor is None else _broadcast(tensor, op.output, rows) for tensor in op.inputs]


def _broadcast(tensor: TensorView, output: TensorView, rows: Rows) -> Rows | None:
    """The rows of an operand that is broadcast to `output`."""
    axis = rows.axis - (output.rank - tensor.rank)
    return rows.along(axis) if axis >= 0 and tensor.shape[axis] > 1 else None


def _fully_connected(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    input, output = _input(op, 0), op.output
    if input is None or rows.axis == output.rank - 1:
        return None
    wide, lead = output.shape[:-1], input.shape[:-1]
    found = rows.reshaped(wide, lead) if prod(wide) == prod(lead) else None
    return None if found is None else [found]


def _batch_matmul(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    x, y = _input(op, 0), _input(op, 1)
    if x is None or y is None:
        return None
    last = op.output.rank - 1
    if rows.axis == last - 1:
        return [rows.along(x.rank - (1 if op.options.adj_x else 2)), None]
    if rows.axis == last:
        return [None, rows.along(y.rank - (2 if op.options.adj_y else 1))]
    return _elementwise(op, rows)


def _along_last(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    """Of operators that compute along the last axis."""
    return None if rows.axis == op.output.rank - 1 else [rows]


def _reduction(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    input, axes = _input(op, 0), _input(op, 1)
    if input is None or axes is None or axes.data is None:
        return None
    reduced = {int(axis) % input.rank for axis in axes.data.ravel()}
    kept = [axis for axis in range(input.rank) if op.options.keep_dims or axis not in reduced]
    axis = kept[rows.axis]
    return None if axis in reduced else [rows.along(axis)]


def _reshape(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    input = _input(op, 0)
    found = None if input is None else rows.reshaped(op.output.shape, input.shape)
    return None if found is None else [found]


def _transpose(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    order = _input(op, 1)
    if order is None or order.data is None:
        return None
    return [rows.along(int(order.data.ravel()[rows.axis]) % op.output.rank)]


def _part(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    """Of a SLICE along other axes."""
    input, begin, size = (_input(op, place) for place in range(3))
    if input is None or begin is None or size is None or begin.data is None or size.data is None:
        return None
    whole = input.shape[rows.axis] == op.output.shape[rows.axis]
    return [rows] if whole else None


def _concatenation(op: View, rows: Rows) -> Sequence[Rows | None] | None:
    rank = op.output.rank
    return None if rows.axis == op.options.axis % rank else [rows] * len(op.inputs)


_RULES: Mapping[Op | str, Rule] = {
    **dict.fromkeys((*BROADCASTING, *UNARY, Op.CAST, Op.DEQUANTIZE, Op.QUANTIZE), _elementwise),
    **dict.fromkeys((Op.SOFTMAX, Op.LOG_SOFTMAX, Op.L2_NORMALIZATION), _along_last),
    **dict.fromkeys((Op.MEAN, Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN), _reduction),
    **dict.fromkeys((Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS), _reshape),
    Op.FULLY_CONNECTED: _fully_connected,
    Op.BATCH_MATMUL: _batch_matmul,
    Op.TRANSPOSE: _transpose,
    Op.CONCATENATION: _concatenation,
    Op.SLICE: _part,
}


def has_rule(op: View) -> bool:
    """Whether `op` may compute rows by themselves."""
    return key_of(op) in _RULES


def rows_cut(op: View) -> Rows | None:
    """The rows of its first input that `op` cuts out, at most half of them, whatever the shape of
    its result; None where it does something else."""
    input = op.inputs[0] if op.inputs else None
    if op.op not in _CUTTING or input is None or input.is_constant or not _can_be_cut(input):
        return None
    region = constant_slice(op)
    if region is None:
        return None
    kept = (range(size)[taken] for size, taken in zip(input.shape, region.slices, strict=True))
    found = [(axis, each) for axis, each in enumerate(kept) if len(each) < input.shape[axis]]
    if len(found) != 1:
        return None
    ((axis, places),) = found
    is_few = 0 < 2 * len(places) <= input.shape[axis]
    return (
        Rows(axis, places.start, places.step, len(places)) if is_few and places.step > 0 else None
    )
