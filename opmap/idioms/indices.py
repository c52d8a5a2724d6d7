"""Checks of indices, and rows that are written at indices.

TFLite refuses an index out of bounds, and ONNX counts negative ones from the end. A constant index
is checked when the graph is built: the operator is refused, and the numpy kernel raises as TFLite
does. For a computed index the graph has nodes that fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.budgets import ENLARGED, LEAST_BYTES
from tflite_ort.schema.values.sizes import is_known, may_differ

# Known numbers, or an int64 tensor [n].
Sizes = Sequence[int] | ir.Value

_ANY = np.iinfo(np.int64).max


def failing(g: Graph, value: ir.Value, wrong: ir.Value) -> ir.Value:
    """`value` (int64) in a graph that fails if `wrong` (bool) is true anywhere.

    The failure is a Gather of element 1 from an array of one element.
    """
    zero = g.op("Gather", g.ints([0]), g.cast(wrong, ir.DataType.INT64))
    return g.op("Add", value, zero)


def with_first(g: Graph, value: ir.Value, sizes: ir.Value, count: int) -> ir.Value:
    """`value` in a graph that fails if its first `count` dimensions are not `sizes`, int64."""
    first = g.op("Shape", value, start=0, end=count)
    first = failing(g, first, g.op("Not", g.op("Equal", first, sizes)))
    shape = g.op("Concat", first, g.op("Shape", value, start=count), axis=0)
    return g.op("Reshape", value, shape, allowzero=1)


def matched(g: Graph, value: ir.Value, like: ir.Value) -> ir.Value:
    """`value` in a graph that fails if its shape is not that of `like`."""
    shape, other = (g.op("Shape", v) for v in (value, like))
    shape = failing(g, shape, g.op("Not", g.op("Equal", shape, other)))
    return g.op("Reshape", value, shape, allowzero=1)


def agreeing(g: Graph, value: ir.Value, sizes: Sequence[int], others: Sequence[int]) -> ir.Value:
    """`value` (int64 [n]) in a graph that fails if the sizes are not the same one by one."""
    for size, other in zip(sizes, others, strict=True):
        if may_differ([size], [other]):
            value = failing(g, value, g.op("Not", g.op("Equal", g.size(size), g.size(other))))
    return value


def sizes_of(g: Graph, listed: TensorView) -> ir.Value:
    """A list of sizes as int64, of any shape; the graph fails if a computed one is negative."""
    if listed.data is not None:
        return g.ints(listed.data)
    value = g.whole(listed)
    return failing(g, value, g.op("Less", value, g.ints(0)))


def rows_at(g: Graph, value: ir.Value, places: ir.Value, type: TensorType) -> ir.Value:
    """The rows of `value` at `places` (int64), which are inside."""
    if type is TensorType.STRING:  # ONNX Runtime's Gather takes one text of each row
        return g.op("GatherND", value, g.op("Unsqueeze", places, g.ints([-1])))
    return g.op("Gather", value, places, axis=0)


def affordable(
    g: Graph, value: ir.Value, sizes: ir.Value, op: OperatorView[Any], result: int = 0
) -> ir.Value:
    """`value` (int64) in a graph that fails if a result of `op` of `sizes` (int64 [n]) takes more
    than the target allows; a size of 0 counts as 1, as in numpy."""
    most, made = g.target.result_bytes, op.outputs[result]
    if most is None or not made.dynamic:
        return value
    known = [each for each in op.present_inputs() if not each.dynamic]
    most += ENLARGED * sum(prod(each.shape) * _counted(each) for each in known)
    limit = g.constant(most / _counted(made), np.float64)
    for each in op.present_inputs():
        if each.dynamic:
            share = ENLARGED * _counted(each) / _counted(made)
            limit = g.op(
                "Add", limit, g.op("Mul", _count(g, g.shape(each.shape)), g.constant(share))
            )
    sizes = g.op("Max", _wide(g, sizes), g.constant(1, np.float64))
    return failing(g, value, g.op("Greater", _count(g, sizes), limit))


def _counted(tensor: TensorView) -> int:
    """The bytes that an element counts of the budget."""
    return max(tensor.dtype.itemsize, LEAST_BYTES)


def _count(g: Graph, sizes: ir.Value) -> ir.Value:
    """The product of `sizes`, which may be beyond 64 bits, as a double."""
    return g.op("ReduceProd", _wide(g, sizes), keepdims=0)


def _wide(g: Graph, sizes: ir.Value) -> ir.Value:
    return sizes if sizes.dtype == ir.DataType.DOUBLE else g.cast(sizes, ir.DataType.DOUBLE)


def bounded(g: Graph, indices: TensorView, *sizes: int) -> ir.Value:
    """Indices (32 or 64 bits) for a Gather, or a GatherND, along axes of `sizes`.

    A negative computed index becomes one that is too large, so that the graph fails.
    """
    data, limits = indices.data, [n if is_known(n) else _ANY for n in sizes]
    if data is not None and ((data < 0) | (data >= np.asarray(limits))).any():
        raise Untranslatable("an index out of bounds")
    value, dtype = g.read(indices, domain=Domain.FILE), indices.dtype
    if indices.type is TensorType.INT16:
        value, dtype = g.cast(value, ir.DataType.INT32), np.dtype(np.int32)
    if data is not None:
        return value
    if g.target.exact_integers and dtype == np.int32:  # two Casts take half the time of the rest
        return g.cast(g.cast(value, ir.DataType.UINT32), ir.DataType.INT64)
    negative = g.op("Less", value, g.constant(0, dtype))
    return g.op("Where", negative, g.constant(np.iinfo(dtype).max, dtype), value)


def product(g: Graph, sizes: Sizes) -> ir.Value:
    """The product of `sizes` as int64 [1]."""
    if isinstance(sizes, ir.Value):
        return g.op("ReduceProd", sizes, keepdims=1)
    return g.ints([prod(sizes)])


def part(g: Graph, sizes: Sizes, first: int, last: int) -> Sizes:
    """sizes[first:last]."""
    if isinstance(sizes, ir.Value):
        return g.op("Slice", sizes, *(g.ints([bound]) for bound in (first, last)))
    return sizes[first:last]


def flat_rows(
    g: Graph, indices: TensorView, count: int, width: int, sizes: Sizes, depth: int
) -> ir.Value:
    """The row numbers, int64 [count], of index tuples [count, width], whose first `depth` numbers
    index axes of `sizes`."""
    if indices.data is not None and not isinstance(sizes, ir.Value):
        return g.constant(_known_rows(indices.data.reshape(count, width)[:, :depth], sizes))
    if not depth:  # each tuple is of the one row there is
        return g.constant(np.zeros(count, np.int64))
    value = g.reshape(g.whole(indices), (count, width))
    if depth < width:
        bounds = (g.ints([bound]) for bound in (0, depth, 1))
        value = g.op("Slice", value, *bounds)
    limits = sizes if isinstance(sizes, ir.Value) else g.ints(sizes)
    below = g.op("Less", value, g.ints(0))
    value = failing(g, value, g.op("Or", below, g.op("GreaterOrEqual", value, limits)))
    if depth == 1:
        return g.reshape(value, (count,))
    value = g.op("Mul", value, _strides(g, sizes, depth))
    return g.op("ReduceSum", value, g.ints([1]), keepdims=0)


def _known_rows(indices: npt.NDArray[Any], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """As `flat_rows`, for constant tuples [count, depth]."""
    tuples = indices.astype(np.int64)
    if ((tuples < 0) | (tuples >= np.asarray(sizes))).any():
        raise Untranslatable("an index out of bounds")
    strides = [prod(sizes[axis + 1 :]) for axis in range(tuples.shape[1])]
    return tuples @ np.asarray(strides, np.int64)


def _strides(g: Graph, sizes: Sizes, depth: int) -> ir.Value:
    """The number of rows between neighbours along each of `depth` axes."""
    if not isinstance(sizes, ir.Value):
        return g.ints([prod(sizes[axis + 1 :]) for axis in range(depth)])
    steps = (product(g, part(g, sizes, axis + 1, depth)) for axis in range(depth))
    return g.op("Concat", *steps, axis=0)


def scattered(
    g: Graph,
    start: ir.Value,
    shape: tuple[Sizes, Sizes],
    rows: ir.Value,
    updates: ir.Value,
    count: int,
    reduction: str = "none",
) -> ir.Value:
    """[R, W] elements `start`, with `updates` [count, W] combined with the rows `rows` [count].

    Updates are applied in order. It is a ScatterElements: in ONNX Runtime's ScatterND threads race
    for a row that occurs twice.

    Args:
        start: a scalar.
        shape: two lists of sizes, whose products are R and W.
    """
    height, width = shape
    if isinstance(height, ir.Value) or isinstance(width, ir.Value):
        sides = [product(g, sizes) for sizes in shape]
        extents = g.op("Concat", *sides, axis=0)
        each = g.op("Concat", g.op("Shape", rows), sides[1], axis=0)
        updates = g.op("Reshape", updates, each, allowzero=1)
    else:
        extents = g.ints((prod(height), prod(width)))
        if is_known(count):
            updates, each = g.reshape(updates, (count, prod(width))), g.ints((count, prod(width)))
        else:  # of the rows: there are not as many updates for sure
            each = g.op("Concat", g.op("Shape", rows), g.ints([prod(width)]), axis=0)
            updates = g.op("Reshape", updates, each, allowzero=1)
    base = g.op("Expand", start, extents)
    places = g.op("Expand", g.op("Unsqueeze", rows, g.ints([1])), each)
    return g.op("ScatterElements", base, places, updates, axis=0, reduction=reduction)
