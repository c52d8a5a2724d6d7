"""Axes that are computed when the graph runs, of tensors whose rank is known."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView, Untranslatable


def counted_axes(g: Graph, axes: TensorView, rank: int) -> ir.Value:
    """The axes as int64 [n], none negative; the graph fails on an axis out of range."""
    value = g.cast(g.reshape(g.read(axes), (-1,)), ir.DataType.INT64)
    whole = g.ints(rank)
    above = g.op("GreaterOrEqual", value, whole)
    value = failing(g, value, g.op("Or", above, g.op("Less", value, g.op("Neg", whole))))
    return g.op("Mod", g.op("Add", value, whole), whole)


def neighbouring_axes(g: Graph, axes: TensorView, rank: int) -> ir.Value:
    """`counted_axes` in ascending order; the graph fails unless they are consecutive."""
    count, value = prod(axes.shape), counted_axes(g, axes, rank)
    if count == 1:
        return value
    sizes = g.ints([count])
    value, _ = g.op_multi("TopK", value, sizes, outputs=2, largest=0)
    first = g.op("Slice", value, g.ints([0]), g.ints([1]))
    steps = g.op("Sub", value, g.op("Add", first, g.ints(np.arange(count))))
    return failing(g, value, g.cast(steps, ir.DataType.BOOL))


def distinct_axes(g: Graph, axes: TensorView, rank: int) -> ir.Value:
    """`counted_axes`; the graph fails if two are equal."""
    value = counted_axes(g, axes, rank)
    if prod(axes.shape) == 1:
        return value
    times = g.cast(times_named(g, value, rank), ir.DataType.INT32)
    most = g.op("ReduceMax", times, keepdims=0)
    return failing(g, value, g.op("Greater", most, g.constant(1, np.int32)))


def times_named(g: Graph, axes: ir.Value, rank: int) -> ir.Value:
    """How often `axes` has every one of `rank` axes."""
    column = g.op("Unsqueeze", axes, g.ints([1]))
    chosen = g.op("Equal", column, g.ints(np.arange(rank)))
    return g.op("ReduceSum", g.cast(chosen, ir.DataType.INT64), g.ints([0]), keepdims=0)


@record
class ComputedAxis:
    """One computed axis of `shape`. With the axes before it and after it joined, it is axis 1 of 3.

    Args:
        place: the axis, int64 [1].
        shape: int64 [rank].
    """

    g: Graph
    place: ir.Value
    shape: ir.Value
    rank: int

    @classmethod
    def of(cls, g: Graph, axis: TensorView, shape: Sequence[int]) -> ComputedAxis:
        """The axis that `axis`, a tensor of one integer, names among those of `shape`."""
        return cls(g, counted_axes(g, axis, len(shape)), g.shape(shape), len(shape))

    @property
    def size(self) -> ir.Value:
        """The size of the axis, int64 [1]."""
        return self.g.op("Gather", self.shape, self.place)

    def folded(self, value: ir.Value) -> ir.Value:
        """`value` reshaped to three axes, of which this one is in the middle."""
        g, axes, one = self.g, self._axes(), self.g.ints(1)
        before, behind = (
            g.op("ReduceProd", g.op("Where", g.op(side, axes, self.place), self.shape, one))
            for side in ("Less", "Greater")
        )
        sides = g.op("Concat", before, self.size, behind, axis=0)
        return g.op("Reshape", value, sides, allowzero=1)

    def resized(self, value: ir.Value, size: ir.Value) -> ir.Value:
        """A folded `value` with all its axes again, where this one has `size` [1] now."""
        g = self.g
        shape = g.op("Where", g.op("Equal", self._axes(), self.place), size, self.shape)
        return g.op("Reshape", value, shape, allowzero=1)

    def dropped(self, value: ir.Value) -> ir.Value:
        """`value`, of the two joined axes, with all axes again but this one."""
        g = self.g
        others = g.op("Not", g.op("Equal", self._axes(), self.place))
        shape = g.op("Compress", self.shape, others)
        return g.op("Reshape", value, shape, allowzero=1)

    def _axes(self) -> ir.Value:
        return self.g.ints(np.arange(self.rank))


def transpose_as_computed(op: OperatorView[Any], g: Graph) -> None:
    """Gather from the flat elements, since Transpose takes no computed order.

    The index of element [i, j, ...] is i times the stride of its first axis in the input, plus j
    times that of its second axis, and so on.
    """
    input, rank = op["input"], op["input"].rank
    if not rank > 0:
        raise Untranslatable("a scalar has no axes")
    domain, zero = moved_domain(input, op.output), g.ints(0)
    one = g.ints(1)
    order = _permutation(op["perm"], g, rank)
    sizes = g.shape(input.shape)
    strides = [g.op("ReduceProd", _after(g, sizes, axis), keepdims=1) for axis in range(rank)]
    shape = g.op("Gather", sizes, order)
    steps = g.op("Gather", g.op("Concat", *strides, axis=0), order)
    places = zero
    for axis in range(rank):
        place = g.ints(axis)
        counted = g.op("Range", zero, g.op("Gather", shape, place), one)
        along = g.op("Mul", counted, g.op("Gather", steps, place))
        places = g.op("Add", places, g.reshape(along, (-1, *(1,) * (rank - 1 - axis))))
    row = g.reshape(g.read(input, domain=domain), (-1,))
    g.write(op.output, g.op("Gather", row, places), domain=domain)


def _after(g: Graph, sizes: ir.Value, axis: int) -> ir.Value:
    bounds = (g.ints([bound]) for bound in (axis + 1, np.iinfo(np.int64).max))
    return g.op("Slice", sizes, *bounds)


def _permutation(perm: TensorView, g: Graph, rank: int) -> ir.Value:
    """A computed order of `rank` axes, none negative; the graph fails if it is no permutation."""
    order, whole = g.whole(perm), g.ints(rank)
    negative = g.op("Less", order, g.ints(0))
    order = g.op("Where", negative, g.op("Add", order, whole), order)
    axes = g.ints(np.arange(rank))
    sorted_, _ = g.op_multi("TopK", order, g.ints([rank]), outputs=2, largest=0)
    return failing(g, order, g.op("Not", g.op("Equal", sorted_, axes)))
