"""StableHLO operators: elementwise ones of equal shapes, PAD, GATHER, SCATTER, windows, random
bits.

Rows of a table: stablehlo_add, stablehlo_multiply, stablehlo_maximum, stablehlo_minimum,
stablehlo_and, stablehlo_shift_left.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.counters import check_count, integers, philox, threefry
from tflite_ort.opmap.idioms.indices import matched
from tflite_ort.opmap.idioms.movement import moved_domain, narrowed, widened
from tflite_ort.opmap.idioms.padding import spread_and_padded
from tflite_ort.opmap.idioms.window_reduction import windows_reduced
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Op,
    OperatorView,
    RngAlgorithm,
    StablehloGatherOptions,
    StablehloPadOptions,
    StablehloReduceWindowOptions,
    StablehloRngBitGeneratorOptions,
    StablehloScatterOptions,
    TensorType,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.generators import PHILOX_LANES, THREEFRY_LANES
from tflite_ort.schema.shapes.reduction import reduced_windows
from tflite_ort.schema.shapes.stablehlo import (
    batch_shape,
    offset_axes,
    pad_sizes,
    padded_shape,
    slice_grid,
    slice_sizes,
)
from tflite_ort.schema.values.regions import (
    WindowAttributes,
    scatter_function,
    scatter_places,
    window_function,
)
from tflite_ort.schema.values.sizes import is_known, may_differ

_D, _T = ir.DataType, TensorType
_RANDOM = (_T.INT32, _T.UINT32, _T.INT64, _T.UINT64)

# The type to compute in, by element type. It holds all numbers, and the cast back wraps an overflow
# as TFLite does.
_NUMBERS = {
    _T.FLOAT16: _D.FLOAT,
    _T.FLOAT32: _D.FLOAT,
    _T.FLOAT64: _D.DOUBLE,
    _T.INT8: _D.INT32,
    _T.UINT8: _D.INT32,
    _T.INT16: _D.INT32,
    _T.UINT16: _D.INT32,
    _T.INT32: _D.INT32,
    _T.UINT32: _D.INT64,
    _T.INT64: _D.INT64,
    _T.BOOL: _D.INT32,
}
_BITS = {
    type: _D[type.name]
    for type in (
        *(_T.INT8, _T.INT16, _T.INT32, _T.INT64),
        *(_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64),
    )
}
_SHIFTED = dict.fromkeys((_T.INT8, _T.INT16, _T.INT32), _D.INT32)


@record
class Elementwise:
    """An operator over two tensors of one shape.

    Args:
        computed_as: the type in which `nodes` computes, by element type.
        ordered: `nodes` compares numbers.
    """

    op: Op
    nodes: Callable[[Graph, ir.Value, ir.Value], ir.Value]
    computed_as: dict[TensorType, ir.DataType]
    ordered: bool = False

    def translate(self, op: OperatorView[Any], g: Graph) -> None:
        """Cast both operands, add the nodes, and cast the result back."""
        lhs, rhs = op["lhs"], op["rhs"]
        computed = self.computed_as.get(lhs.type)
        if computed is None or rhs.type is not lhs.type:
            raise Untranslatable(f"{lhs.type.name} with {rhs.type.name} elements")
        layout = g.layout(lhs, rhs)
        values = [g.read(tensor, layout=layout, domain=Domain.FILE) for tensor in (lhs, rhs)]
        if may_differ(lhs.shape, rhs.shape):  # nodes broadcast
            values[1] = matched(g, values[1], values[0])
        values = [g.cast(value, computed) for value in values]
        if self.ordered and lhs.type is _T.UINT64:
            result = _signs_changed(g, self.nodes(g, *(_signs_changed(g, each) for each in values)))
        else:
            result = self.nodes(g, *values)
        result = g.cast(result, lhs.dtype)
        g.write(op.output, result, layout=layout, domain=Domain.FILE)


def _signs_changed(g: Graph, bits: ir.Value) -> ir.Value:
    """The bits of UINT64 as INT64 in the same order, or back: the sum wraps."""
    return g.op("Add", bits, g.ints(np.iinfo(np.int64).min))


def _named(name: str) -> Callable[[Graph, ir.Value, ir.Value], ir.Value]:
    return lambda g, lhs, rhs: g.op(name, lhs, rhs)


def _maximum(g: Graph, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The larger operand; if either is NaN the left one, for which Max would give NaN."""
    return g.op("Where", g.op("Less", lhs, rhs), rhs, lhs)


