"""Reading, writing and combining elements by index: GATHER, SCATTER_ND, segments, TOPK_V2.

Rows of a table: unsorted_segment_sum, unsorted_segment_prod, unsorted_segment_max,
unsorted_segment_min.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import (
    Sizes,
    affordable,
    agreeing,
    bounded,
    failing,
    flat_rows,
    part,
    scattered,
    sizes_of,
    with_first,
)
from tflite_ort.opmap.idioms.movement import moved_domain, picked
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    GatherOptions,
    OneHotOptions,
    Op,
    OperatorView,
    SparseToDenseOptions,
    TensorType,
    TensorView,
    UniqueOptions,
    Untranslatable,
)
from tflite_ort.schema.shapes.gather_scatter import gather_axes, segment_start
from tflite_ort.schema.values.sizes import has_zero, is_known, quotient

_ON_OFF = ("on_value", "off_value")
_LAST = np.iinfo(np.int64).max


@translator(Op.GATHER, versions=(1, 8))
def gather(op: OperatorView[GatherOptions], g: Graph) -> None:
    """Gather; with batch dimensions, GatherND between two Transposes that move `axis` forward."""
    gathered(op, g, moved_domain(op["input"], op.output))


def gathered(op: OperatorView[GatherOptions], g: Graph, domain: Domain) -> None:
    """`gather`, of the input in a domain."""
    input, positions, output = op["input"], op["positions"], op.output
    axis, batch = gather_axes(input.rank, positions.rank, op.options.axis, op.options.batch_dims)
    indices = bounded(g, positions, input.shape[axis])
    # ONNX Runtime's Gather takes one text of each row.
    is_text = input.type is TensorType.STRING and axis < input.rank - 1
    if batch or is_text:
        value = _batched(g, g.read(input, domain=domain), indices, (input, positions), axis, batch)
        g.write(output, value, domain=domain)
        return
    same_rank = positions.rank == 1 and domain is Domain.STORED
    layout = g.layout(input) if same_rank else Layout.LAST
    value = g.read(input, layout=layout, domain=domain)
    if not _takes_all_in_order(positions, input.shape[axis]):
        along, shape = layout.axis(axis, input.rank), layout.order(input.shape)
        value = picked(g, value, shape, indices, along, positions.rank)
    g.write(output, value, layout=layout, domain=domain)


def _takes_all_in_order(positions: TensorView, size: int) -> bool:
    data = positions.data
    if data is None or not is_known(size) or data.shape != (size,):
        return False
    return np.array_equal(data, np.arange(size))


def _batched(
    g: Graph,
    value: ir.Value,
    indices: ir.Value,
    tensors: tuple[TensorView, TensorView],
    axis: int,
    batch: int,
) -> ir.Value:
    """GATHER with batch dimensions B.

    [B..., axis, P..., Q...] at indices [B..., I...] gives [B..., I..., P..., Q...]; then P..., the
    dimensions between the batch and `axis`, move before I....
    """
    rank, picked = tensors[0].rank, tensors[1].rank - batch
    if axis > batch:
        order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, rank)]
        value = g.op("Transpose", value, perm=order)
    if batch and not is_known(*(size for each in tensors for size in each.shape[:batch])):
        sizes = g.op("Shape", value, start=0, end=batch)  # of which GatherND repeats a single one
        indices = with_first(g, indices, sizes, batch)
    tuples = g.op("Unsqueeze", g.cast(indices, ir.DataType.INT64), g.ints([tensors[1].rank]))
    value = g.op("GatherND", value, tuples, batch_dims=batch)
    if axis > batch and picked:
        first = batch + picked
        last = first + axis - batch
        order = [*range(batch), *range(first, last), *range(batch, first)]
        value = g.op("Transpose", value, perm=[*order, *range(last, rank + picked - 1)])
    return value


@translator(Op.GATHER_ND, versions=(1, 6))
def gather_nd(op: OperatorView[Any], g: Graph) -> None:
    """GatherND; Reshape where the tuples are all there are, in order, as those of masks are."""
    params, indices = op["params"], op["indices"]
    domain = moved_domain(params, op.output)
    if indices.shape[-1] == 0:
        raise Untranslatable("index tuples of length 0")
    if _are_all_in_order(indices, params.shape[: indices.shape[-1]]):
        value = g.reshape(g.read(params, domain=domain), op.output.shape)
        g.write(op.output, value, domain=domain)
        return
    places = bounded(g, indices, *params.shape[: indices.shape[-1]])
    tuples = g.cast(places, ir.DataType.INT64)
    g.write(op.output, g.op("GatherND", g.read(params, domain=domain), tuples), domain=domain)


def _are_all_in_order(tuples: TensorView, sizes: Sequence[int]) -> bool:
    """Whether these are the places of all elements of some sizes."""
    if tuples.data is None or not is_known(*sizes):
        return False
    rows = tuples.data.reshape(-1, len(sizes))
    return len(rows) == prod(sizes) and np.array_equal(rows, np.argwhere(np.ones(sizes, bool)))


@translator(Op.SCATTER_ND, versions=(1, 1))
def scatter_nd(op: OperatorView[Any], g: Graph) -> None:
    """ScatterElements (add) into zeros; 8-bit integers and bool are added in int32, then wrap."""
    indices, updates, output = op["indices"], op["updates"], op.output
    depth = indices.shape[-1]
    if has_zero(*indices.shape[:-1], *output.shape):
        raise Untranslatable("no index or no element")
    narrow = updates.dtype.itemsize == 1
    value = g.read(updates, domain=Domain.FILE)
    value = g.cast(value, ir.DataType.INT32) if narrow else value
    start = g.constant(0, np.int32 if narrow else updates.dtype)
    sizes, count = _wanted_sizes(op, g), quotient(indices.shape[:-1])
    shape = (part(g, sizes, 0, depth), part(g, sizes, depth, output.rank))
    rows = flat_rows(g, indices, count, depth, shape[0], depth)
    value = scattered(g, start, shape, rows, value, count, reduction="add")
    value = g.cast(value, ir.DataType[updates.type.name]) if narrow else value
    g.write(output, _of_sizes(g, value, sizes), domain=Domain.FILE)


def _wanted_sizes(op: OperatorView[Any], g: Graph) -> Sizes:
    """The sizes in the list "shape", constant or computed."""
    if op["shape"].data is not None:
        return tuple(op["shape"].data.reshape(-1).tolist())
    sizes = sizes_of(g, op["shape"])
    return affordable(g, sizes, sizes, op)


def _of_sizes(g: Graph, value: ir.Value, sizes: Sizes) -> ir.Value:
    if isinstance(sizes, ir.Value):
        return g.op("Reshape", value, sizes, allowzero=1)
    return g.reshape(value, sizes)


@translator(Op.SPARSE_TO_DENSE, versions=(1, 3))
def sparse_to_dense(op: OperatorView[SparseToDenseOptions], g: Graph) -> None:
    """ScatterElements into the default value; a single value is written everywhere."""
    indices, values, default, output = op["indices"], op["values"], op["default_value"], op.output
    if has_zero(*indices.shape, *output.shape):
        raise Untranslatable("no index or no element")
    domain = moved_domain(values, default, output)
    count, width = quotient(indices.shape[:1]), indices.shape[1] if indices.rank > 1 else 1
    sizes = _wanted_sizes(op, g)
    rows = flat_rows(g, indices, count, width, sizes, output.rank)
    updates = g.read(values, domain=domain)
    if not values.rank:
        updates = g.op("Expand", updates, g.shape((count,)))
    start = g.reshape(g.read(default, domain=domain), ())
    value = scattered(g, start, (sizes, ()), rows, updates, count)
    g.write(output, _of_sizes(g, value, sizes), domain=domain)


@translator(Op.ONE_HOT, versions=(1, 1))
def one_hot(op: OperatorView[OneHotOptions], g: Graph) -> None:
    """Where(index == position, on, off): ONNX's OneHot counts negative indices from the end."""
    indices, output = op["indices"], op.output
    domain = moved_domain(op["on_value"], op["off_value"], output)
    axis = indices.rank if op.options.axis == -1 else op.options.axis
    # TFLite reads 64-bit indices as 32-bit ones.
    index = g.cast(g.read(indices, domain=Domain.FILE), ir.DataType.INT32)
    index = g.op("Unsqueeze", index, g.ints([axis]))
    chosen = g.op("Equal", index, _positions(op, g, indices.rank - axis))
    on, off = (g.reshape(g.read(op[name], domain=domain), ()) for name in _ON_OFF)
    if output.type is TensorType.BOOL:  # ONNX Runtime has no Where of these
        on, off = g.op("And", chosen, on), g.op("And", g.op("Not", chosen), off)
        g.write(output, g.op("Or", on, off))
    else:
        g.write(output, g.op("Where", chosen, on, off), domain=domain)


