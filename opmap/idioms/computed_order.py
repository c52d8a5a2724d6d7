"""TRANSPOSE by an order of axes that is computed when the graph runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView, Untranslatable


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