def _minimum(g: Graph, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return g.op("Where", g.op("Less", rhs, lhs), rhs, lhs)


def _shift_left(g: Graph, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """BitShift, which has only unsigned numbers, by the low five bits."""
    bits, distance = (g.cast(value, _D.UINT32) for value in (lhs, rhs))
    distance = g.op("BitwiseAnd", distance, g.constant(31, np.uint32))
    return g.cast(g.op("BitShift", bits, distance, direction="LEFT"), _D.INT32)


_WIDE = _NUMBERS | {_T.UINT64: _D.INT64}

ELEMENTWISE = (
    # Of sums and products the bits are the same with and without a sign.
    Elementwise(Op.STABLEHLO_ADD, _named("Add"), _WIDE),
    Elementwise(Op.STABLEHLO_MULTIPLY, _named("Mul"), _WIDE),
    Elementwise(Op.STABLEHLO_MAXIMUM, _maximum, _WIDE, ordered=True),
    Elementwise(Op.STABLEHLO_MINIMUM, _minimum, _WIDE, ordered=True),
    Elementwise(Op.STABLEHLO_AND, _named("BitwiseAnd"), _BITS | {_T.BOOL: _D.INT32}),
    Elementwise(Op.STABLEHLO_SHIFT_LEFT, _shift_left, _SHIFTED),
)

for row in ELEMENTWISE:
    translator(row.op, versions=(1, 1))(row.translate)


@translator(Op.STABLEHLO_PAD, versions=(1, 1))
def stablehlo_pad(op: OperatorView[StablehloPadOptions], g: Graph) -> None:
    """`spread_and_padded` with the value."""
    input, shape = op["input"], op["input"].shape
    if 0 in padded_shape(shape, op.options) or 0 in shape:
        raise Untranslatable(f"nothing is left of an input of {shape}")
    domain = moved_domain(input, op["value"], op.output)
    fill = g.reshape(widened(g, g.read(op["value"], domain=domain), input.type), ())
    value = widened(g, g.read(input, domain=domain), input.type)
    value = spread_and_padded(g, value, shape, pad_sizes(shape, op.options), fill)
    g.write(op.output, narrowed(g, value, input.type), domain=domain)


@translator(Op.STABLEHLO_GATHER, versions=(1, 1))
def stablehlo_gather(op: OperatorView[StablehloGatherOptions], g: Graph) -> None:
    """GatherND of the elements of all slices; a start is moved back until its slice fits."""
    operand, starts, options = op["operand"], op["start_indices"], op.options
    if starts.type not in (_T.INT32, _T.INT64):
        raise Untranslatable(f"{starts.type.name} start indices")
    batches = batch_shape(starts.shape, options)
    grid = slice_grid(operand.shape, options)
    index = _start_of_slices(op, g, len(batches), grid.shape[-1])
    if grid.ndim > 1:
        inside = [1] * (grid.ndim - 1)
        index = g.op("Add", g.reshape(index, [*batches, *inside, grid.shape[-1]]), g.constant(grid))
    domain = moved_domain(operand, op.output)
    slices = g.op("GatherND", g.read(operand, domain=domain), index)
    offsets = offset_axes(operand.rank, len(batches), options)
    order = [axis for axis in range(op.output.rank) if axis not in offsets] + offsets
    if order != sorted(order):
        slices = g.op("Transpose", slices, perm=np.argsort(order).tolist())
    g.write(op.output, slices, domain=domain)


def _start_of_slices(
    op: OperatorView[StablehloGatherOptions], g: Graph, batches: int, depth: int
) -> ir.Value:
    """The starts along the first `depth` axes, int64 [batches..., depth]."""
    operand, starts, options = op["operand"], op["start_indices"], op.options
    mapped = list(options.start_index_map or ())
    index = g.whole(starts)
    vector = options.index_vector_dim
    if vector == starts.rank:
        index = g.reshape(index, [*starts.shape, 1])
    elif vector < batches:
        order = [axis for axis in range(starts.rank) if axis != vector] + [vector]
        index = g.op("Transpose", index, perm=order)
    limits = np.subtract(operand.shape, slice_sizes(operand.shape, options))[mapped]
    index = g.smaller(index, g.ints(limits))
    index = g.larger(index, g.ints(0))
    return _along_axes(g, index, mapped, depth)


@translator(Op.STABLEHLO_REDUCE_WINDOW, versions=(1, 1))
def stablehlo_reduce_window(op: OperatorView[StablehloReduceWindowOptions], g: Graph) -> None:
    """`spread_and_padded` with the initial value, then slices combined axis by axis."""
    shape = op["input"].shape
    each = WindowAttributes.of(op.options, len(shape))
    windowed = each.padded(shape)
    if min(filter(is_known, (1, *shape, *windowed))) < 1:
        raise Untranslatable(f"nothing is left of an input of {shape}")
    rows = reduced_windows(windowed, each.window, each.strides, each.dilations)
    windows_reduced(op, g, rows, window_function(op), each.edges)


_REDUCTIONS = {
    None: "none",
    Op.STABLEHLO_ADD: "add",
    Op.STABLEHLO_MULTIPLY: "mul",
    Op.STABLEHLO_MAXIMUM: "max",
    Op.STABLEHLO_MINIMUM: "min",
}


@translator(Op.STABLEHLO_SCATTER, versions=(1, 1))
def stablehlo_scatter(op: OperatorView[StablehloScatterOptions], g: Graph) -> None:
    """ScatterElements of the updates into the flat elements.

    Updates out of range go to one more element at the end. Of several updates to one place the
    last one counts.
    """
    operand, indices, updates = op["operand"], op["indices"], op["updates"]
    function, computed = scatter_function(op), _WIDE.get(operand.type)
    ordered = function in (Op.STABLEHLO_MAXIMUM, Op.STABLEHLO_MINIMUM)
    if function is None:
        moved_domain(operand, updates)
    elif computed is None or (operand.type is _T.FLOAT16 and not ordered):
        # TFLite rounds the sums of several updates to 16 bits one after the other.
        raise Untranslatable(f"{function.name} of {operand.type.name}")
    if indices.type not in (_T.INT32, _T.INT64):
        raise Untranslatable(f"{indices.type.name} indices")
    if updates.type is not operand.type:
        raise Untranslatable(f"{updates.type.name} in {operand.type.name}")
    old, new = (
        g.reshape(g.read(tensor, domain=Domain.FILE), [-1]) for tensor in (operand, updates)
    )
    line = g.op("Concat", old, g.constant([0], operand.dtype), axis=0)
    if function is not None and computed is not None:
        line, new = (g.cast(value, computed) for value in (line, new))
    flipped = ordered and operand.type is _T.UINT64
    if flipped:
        line, new = (_signs_changed(g, value) for value in (line, new))
    places = _places_in_line(op, g)
    line = g.op("ScatterElements", line, places, new, reduction=_REDUCTIONS[function])
    bounds = ([0], [prod(operand.shape)])
    result = g.op("Slice", line, *(g.ints(bound) for bound in bounds))
    if flipped:
        result = _signs_changed(g, result)
    if function is not None:
        result = g.cast(result, operand.dtype)
    g.write(op.output, g.reshape(result, operand.shape), domain=Domain.FILE)


def _places_in_line(op: OperatorView[StablehloScatterOptions], g: Graph) -> ir.Value:
    """The flat position of every update, int64; behind the last element if it is out of range."""
    operand, indices, updates = op["operand"], op["indices"], op["updates"]
    shape, steps = operand.shape, [prod(operand.shape[axis + 1 :]) for axis in range(operand.rank)]
    given = np.zeros(indices.shape, np.int64) if indices.data is None else indices.data
    known = scatter_places(given.astype(np.int64), updates.shape, shape, op.options)
    if indices.data is not None:
        known, sizes = known.reshape(operand.rank, -1), np.reshape(shape, (-1, 1))
        inside = ((known >= 0) & (known < sizes)).all(axis=0)
        return g.constant(np.where(inside, np.array(steps, np.int64) @ known, prod(shape)))
    places = g.op("Add", g.constant(np.moveaxis(known, 0, -1)), _starts(op, g))
    limits, zero = g.ints(shape), g.ints(0)
    outside = g.op("Or", g.op("Less", places, zero), g.op("GreaterOrEqual", places, limits))
    last, end = g.ints([-1]), g.ints(prod(shape))
    number = g.op("Mul", places, g.ints(steps))
    number = g.op("ReduceSum", number, last, keepdims=0)
    missed = g.op("ReduceMax", g.cast(outside, _D.INT32), last, keepdims=0)
    line = g.op("Where", g.cast(missed, _D.BOOL), end, number)
    return g.reshape(line, [-1])


def _starts(op: OperatorView[StablehloScatterOptions], g: Graph) -> ir.Value:
    """The computed starts of all blocks of updates, along the axes of the operand.

    The shape is that of the updates, with size 1 for the dimensions of a block, and then the axes.
    """
    indices, shape, vector = op["indices"], op["updates"].shape, op.options.index_vector_dim
    mapped = list(op.options.scatter_dims_to_operand_dims or ())
    windows = op.options.update_window_dims or ()
    if len({*mapped}) != len(mapped):
        raise Untranslatable("a dimension of the operand is named twice")
    start = g.whole(indices)
    if vector < indices.rank - 1:
        order = [axis for axis in range(indices.rank) if axis != vector] + [vector]
        start = g.op("Transpose", start, perm=order)
    spread = [1 if axis in windows else size for axis, size in enumerate(shape)]
    start = g.reshape(start, [*spread, len(mapped)])
    return _along_axes(g, start, mapped, op["operand"].rank)


def _along_axes(g: Graph, starts: ir.Value, mapped: list[int], depth: int) -> ir.Value:
    """Starts [..., mapped] along axes `mapped` as [..., depth], 0 along the others."""
    if mapped == list(range(depth)):
        return starts
    columns = [mapped.index(axis) if axis in mapped else len(mapped) for axis in range(depth)]
    wide = g.op("Pad", starts, g.ints([0, 1]), None, g.ints([-1]))
    return g.op("Gather", wide, g.ints(columns), axis=-1)


@translator(Op.STABLEHLO_RNG_BIT_GENERATOR, versions=(1, 1))
def stablehlo_rng_bit_generator(
    op: OperatorView[StablehloRngBitGeneratorOptions], g: Graph
) -> None:
    """(the state after, bits) of Philox, state [key, counter] or [key, counter, upper half of the
    counter], or of Threefry, state [key, counter]."""
    size, (after, result) = op["state"].shape, op.outputs
    is_threefry = op.options.algorithm is RngAlgorithm.THREEFRY
    if size not in ([(2,)] if is_threefry else [(2,), (3,)]) or result.type not in _RANDOM:
        raise Untranslatable(f"{result.type.name} from a state of shape {size}")
    words = prod(result.shape) * result.dtype.itemsize // 4
    if not words:
        raise Untranslatable("no numbers")
    check_count(g, words)
    blocks = -(-words // (THREEFRY_LANES if is_threefry else PHILOX_LANES))
    state = g.read(op["state"])
    key, start, high = (g.op("Gather", state, g.ints([i])) for i in (0, 1, 2 % size[0]))
    rising = g.op("Range", *(g.ints(n) for n in (0, blocks, 1)))
    counters = g.op("Add", start, g.cast(rising, _D.UINT64))
    numbers = threefry(g, key, counters) if is_threefry else philox(g, key, counters, high)
    first = g.op("Slice", numbers, g.ints([0]), g.ints([words]))
    g.write(result, g.reshape(integers(g, first, result.type), result.shape))
    moved = g.constant([0, blocks, 0][: size[0]], np.uint64)
    g.write(after, g.op("Add", state, moved))