def _positions(op: OperatorView[Any], g: Graph, rank: int) -> ir.Value:
    """0, 1, ..., depth - 1, along the first of 1 + `rank` dimensions."""
    depth = op["depth"]
    if depth.data is not None:
        counted = np.arange(int(depth.data.reshape(-1)[0]), dtype=np.int32)
        return g.constant(counted.reshape(-1, *(1,) * rank))
    limit = g.reshape(sizes_of(g, depth), (1,))
    sizes = g.op("Concat", limit, g.shape(op["indices"].shape), axis=0)
    limit = g.reshape(affordable(g, limit, sizes, op), ())
    upwards = g.op("Range", g.ints(0), limit, g.ints(1))
    return g.reshape(g.cast(upwards, ir.DataType.INT32), (-1, *(1,) * rank))


@translator(Op.SEGMENT_SUM, versions=(1, 1))
def segment_sum(op: OperatorView[Any], g: Graph) -> None:
    """ScatterElements (add)."""
    _segments(op, g, g.read(op["data"]), "add")


def unsorted_segment(op_: Op, reduction: str) -> None:
    """ScatterElements with `reduction`, into the value of an empty segment."""

    @translator(op_, versions=(1, 1))
    def combined(op: OperatorView[Any], g: Graph) -> None:
        data = op["data"]
        value = g.read(data)
        if data.type is TensorType.FLOAT32 and reduction in ("max", "min"):
            # A NaN is never larger or smaller than another number.
            start = g.constant(segment_start(op_, data.dtype))
            value = g.op("Where", g.op("IsNaN", value), start, value)
        _segments(op, g, value, reduction)


