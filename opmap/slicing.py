"""Regions cut out of a tensor, and put into one: SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.forms import Domain, Layout
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.movement import integers, moved_domain, reshaped, same_order
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, StridedSliceOptions, TensorView, Untranslatable
from tflite_ort.schema.semantics import StridedSlice
from tflite_ort.schema.semantics import strided_slice as resolved


# `slice` is the builtin.
@translator(Op.SLICE, versions=(1, 8), inputs=("input", "begin", "size!"))
def slice_(op: OperatorView[Any], g: Graph) -> None:
    """Slice of `size` elements from `begin`, which may be computed at run time."""
    input, output, begin = op["input"], op.output, op["begin"]
    domain = moved_domain(input, output)
    if begin.data is None:
        value = _sliced_at(g, g.read(input, domain=domain), g.read(begin), output.shape)
        g.write(output, value, domain=domain)
        return
    starts = tuple(begin.data.tolist())
    ends = tuple(first + size for first, size in zip(starts, output.shape, strict=True))
    ones = (1,) * input.rank
    _cut(op, g, StridedSlice(starts, ends, ones, (), (), output.shape))


def _sliced_at(g: Graph, value: ir.Value, begin: ir.Value, sizes: tuple[int, ...]) -> ir.Value:
    starts = g.op("Cast", begin, to=ir.DataType.INT64)
    ends = g.op("Add", starts, g.constant(sizes, np.int64))
    return g.op("Slice", value, starts, ends)


@translator(Op.STRIDED_SLICE, versions=(1, 8), inputs=("input", "begin", "end", "strides!"))
def strided_slice(op: OperatorView[StridedSliceOptions], g: Graph) -> None:
    """Slice, then Reshape where axes are dropped or inserted; Gather at computed indices."""
    if op["begin"].data is None or op["end"].data is None:
        _pick(op, g)
        return
    begin, end, strides = (integers(op[name]) for name in ("begin", "end", "strides"))
    _cut(op, g, resolved(op["input"].shape, begin, end, strides, op.options))


def _pick(op: OperatorView[StridedSliceOptions], g: Graph) -> None:
    """x[:, i, :, j] with i and j computed: a Gather per dropped axis. No range is cut by computed
    bounds: the result would have no known shape."""
    input, output, options = op["input"], op.output, op.options
    if options.ellipsis_mask or options.new_axis_mask or set(integers(op["strides"])) != {1}:
        raise Untranslatable("computed indices beside new axes, an ellipsis or strides")
    domain = moved_domain(input, output)
    value, begin = g.read(input, domain=domain), g.read(op["begin"])
    for axis in reversed(range(op["begin"].shape[0])):
        bit = 1 << axis
        if options.shrink_axis_mask & bit:
            entry = None if options.begin_mask & bit else g.constant(axis, np.int64)
            index = g.constant(0, np.int64) if entry is None else g.op("Gather", begin, entry)
            value = g.op("Gather", value, index, axis=axis)
    g.write(output, value, domain=domain)


def _cut(op: OperatorView[Any], g: Graph, region: StridedSlice) -> None:
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    reranked = bool(region.squeezed or region.new_axes)
    layout = Layout.LAST
    if domain is Domain.STORED and (not reranked or same_order(_extents(input, region))):
        layout = g.layout(input)
    value = _sliced(g, g.read(input, layout=layout, domain=domain), input, region, layout)
    if reranked:
        g.write(output, reshaped(g, value, region.shape), domain=domain)
    else:
        g.write(output, value, layout=layout, domain=domain)


def _extents(input: TensorView, region: StridedSlice) -> tuple[int, ...]:
    """The shape after slicing, before axes are dropped and inserted."""
    axes = zip(input.shape, region.slices, strict=True)
    return tuple(len(range(size)[bounds]) for size, bounds in axes)


def _sliced(
    g: Graph, value: ir.Value, input: TensorView, region: StridedSlice, layout: Layout
) -> ir.Value:
    """Slice along the axes that are not taken whole; `value` itself if all are."""
    bounds = list(zip(region.starts, region.ends, region.steps, strict=True))
    cut = [axis for axis, size in enumerate(input.shape) if bounds[axis] != (0, size, 1)]
    if not cut:
        return value
    starts, ends, steps = zip(*(bounds[axis] for axis in cut), strict=True)
    axes = [layout.axis(axis, input.rank) for axis in cut]
    arguments = (g.constant(given, np.int64) for given in (starts, ends, axes, steps))
    return g.op("Slice", value, *arguments)


@translator(Op.DYNAMIC_UPDATE_SLICE, versions=(1, 6), inputs=("operand", "update", "start"))
def dynamic_update_slice(op: OperatorView[Any], g: Graph) -> None:
    """ScatterND of whole slices, at the start (held where the update fits) plus a constant grid
    of positions along the axes that are not replaced whole."""
    operand, update, output = op["operand"], op["update"], op.output
    domain = moved_domain(operand, update, output)
    room = np.subtract(operand.shape, update.shape)
    parts = int(np.max(np.nonzero(room)[0], initial=-1)) + 1
    if not parts or not math.prod(update.shape):
        whole = operand if parts else update
        g.write(output, g.read(whole, domain=domain), domain=domain)
        return
    start = g.op("Cast", g.read(op["start"]), to=ir.DataType.INT64)
    if parts < operand.rank:
        start = g.op("Slice", start, g.constant([0], np.int64), g.constant([parts], np.int64))
    start = g.op("Max", start, g.constant(0, np.int64))
    start = g.op("Min", start, g.constant(room[:parts], np.int64))
    grid = np.moveaxis(np.indices(update.shape[:parts]), 0, -1)
    places = g.op("Add", g.constant(grid, np.int64), start)
    into, values = (g.read(tensor, domain=domain) for tensor in (operand, update))
    g.write(output, g.op("ScatterND", into, places, values), domain=domain)
