"""Batch rules of the operators that cut regions or pick elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.graph import BatchedGraph, Shape, known_values
from tflite_ort.batching.registry import rule
from tflite_ort.batching.reshaping import only_data
from tflite_ort.schema import (
    AddOptions,
    ConcatenationOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Unbatchable,
)
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]


@rule(Op.SLICE)
def slice_(op: View, g: BatchedGraph) -> None:
    """Begins and sizes of a sample; all samples are taken."""
    source = only_data(op, "input", g)
    if _keeps_first(op) and g.has_rows(source):
        begin, size = known_values(op["begin"], "begin"), known_values(op["size"], "size")
        sizes = g.constant([-1, *size.tolist()[1:]], size.dtype)
        g.copy(
            op, [g.rows(source), g.constant(begin, begin.dtype), sizes], [g.result_rows(op.output)]
        )
        return
    places = [g.prefixed(op["begin"], 0), g.prefixed(op["size"], -1)]
    g.copy(op, [g.stacked(source), *places], [g.result_stacked(op.output)])


def _keeps_first(op: View) -> bool:
    """Whether the slice has the whole first axis of a sample."""
    source, begin, size = op["input"], op["begin"].data, op["size"].data
    if begin is None or size is None or not source.rank or begin[0]:
        return False
    return bool(size[0] == -1) or (is_known(source.shape[0]) and size[0] == source.shape[0])


@rule(Op.STRIDED_SLICE)
def strided_slice(op: View, g: BatchedGraph) -> None:
    """Bounds and masks of a sample, after those that take all samples."""
    source, options = only_data(op, "input", g), op.options
    if g.has_rows(source) and _whole_first(op):
        options = replace(options, begin_mask=options.begin_mask | 1, end_mask=options.end_mask | 1)
        places = g.all_same(op.inputs[1:])
        g.copy(op, [g.rows(source), *places], [g.result_rows(op.output)], options)
        return
    places = [g.prefixed(op["begin"], 0), g.prefixed(op["end"], 0), g.prefixed(op["strides"], 1)]
    options = replace(
        options,
        begin_mask=options.begin_mask << 1 | 1,
        end_mask=options.end_mask << 1 | 1,
        ellipsis_mask=options.ellipsis_mask << 1,
        new_axis_mask=options.new_axis_mask << 1,
        shrink_axis_mask=options.shrink_axis_mask << 1,
    )
    g.copy(op, [g.stacked(source), *places], [g.result_stacked(op.output)], options)


def _whole_first(op: View) -> bool:
    """Whether the first bounds are those of the whole first axis of a sample."""
    source, options = op["input"], op.options
    lists = [op[name].data for name in ("begin", "end", "strides")]
    if any(values is None or not values.size for values in lists) or options.offset:
        return False
    if (options.ellipsis_mask | options.new_axis_mask | options.shrink_axis_mask) & 1:
        return False
    begin, end, stride = (int(values[0]) for values in lists if values is not None)
    from_start = bool(options.begin_mask & 1) or begin == 0
    size = source.shape[0]
    to_end = bool(options.end_mask & 1) or (is_known(size) and end >= size)
    return stride == 1 and from_start and to_end


@rule(Op.GATHER)
def gather(op: View, g: BatchedGraph) -> None:
    """Positions along an axis of a sample."""
    source, positions = op["input"], op["positions"]
    axis = normalized_axis(op.options.axis, source.rank)
    lots = op.options.batch_dims
    lots = lots + positions.rank if lots < 0 else lots
    if not g.is_batched(source):
        _gather_of_same(op, axis, lots, g)
    elif g.is_batched(positions):
        options = replace(op.options, axis=axis + 1, batch_dims=lots + 1)
        places = [g.stacked(source), g.stacked(positions)]
        g.copy(op, places, [g.result_stacked(op.output)], options)
    elif lots:
        raise Unbatchable("its positions are the same for all samples, and go along its data")
    elif axis and g.has_rows(source):
        g.copy(op, [g.rows(source), g.same(positions)], [g.result_rows(op.output)])
    else:
        options = replace(op.options, axis=axis + 1, batch_dims=0)
        places = [g.stacked(source), g.same(positions)]
        g.copy(op, places, [g.result_stacked(op.output)], options)


def _gather_of_same(op: View, axis: int, lots: int, g: BatchedGraph) -> None:
    """Positions of each sample in data that is the same for all."""
    source, positions = op["input"], op["positions"]
    if lots or axis:
        options = replace(op.options, axis=axis + 1, batch_dims=lots + 1)
        places = [g.stacked(source), g.stacked(positions)]
        g.copy(op, places, [g.result_stacked(op.output)], options)
    elif positions.rank and g.has_rows(positions):
        g.copy(op, [g.same(source), g.rows(positions)], [g.result_rows(op.output)])
    else:
        places = [g.same(source), g.stacked(positions)]
        options = replace(op.options, batch_dims=0)
        g.copy(op, places, [g.result_stacked(op.output)], options)


@rule(Op.GATHER_ND)
def gather_nd(op: View, g: BatchedGraph) -> None:
    """Indices that begin with the number of the sample; those of each sample as they are in data
    that is the same for all."""
    params, indices = op["params"], op["indices"]
    if not g.is_batched(params):
        if g.has_rows(indices) and indices.rank > 1:
            g.copy(op, [g.same(params), g.rows(indices)], [g.result_rows(op.output)])
        else:
            g.copy(op, [g.same(params), g.stacked(indices)], [g.result_stacked(op.output)])
        return
    numbered = _numbered(indices, g)
    g.copy(op, [g.stacked(params), numbered], [g.result_stacked(op.output)])


@rule(Op.SCATTER_ND)
def scatter_nd(op: View, g: BatchedGraph) -> None:
    """Indices that begin with the number of the sample, into a shape for each sample."""
    indices, updates, shape = op["indices"], op["updates"], op["shape"]
    sizes = tuple(known_values(shape, "shape").tolist())
    places = [_numbered(indices, g), g.stacked(updates), g.dims(sizes)]
    g.copy(op, places, [g.result_stacked(op.output)])


def _numbered(indices: TensorView, g: BatchedGraph) -> int:
    """Indices [N, ..., depth + 1]: the number of the sample before those of each."""
    if indices.type is not TensorType.INT32 or not is_known(*indices.shape) or not indices.rank:
        raise Unbatchable("its indices are not int32 of known shape")
    own = g.stacked(indices)
    shape: Shape = (*indices.shape[:-1], 1)
    column = g.reshaped(g.numbers(), indices, (1,) * len(shape), g.stacked_shape((1,) * len(shape)))
    numbers = g.temporary(indices, g.stacked_shape(shape), "numbers")
    g.emit(Op.ADD, [column, g.constant(np.zeros((1, *shape)))], [numbers], AddOptions())
    out = g.temporary(indices, g.stacked_shape((*shape[:-1], indices.shape[-1] + 1)), "numbered")
    axis = ConcatenationOptions(axis=len(shape))
    g.emit(Op.CONCATENATION, [numbers, own], [out], axis)
    return out


@rule(Op.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(op: View, g: BatchedGraph) -> None:
    """Stacked, where all samples are updated in the same place."""
    operand, update, start = op["operand"], op["update"], op["start"]
    if g.is_batched(start):
        raise Unbatchable("the place of its update differs between the samples")
    places = [g.stacked(operand), g.stacked(update), g.prefixed(start, 0)]
    g.copy(op, places, [g.result_stacked(op.output)])


@rule(Op.ONE_HOT)
def one_hot(op: View, g: BatchedGraph) -> None:
    """One more axis of a sample."""
    indices = only_data(op, "indices", g)
    axis, rank = op.options.axis, op.output.rank
    axis = rank - 1 if axis == -1 else axis
    rest = g.all_same(op.inputs[1:])
    if axis and g.has_rows(indices):
        g.copy(op, [g.rows(indices), *rest], [g.result_rows(op.output)])
        return
    options = replace(op.options, axis=axis + 1)
    g.copy(op, [g.stacked(indices), *rest], [g.result_stacked(op.output)], options)


@rule(Op.EMBEDDING_LOOKUP, Op.HASHTABLE_LOOKUP)
def embedding_lookup(op: View, g: BatchedGraph) -> None:
    """Rows of keys, in tables that are the same for all samples."""
    ids, *tables = op.present_inputs()
    if any(map(g.is_batched, tables)):
        raise Unbatchable("its table differs between the samples")
    places = [g.rows(ids), *map(g.same, tables)]
    g.copy(op, places, [g.result_rows(out) for out in op.outputs])
