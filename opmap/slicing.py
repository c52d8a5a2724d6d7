"""Regions of a tensor, read or replaced: SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.complex_arithmetic import as_pairs
from tflite_ort.opmap.idioms.indices import agreeing, failing
from tflite_ort.opmap.idioms.movement import integers, moved_domain, same_order
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Op,
    OperatorView,
    StridedSliceOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.semantics import StridedSlice
from tflite_ort.schema.values.semantics import strided_slice as resolved
from tflite_ort.schema.values.sizes import Shape, is_known, known_product, may_differ, unknown_size
from tflite_ort.schema.values.slices import slice_entries

_FARTHEST = np.iinfo(np.int64).max


# `slice` is the builtin.
@translator(Op.SLICE, versions=(1, 8))
def slice_(op: OperatorView[Any], g: Graph) -> None:
    """Slice of `size` elements from `begin`; both may be computed at run time."""
    op = as_pairs(op, begin=0, size=2)
    input, output, begin, size = op["input"], op.output, op["begin"], op["size"]
    domain = moved_domain(input, output)
    if begin.data is None or size.data is None or not is_known(*input.shape):
        value = g.read(input, domain=domain)
        g.write(output, g.op("Slice", value, *_region(op, g)), domain=domain)
        return
    starts = tuple(begin.data.tolist())
    ends = tuple(first + size for first, size in zip(starts, output.shape, strict=True))
    ones = (1,) * input.rank
    _cut(op, g, StridedSlice(starts, ends, ones, (), (), output.shape))


def _region(op: OperatorView[Any], g: Graph) -> tuple[ir.Value, ir.Value]:
    """Starts and ends as int64; the graph fails if they are outside of the input."""
    whole, zero = g.shape(op["input"].shape), g.ints(0)
    starts, sizes = (_of_length(op[name], op["input"].rank, g) for name in ("begin", "size"))
    rest = g.op("Equal", sizes, g.ints(-1))
    ends = g.op("Where", rest, whole, g.op("Add", starts, sizes))
    outside = g.op("Or", g.op("Less", starts, zero), g.op("Greater", ends, whole))
    wrong = g.op("Or", outside, g.op("Less", ends, starts))
    return failing(g, starts, wrong), ends


def _of_length(listed: TensorView, length: int, g: Graph) -> ir.Value:
    """A list of numbers as int64; the graph fails if there are more or fewer."""
    value = g.whole(listed) if listed.data is None else g.ints(listed.data)
    return agreeing(g, value, listed.shape, (length,))


@translator(Op.STRIDED_SLICE, versions=(1, 8))
def strided_slice(op: OperatorView[StridedSliceOptions], g: Graph) -> None:
    """Slice, then Reshape where axes are dropped or inserted."""
    if is_complex(op.output) and op.options.ellipsis_mask:
        raise Untranslatable("an ellipsis of complex numbers")
    op = as_pairs(op)  # axes that no entry names are taken whole
    bounds = [op[name] for name in ("begin", "end", "strides")]
    if not (all(bound.is_constant for bound in bounds) and _unknown_are_whole(op)):
        _cut_at_computed(op, g)
        return
    shape = op["input"].shape
    begin, end, strides = map(integers, bounds)
    known = tuple(size if is_known(size) else 1 for size in shape)
    region = resolved(known, begin, end, strides, op.options)
    rows = zip(shape, region.ends, strict=True)
    ends = tuple(end if is_known(size) else size for size, end in rows)
    _cut(op, g, replace(region, ends=ends, shape=op.output.shape))


def _unknown_are_whole(op: OperatorView[StridedSliceOptions]) -> bool:
    """Whether all axes of unknown size are taken whole."""
    options, sizes = op.options, iter(op["input"].shape)
    strides = integers(op["strides"])
    for entry in slice_entries(op["input"].rank, len(strides), options):
        if entry is not None and options.new_axis_mask >> entry & 1:
            continue
        size = next(sizes)
        masks = options.begin_mask & options.end_mask & ~options.shrink_axis_mask
        whole = entry is None or (masks >> entry & 1 and strides[entry] == 1)
        if not whole and not is_known(size):
            return False
    return True


def _cut_at_computed(op: OperatorView[StridedSliceOptions], g: Graph) -> None:
    """Slice between computed bounds, or of unknown sizes; then Squeeze and Unsqueeze.

    Slice has the rules of TFLite: negative bounds count from the end, and bounds are clipped to the
    input. An axis to drop is empty if its index is out of range, and Squeeze fails on it.
    """
    input, output, options = op["input"], op.output, op.options
    (count,) = op["strides"].shape
    if options.offset:
        raise Untranslatable("ends that are counted from computed beginnings")
    cuts: list[tuple[int, int]] = []
    dropped: list[int] = []
    inserted: list[int] = []
    axis = place = 0
    for entry in slice_entries(input.rank, count, options):
        new = entry is not None and options.new_axis_mask >> entry & 1
        drop = entry is not None and not new and options.shrink_axis_mask >> entry & 1
        if new:
            inserted.append(place)
        if drop:
            dropped.append(axis)
        if entry is not None and not new:
            cuts.append((axis, entry))
        axis, place = axis + (not new), place + (not drop)
    domain = moved_domain(input, output)
    value = g.read(input, domain=domain)
    if cuts:
        value = g.op("Slice", value, *_bounds(op, g, cuts))
    if dropped:
        value = g.op("Squeeze", value, g.ints(dropped))
    if inserted:
        value = g.op("Unsqueeze", value, g.ints(inserted))
    g.write(output, value, domain=domain)


def _bounds(
    op: OperatorView[StridedSliceOptions], g: Graph, cuts: Sequence[tuple[int, int]]
) -> list[ir.Value]:
    """Starts, ends, axes and steps of Slice for pairs of an axis and an entry."""
    options = op.options
    axes, entries = zip(*cuts, strict=True)
    single = np.array([options.shrink_axis_mask >> entry & 1 for entry in entries], np.bool_)
    zero, farthest = g.ints(0), g.ints(_FARTHEST)
    steps = _entries(g, op["strides"], entries)
    backwards = g.op("Less", steps, zero)
    first = g.op("Where", backwards, farthest, zero)
    last = g.op("Where", backwards, g.op("Neg", farthest), farthest)
    starts = _masked(g, op["begin"], entries, options.begin_mask, first)
    ends = _masked(g, op["end"], entries, options.end_mask, last)
    known = op["strides"].data
    if known is None or known.min() < 0:
        # If it starts before the first element, Slice takes that element, and TFLite takes none.
        sizes = g.shape([op["input"].shape[axis] for axis in axes])
        before = g.op("Less", starts, g.op("Neg", sizes))
        ends = g.op("Where", g.op("And", before, backwards), zero, ends)
    if single.any():
        following = g.op("Add", starts, g.ints(1))
        following = g.op("Where", g.op("Equal", starts, g.ints(-1)), farthest, following)
        ends = g.op("Where", g.constant(single), following, ends)
    return [starts, ends, g.ints(axes), steps]


def _entries(g: Graph, list: TensorView, entries: Sequence[int]) -> ir.Value:
    """Some elements of a list as int64."""
    if list.data is not None:
        return g.ints(np.take(list.data, entries))
    values = g.whole(list)
    return g.op("Gather", values, g.ints(entries))


def _masked(
    g: Graph, bound: TensorView, entries: Sequence[int], mask: int, free: ir.Value
) -> ir.Value:
    """The `entries` of a bound as int64, replaced by those of `free` where the mask is set."""
    lifted = np.array([mask >> entry & 1 for entry in entries], np.bool_)
    if lifted.all():
        return free
    values = _entries(g, bound, entries)
    return g.op("Where", g.constant(lifted), free, values) if lifted.any() else values


def _cut(op: OperatorView[Any], g: Graph, region: StridedSlice) -> None:
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    reranked = bool(region.squeezed or region.new_axes)
    layout = Layout.LAST
    if domain is Domain.STORED and (not reranked or same_order(_extents(input, region))):
        layout = g.layout(input)
    value = g.read(input, layout=layout, domain=domain)
    axes: Sequence[int] = [layout.axis(axis, input.rank) for axis in range(input.rank)]
    if reranked and layout is Layout.LAST and (before := _before_transpose(value, region)):
        value, axes = before
    value = _sliced(g, value, input, region, axes)
    if reranked:
        g.write(output, g.reshape(value, region.shape), domain=domain)
    else:
        g.write(output, value, layout=layout, domain=domain)


def _extents(input: TensorView, region: StridedSlice) -> tuple[int, ...]:
    """The shape after slicing, before axes are dropped and inserted."""
    axes = zip(input.shape, region.slices, strict=True)
    return tuple(len(range(size)[cut]) if is_known(size) else size for size, cut in axes)


def _before_transpose(
    value: ir.Value, region: StridedSlice
) -> tuple[ir.Value, Sequence[int]] | None:
    """What was transposed to `value`, and where it has each axis, if the axes that `region` leaves
    are there in the same order."""
    node = value.producer()
    if node is None or node.op_type != "Transpose" or node.inputs[0] is None:
        return None
    axes = cast("Sequence[int]", node.attributes["perm"])
    left = [place for axis, place in enumerate(axes) if axis not in region.squeezed]
    return (node.inputs[0], axes) if left == sorted(left) else None


def _sliced(
    g: Graph, value: ir.Value, input: TensorView, region: StridedSlice, places: Sequence[int]
) -> ir.Value:
    """Slice along the axes that are not taken whole; `value` itself if all are.

    Args:
        places: where `value` has each axis.
    """
    bounds = list(zip(region.starts, region.ends, region.steps, strict=True))
    cut = [axis for axis, size in enumerate(input.shape) if bounds[axis] != (0, size, 1)]
    if not cut:
        return value
    starts, ends, steps = zip(*(bounds[axis] for axis in cut), strict=True)
    axes = [places[axis] for axis in cut]
    arguments = (g.ints(given) for given in (starts, ends, axes, steps))
    return g.op("Slice", value, *arguments)


@translator(Op.DYNAMIC_UPDATE_SLICE, versions=(1, 6))
def dynamic_update_slice(op: OperatorView[Any], g: Graph) -> None:
    """ScatterND of whole slices.

    Their positions are the start, clipped so that the update fits, plus a constant grid along the
    axes that are not replaced whole.
    """
    op, listed = as_pairs(op), op["operand"].rank
    operand, update, output = op["operand"], op["update"], op.output
    domain = moved_domain(operand, update, output)
    pairs = list(zip(operand.shape, update.shape, strict=True))
    moves = (axis for axis, pair in enumerate(pairs) if may_differ(*([size] for size in pair)))
    parts = max((axis + 1 for axis in moves), default=0)
    if not parts or not known_product(update.shape):
        whole = g.read(operand if parts else update, domain=domain)
        if op["start"].dynamic:
            sizes = agreeing(g, g.op("Shape", whole), op["start"].shape, (listed,))
            whole = g.op("Reshape", whole, sizes, allowzero=1)
        g.write(output, whole, domain=domain)
        return
    start = g.reshape(g.read(op["start"]), (listed,))
    if parts < operand.rank:
        start = g.op("Slice", start, g.ints([0]), g.ints([parts]))
    room = _room(operand.shape[:parts], update.shape[:parts], g)
    start = _clipped_start(op, g, start, room)
    into, values = (g.read(tensor, domain=domain) for tensor in (operand, update))
    moved = update.shape[:parts]
    if is_known(*moved):
        grid = g.ints(np.moveaxis(np.indices(moved), 0, -1))
    else:  # a list of places
        grid = g.op(
            "Transpose", g.op("NonZero", g.op("Expand", g.ints(1), g.shape(moved))), perm=[1, 0]
        )
        values = g.reshape(values, (unknown_size(), *update.shape[parts:]))
    places = g.op("Add", grid, start)
    g.write(output, g.op("ScatterND", into, places, values), domain=domain)


def _clipped_start(op: OperatorView[Any], g: Graph, start: ir.Value, room: ir.Value) -> ir.Value:
    """`start` as int64, from 0 to `room`. ONNX Runtime's Max and Min are right for 32 bits."""
    if op["start"].type is TensorType.INT32 and room.const_value is not None:
        most = g.constant(room.const_value.array, np.int32)
        start = g.op("Min", g.op("Max", start, g.constant(0, np.int32)), most)
        return g.cast(start, ir.DataType.INT64)
    start = g.larger(g.cast(start, ir.DataType.INT64), g.ints(0))
    return g.smaller(start, room)


def _room(shape: Shape, part: Shape, g: Graph) -> ir.Value:
    """How far a part can be moved inside a shape, along each axis; the graph fails if it is
    larger."""
    if is_known(*shape, *part):
        return g.ints([size - taken for size, taken in zip(shape, part, strict=True)])
    room = g.op("Sub", g.shape(shape), g.shape(part))
    return failing(g, room, g.op("Less", room, g.ints(0)))