for _op, _reduction in (
    (Op.UNSORTED_SEGMENT_SUM, "add"),
    (Op.UNSORTED_SEGMENT_PROD, "mul"),
    (Op.UNSORTED_SEGMENT_MAX, "max"),
    (Op.UNSORTED_SEGMENT_MIN, "min"),
):
    unsorted_segment(_op, _reduction)


def _count(k: TensorView, g: Graph) -> ir.Value:
    """The number of elements that TOPK_V2 takes, int64 [1]; 0 for a negative one."""
    if k.data is not None:
        return g.ints([max(int(k.data.reshape(-1)[0]), 0)])
    count = g.reshape(g.whole(k), (1,))
    return g.larger(count, g.ints(0))


@translator(Op.WHERE, versions=(1, 2))
def where(op: OperatorView[Any], g: Graph) -> None:
    """NonZero, transposed to one row of coordinates an element."""
    condition = op["condition"]
    value = g.read(condition, domain=Domain.FILE)
    if condition.type in (TensorType.INT8, TensorType.UINT32):  # ONNX Runtime lacks these
        value = g.cast(value, ir.DataType.INT64)
    g.write(op.output, g.op("Transpose", g.op("NonZero", value), perm=[1, 0]))


@translator(Op.UNIQUE, versions=(1, 1))
def unique(op: OperatorView[UniqueOptions], g: Graph) -> None:
    """Unique, in order of appearance."""
    input, (values, places) = op["input"], op.outputs
    value = g.read(input, domain=Domain.FILE)
    widened = input.type not in (TensorType.FLOAT32, TensorType.INT8, TensorType.INT64)
    if widened:  # ONNX Runtime lacks these
        value = g.cast(value, ir.DataType.INT64)
    found, _, inverse, _ = g.op_multi("Unique", value, outputs=4, sorted=0)
    if widened:
        found = g.cast(found, ir.DataType[input.type.name])
    g.write(values, found, domain=Domain.FILE)
    g.write(places, g.cast(inverse, ir.DataType[places.type.name]))


