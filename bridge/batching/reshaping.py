"""Batch rules of the operators that reorder, join, cut, pad or repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.graph import BatchedGraph, known_values
from tflite_ort.batching.registry import rule
from tflite_ort.schema import Op, OperatorView, ShapeOptions, TensorView, Unbatchable
from tflite_ort.schema.file.tables import Array
from tflite_ort.schema.shapes.reshaping import squeezed_axes
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import has_roots, is_known, is_one

View = OperatorView[Any]


@rule(Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS)
def reshape(op: View, g: BatchedGraph) -> None:
    """The elements of a sample keep their order and stay together, whatever its shape."""
    if any(map(g.is_batched, op.inputs[1:])):
        raise Unbatchable("its shape differs between the samples")
    source = op.present_inputs()[0]
    if not op.output.ranked:
        raise Unbatchable("its shape depends on data")
    if op.op is Op.SQUEEZE:
        dropped = squeezed_axes(source.shape, op.options.squeeze_dims)
        if not all(is_one(source.shape[axis]) for axis in dropped):
            raise Unbatchable("sizes that it drops are not known to be 1")
    g.reshape(source, op.output)


@rule(Op.SHAPE)
def shape(op: View, g: BatchedGraph) -> None:
    """The sizes of a sample, which are those of a batch behind that of the batch itself."""
    source, output = op["input"], op.output
    if not source.ranked or not has_roots(source.shape, g.open_sizes):
        raise Unbatchable("the sizes differ between the samples")
    sizes = g.new(output.type, (source.rank + 1,), "sizes")
    g.emit(Op.SHAPE, [g.stacked(source)], [sizes], ShapeOptions(out_type=output.type))
    ends = [g.constant([1]), g.constant([source.rank])]
    g.emit(Op.SLICE, [sizes, *ends], [g.result_same(output)])


@rule(Op.BITCAST)
def bitcast(op: View, g: BatchedGraph) -> None:
    """Stacked: only the last axis changes."""
    g.copy(op, [g.stacked(op["input"])], [g.result_stacked(op.output)])


@rule(Op.TRANSPOSE)
def transpose(op: View, g: BatchedGraph) -> None:
    """The axes of a sample; in rows if the first stays where it is."""
    source, given = op["input"], known_values(op["perm"], "permutation")
    axes = [normalized_axis(int(axis), source.rank) for axis in given.reshape(-1)]
    if axes[:1] == [0] and g.has_rows(source):
        g.copy(op, [g.rows(source), g.same(op["perm"])], [g.result_rows(op.output)])
    else:
        shifted = g.constant([0, *(axis + 1 for axis in axes)], given.dtype)
        g.copy(op, [g.stacked(source), shifted], [g.result_stacked(op.output)])


# Along one axis ------------------------------------------------------------------------------


Along = Callable[[int], tuple[Sequence[int | None], Any]]


def along_axis(
    op: View, axis: int, sources: Sequence[TensorView], g: BatchedGraph, at: Callable[[int], Any]
) -> None:
    """`op` in rows if `axis` is not the first and a source stands so, else stacked.

    Args:
        at: what becomes of the operator's other inputs and options for the axis that takes the
            place of `axis`: (inputs before, inputs after, options or None).
    """
    in_rows = axis > 0 and any(g.has_rows(source) for source in sources)
    if in_rows:
        places, result = [g.rows(source) for source in sources], g.result_rows
    else:
        places, result = [g.stacked(source) for source in sources], g.result_stacked
    before, after, options = at(axis if in_rows else axis + 1)
    g.copy(op, [*before, *places, *after], [result(out) for out in op.outputs], options)


def axis_constant(tensor: TensorView, g: BatchedGraph) -> Callable[[int], int]:
    """Makes a constant like the axis input `tensor` with another axis."""
    given = known_values(tensor, "axis")
    return lambda axis: g.constant(np.full(given.shape, axis), given.dtype)


def axis_of(tensor: TensorView, rank: int) -> int:
    """The axis that a constant input names."""
    return normalized_axis(int(known_values(tensor, "axis").reshape(-1)[0]), rank)


@rule(Op.CONCATENATION, Op.PACK)
def concatenation(op: View, g: BatchedGraph) -> None:
    """Values along an axis; what is the same for all samples is repeated."""
    values = op.every("values")
    axis = normalized_axis(op.options.axis, op.output.rank)
    along_axis(op, axis, values, g, lambda at: ((), (), replace(op.options, axis=at)))


@rule(Op.UNPACK)
def unpack(op: View, g: BatchedGraph) -> None:
    """Values along an axis."""
    source = op["input"]
    axis = normalized_axis(op.options.axis, source.rank)
    along_axis(op, axis, [source], g, lambda at: ((), (), replace(op.options, axis=at)))


@rule(Op.SPLIT)
def split(op: View, g: BatchedGraph) -> None:
    """Parts along an axis."""
    source = only_data(op, "input", g)
    axis, at = axis_of(op["axis"], source.rank), axis_constant(op["axis"], g)
    along_axis(op, axis, [source], g, lambda place: ([at(place)], (), None))


@rule(Op.SPLIT_V)
def split_v(op: View, g: BatchedGraph) -> None:
    """Parts along an axis."""
    source, sizes = only_data(op, "input", g), op["size_splits"]
    axis, at = axis_of(op["axis"], source.rank), axis_constant(op["axis"], g)
    along_axis(op, axis, [source], g, lambda place: ((), [g.same(sizes), at(place)], None))


def only_data(op: View, name: str, g: BatchedGraph) -> TensorView:
    """The input `name`, if it is the only one that differs between the samples."""
    source = op[name]
    if any(g.is_batched(t) for t in op.inputs if t is not None and t.index != source.index):
        raise Unbatchable("more than its data differs between the samples")
    return source


@rule(Op.CUMSUM)
def cumsum(op: View, g: BatchedGraph) -> None:
    """Sums along an axis."""
    source = only_data(op, "input", g)
    axis, at = axis_of(op["axis"], source.rank), axis_constant(op["axis"], g)
    along_axis(op, axis, [source], g, lambda place: ((), [at(place)], None))


@rule(Op.ARG_MAX, Op.ARG_MIN)
def arg_max(op: View, g: BatchedGraph) -> None:
    """Places along an axis."""
    cumsum(op, g)


# A value for each axis -----------------------------------------------------------------------


def each_axis(
    op: View,
    names: Sequence[str],
    first: Sequence[Any],
    g: BatchedGraph,
    *,
    untouched: bool,
) -> None:
    """`op` whose inputs `names` have a value for each axis.

    Args:
        first: the values of an axis that the operator leaves as it is.
        untouched: whether the operator leaves the first axis of a sample as it is; it is in rows
            then, if its data is.
    """
    source = only_data(op, "input", g)
    in_rows = untouched and g.has_rows(source)
    lists = {
        name: g.constant(np.concatenate([[value], known_values(op[name], name)]), op[name].dtype)
        if not in_rows
        else g.same(op[name])
        for name, value in zip(names, first, strict=True)
    }
    places: list[int | None] = []
    for name, tensor in zip(op.names, op.inputs, strict=False):
        if tensor is source:
            places.append(g.rows(source) if in_rows else g.stacked(source))
        else:
            places.append(lists[name] if name in lists else g.same(tensor))
    result = g.result_rows if in_rows else g.result_stacked
    g.copy(op, places, [result(out) for out in op.outputs])


@rule(Op.PAD, Op.PADV2, Op.MIRROR_PAD)
def pad(op: View, g: BatchedGraph) -> None:
    """Paddings of a sample."""
    paddings = known_values(op["paddings"], "padding")
    untouched = bool(len(paddings)) and not paddings[0].any()
    each_axis(op, ["paddings"], [np.zeros(2)], g, untouched=untouched)


@rule(Op.TILE)
def tile(op: View, g: BatchedGraph) -> None:
    """Repetitions of a sample."""
    multiples = known_values(op["multiples"], "list of multiples")
    untouched = bool(multiples.size) and multiples[0] == 1
    each_axis(op, ["multiples"], [1], g, untouched=untouched)


@rule(Op.DILATE)
def dilate(op: View, g: BatchedGraph) -> None:
    """Gaps between the elements of a sample."""
    dilations = known_values(op["dilations"], "list of dilations")
    untouched = bool(dilations.size) and dilations[0] == 1
    each_axis(op, ["dilations"], [1], g, untouched=untouched)


@rule(Op.BROADCAST_TO)
def broadcast_to(op: View, g: BatchedGraph) -> None:
    """A shape before which the batch is put."""
    if g.is_batched(op["shape"]) or not is_known(*op.output.shape):
        raise Unbatchable("its shape depends on data")
    source, out = op["input"], op.output
    places = [g.stacked(source, out.rank), g.dims(out.shape)]
    g.emit(Op.BROADCAST_TO, places, [g.result_stacked(out)])


# Several axes --------------------------------------------------------------------------------


@rule(Op.SUM, Op.MEAN, Op.REDUCE_PROD, Op.REDUCE_MAX, Op.REDUCE_MIN)
@rule(Op.REDUCE_ANY, Op.REDUCE_ALL, Op.REVERSE_V2)
def several_axes(op: View, g: BatchedGraph) -> None:
    """Axes of a sample: in rows where the first is none of them."""
    source, given = only_data(op, "input", g), known_values(op["axes"], "list of axes")
    axes = normalized_axes(given.reshape(-1).tolist(), source.rank)
    if 0 not in axes and g.has_rows(source) and op.output.rank:
        g.copy(op, [g.rows(source), _axes(axes, given, g)], [g.result_rows(op.output)])
    else:
        shifted = _axes([axis + 1 for axis in axes], given, g)
        g.copy(op, [g.stacked(source), shifted], [g.result_stacked(op.output)])


def _axes(axes: Sequence[int], given: Array, g: BatchedGraph) -> int:
    shape = given.shape if len(axes) == given.size else (len(axes),)
    return g.constant(np.reshape(np.array(axes, given.dtype), shape), given.dtype)


@rule(Op.REDUCE_WINDOW)
def reduce_window(op: View, g: BatchedGraph) -> None:
    """Windows of a sample."""
    each_axis(op, ["window", "strides", "dilations"], [1, 1, 1], g, untouched=False)


# Blocks --------------------------------------------------------------------------------------


@rule(Op.SPACE_TO_BATCH_ND)
def space_to_batch_nd(op: View, g: BatchedGraph) -> None:
    """The blocks of all samples come block by block: they are put in order, sample by sample."""
    source, out = only_data(op, "input", g), op.output
    many = source.shape[0]
    blocks = out.shape[0] // many
    places = [g.rows(source), g.same(op["block_shape"]), g.same(op["paddings"])]
    mixed = g.temporary(out, g.rows_shape(out.shape), "blocks")
    g.copy(op, places, [mixed])
    size = -1 if g.size is None else g.size
    split = g.reshaped(mixed, out, out.shape, (blocks, size, many, *out.shape[1:]))
    ordered = g.transposed(split, out, (size, blocks, many, *out.shape[1:]))
    g.reshape_place(ordered, out)


@rule(Op.BATCH_TO_SPACE_ND)
def batch_to_space_nd(op: View, g: BatchedGraph) -> None:
    """The blocks of all samples are put in order, block by block."""
    source, out = only_data(op, "input", g), op.output
    many = out.shape[0]
    blocks = source.shape[0] // many
    size = -1 if g.size is None else g.size
    shape = source.shape
    split = g.reshaped(g.stacked(source), source, shape, (size, blocks, many, *shape[1:]))
    mixed = g.transposed(split, source, (blocks, size, many, *shape[1:]))
    joined = g.reshaped(mixed, source, shape, g.rows_shape(shape))
    places = [joined, g.same(op["block_shape"]), g.same(op["crops"])]
    g.copy(op, places, [g.result_rows(out)])


@rule(Op.MATRIX_SET_DIAG)
def matrix_set_diag(op: View, g: BatchedGraph) -> None:
    """Stacked matrices and diagonals."""
    places = [g.stacked(op["input"]), g.stacked(op["diagonal"])]
    g.copy(op, places, [g.result_stacked(op.output)])


@rule(Op.REVERSE_SEQUENCE)
def reverse_sequence(op: View, g: BatchedGraph) -> None:
    """Rows of sequences, and of their lengths, where these go along the first axis."""
    if op.options.batch_dim:
        raise Unbatchable("its sequences do not go along the first axis")
    places = [g.rows(op["input"]), g.rows(op["lengths"])]
    g.copy(op, places, [g.result_rows(op.output)])