def _segments(op: OperatorView[Any], g: Graph, value: ir.Value, reduction: str) -> None:
    """The rows of `value`, combined by segment.

    Negative ids go to a row in front, which is sliced off; so the graph fails on too large an id.
    """
    ids, output = op["segment_ids"], op.output
    if has_zero(*op["data"].shape, *output.shape):
        raise Untranslatable("no element")
    if ids.data is not None and is_known(output.shape[0]) and ids.data.max() >= output.shape[0]:
        raise Untranslatable("a segment id out of bounds")
    rows = g.whole(ids)
    rows = g.op("Add", g.larger(rows, g.ints(-1)), g.ints(1))
    sizes: Sizes = output.shape
    first: Sizes = ()
    if is_known(*output.shape):
        first = (output.shape[0] + 1,)
    else:
        segments = _segment_count(op, g)
        first = g.op("Add", segments, g.ints(1))
        sizes = g.op("Concat", segments, g.shape(op["data"].shape[ids.rank :]), axis=0)
    count, start = quotient(ids.shape), g.constant(segment_start(op.op, output.dtype))
    rows, shape = g.reshape(rows, (count,)), (first, part(g, sizes, 1, output.rank))
    rows = agreeing(g, rows, ids.shape, op["data"].shape[: ids.rank])
    value = scattered(g, start, shape, rows, value, count, reduction=reduction)
    bounds = (g.ints([bound]) for bound in (1, _LAST, 0))
    g.write(output, _of_sizes(g, g.op("Slice", value, *bounds), sizes))


def _segment_count(op: OperatorView[Any], g: Graph) -> ir.Value:
    """The number of segments, int64 [1].

    For SEGMENT_SUM it is the last id plus 1. The graph fails unless the ids ascend from 0 in steps
    of at most 1.
    """
    if is_known(op.output.shape[0]):
        return g.size(op.output.shape[0])
    if op.op is not Op.SEGMENT_SUM:
        count = g.reshape(sizes_of(g, op["num_segments"]), (1,))
        rest = g.shape(op["data"].shape[op["segment_ids"].rank :])
        return affordable(g, count, g.op("Concat", count, rest, axis=0), op)
    before, zero, one = (g.ints([bound]) for bound in (-1, 0, 1))
    ids = g.whole(op["segment_ids"])
    line = g.op("Concat", before, ids, axis=0)
    steps = g.op("Sub", ids, g.op("Slice", line, zero, before))
    wrong = g.op("Or", g.op("Less", g.smaller(steps, ids), zero), g.op("Greater", steps, one))
    count = g.op("ReduceSum", g.cast(wrong, ir.DataType.INT64), zero)
    last = g.op("Slice", line, before, g.ints([_LAST]))
    return failing(g, g.op("Add", last, one), g.op("Greater", count, zero))


@translator(Op.TOPK_V2, versions=(1, 3))
def topk_v2(op: OperatorView[Any], g: Graph) -> None:
    """TopK; a NaN is sorted as -inf, and then read from the input again."""
    input, (values, indices) = op["input"], op.outputs
    domain = moved_domain(input, values)
    value, k = g.read(input, domain=domain), _count(op["k"], g)
    if input.type is TensorType.FLOAT32:
        lowest = g.constant(-np.inf, np.float32)
        keys = g.op("Where", g.op("IsNaN", value), lowest, value)
        _, places = g.op_multi("TopK", keys, k, outputs=2)
        top = g.op("GatherElements", value, places, axis=-1)
    else:
        top, places = g.op_multi("TopK", value, k, outputs=2)
    g.write(values, top, domain=domain)
    g.write(indices, g.cast(places, ir.DataType[indices.type.name]))
