"""Reordering, joining, splitting and padding: RESHAPE to MIRROR_PAD. They do not change codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.bits import bits_of, check_types, number_of
from tflite_ort.opmap.idioms.complex_arithmetic import as_pairs
from tflite_ort.opmap.idioms.computed_axes import ComputedAxis, transpose_as_computed
from tflite_ort.opmap.idioms.indices import affordable, agreeing, failing, sizes_of
from tflite_ort.opmap.idioms.movement import (
    integers,
    is_told,
    keeps_rows,
    moved_domain,
    narrowed,
    same_order,
    widened,
)
from tflite_ort.opmap.idioms.padding import (
    mirrorable,
    pad_layout,
    pad_value,
    pads,
    symmetric,
)
from tflite_ort.opmap.idioms.rescaled_codes import operand_to_join
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ActivationFunctionType,
    ConcatenationOptions,
    DepthToSpaceOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    OperatorView,
    PackOptions,
    ReshapeOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    TensorType,
    TensorView,
    UnpackOptions,
    Untranslatable,
)
from tflite_ort.schema.shapes.reshaping import shape_operand, split_sizes, squeezed_axes
from tflite_ort.schema.values.complex_pairs import is_complex, paired_shape
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known, is_one, may_differ, one_is_inferred

_BOOL = ir.DataType.BOOL
# The types that ONNX Runtime's DepthToSpace and SpaceToDepth take; the latter no codes in 1.27.
_BLOCKED_BY_ORT = frozenset({TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8})


@translator(Op.RESHAPE, versions=(1, 1))
def reshape(op: OperatorView[ReshapeOptions], g: Graph) -> None:
    """Reshape; to the computed shape where the shape of the input does not tell it."""
    input, output, wanted = op["input"], op.output, shape_operand(op)
    if wanted is None or wanted.is_constant or is_told(wanted, input, output):
        _same_elements(op, g)
        return
    domain = moved_domain(input, output)
    target = g.whole(wanted)
    value = g.op("Reshape", g.read(input, domain=domain), target, allowzero=1)
    g.write(output, value, domain=domain)


@translator(Op.SQUEEZE, versions=(1, 2))
def squeeze(op: OperatorView[SqueezeOptions], g: Graph) -> None:
    """Reshape; for an unknown size Squeeze, which fails if it is not 1."""
    input, output = op["input"], op.output
    axes = squeezed_axes(input.shape, op.options.squeeze_dims)
    if all(is_one(input.shape[axis]) for axis in axes):
        _same_elements(op, g, "Squeeze", axes)
        return
    domain = moved_domain(input, output)
    value = g.op("Squeeze", g.read(input, domain=domain), g.ints(axes))
    g.write(output, value, domain=domain)


@translator(Op.EXPAND_DIMS, versions=(1, 1))
def expand_dims(op: OperatorView[Any], g: Graph) -> None:
    """Reshape; Unsqueeze for a computed axis."""
    axis, domain = op["axis"], moved_domain(op["input"], op.output)
    if axis.is_constant:
        (number,) = integers(axis)
        _same_elements(op, g, "Unsqueeze", [normalized_axis(number, op.output.rank)])
        return
    place = g.reshape(g.whole(axis), (1,))
    g.write(op.output, g.op("Unsqueeze", g.read(op["input"], domain=domain), place), domain=domain)


def _same_elements(
    op: OperatorView[Any], g: Graph, kind: str = "Reshape", axes: Sequence[int] = ()
) -> None:
    """The elements in channels-last order, which for [N, 1, 1, C] channels-first is too.

    Args:
        kind, axes: Squeeze or Unsqueeze of these axes does that without the sizes of the others.
    """
    input, output = op["input"], op.output
    if is_complex(input):
        g.write(output, g.reshape(g.read(input), paired_shape(output, output.shape)))
        return
    domain = moved_domain(input, output)
    if keeps_rows(input, output, g, domain):
        return
    in_order = domain is Domain.STORED and same_order(input.shape)
    in_order = in_order and not g.transposes_cancel(input)
    layout = g.layout(input) if in_order else Layout.LAST
    value = g.read(input, layout=layout, domain=domain)
    known = is_known(*output.shape) or one_is_inferred(output.shape)
    if axes and not known and layout is Layout.LAST:
        value = g.op(kind, value, g.ints(axes))
    elif layout is Layout.FIRST or may_differ(input.shape, output.shape):
        value = g.reshape(value, output.shape)
    g.write(output, value, domain=domain)


@translator(Op.TRANSPOSE, versions=(1, 9))
def transpose(op: OperatorView[Any], g: Graph) -> None:
    """Transpose; no node if the result is the input in its other layout."""
    if not op["perm"].is_constant:
        transpose_as_computed(op, g)
        return
    perm = [normalized_axis(axis, op["input"].rank) for axis in integers(op["perm"])]
    op = as_pairs(op)
    input, output, rank = op["input"], op.output, op["input"].rank
    perm += range(len(perm), rank)
    domain = moved_domain(input, output)
    source = g.layout(input) if domain is Domain.STORED else Layout.LAST
    target = Layout.LAST
    order = _order(perm, source, target)
    if domain is Domain.STORED and source is Layout.FIRST and perm[-1] == rank - 1:
        target = Layout.FIRST
        order = _order(perm, source, target)
    elif domain is Domain.STORED and _order(perm, source, Layout.FIRST) == list(range(rank)):
        target, order = Layout.FIRST, list(range(rank))
    value = g.read(input, layout=source, domain=domain)
    if order != list(range(rank)):
        value = g.op("Transpose", value, perm=order)
    g.write(output, value, layout=target, domain=domain)


def _order(perm: list[int], source: Layout, target: Layout) -> list[int]:
    """The perm of ONNX from the input in layout `source` to the output in layout `target`."""
    rank = len(perm)
    return [source.axis(perm[axis], rank) for axis in target.permutation(rank)]


@translator(Op.CONCATENATION, versions=(1, 7))
def concatenation(op: OperatorView[ConcatenationOptions], g: Graph) -> None:
    """Concat of the codes; of real numbers if a uint8 input has another scale than the output."""
    values, output = op.present_inputs(), op.output
    if op.options.fused_activation_function != ActivationFunctionType.NONE:
        raise Untranslatable("CONCATENATION takes no fused activation")
    domain = moved_domain(*values, output)
    if any(_rescaled(value, output) for value in values):
        domain = Domain.REAL
    layout = Layout.LAST if domain is Domain.FILE else g.layout(*values)
    axis = layout.axis(normalized_axis(op.options.axis, output.rank), output.rank)
    parts = [operand_to_join(g, value, output, layout, domain) for value in values]
    g.write(output, g.op("Concat", *parts, axis=axis), layout=layout, domain=domain)


def _rescaled(value: TensorView, output: TensorView) -> bool:
    """Whether codes of `value` stand for other numbers in `output`."""
    if value.quantization is None or value.quantization.equals(output.quantization):
        return False
    if value.type is TensorType.INT8:
        raise Untranslatable("int8 inputs and output differ in scale or zero point")
    return value.type is TensorType.UINT8


@translator(Op.PACK, versions=(1, 5))
def pack(op: OperatorView[PackOptions], g: Graph) -> None:
    """Concat and one Reshape; along a last axis Unsqueeze and Concat."""
    values, output = op.present_inputs(), op.output
    domain = moved_domain(*values, output)
    axis = normalized_axis(op.options.axis, output.rank)
    if axis < values[0].rank and is_known(*output.shape):
        joined = g.op("Concat", *(g.read(value, domain=domain) for value in values), axis=axis)
        g.write(output, g.reshape(joined, output.shape), domain=domain)
        return
    place = g.ints([axis])
    parts = [g.op("Unsqueeze", g.read(value, domain=domain), place) for value in values]
    g.write(output, g.op("Concat", *parts, axis=axis), domain=domain)


@translator(Op.UNPACK, versions=(1, 6))
def unpack(op: OperatorView[UnpackOptions], g: Graph) -> None:
    """Split, and Squeeze of the parts."""
    input = op["input"]
    domain = moved_domain(input, *op.outputs)
    axis, count = normalized_axis(op.options.axis, input.rank), len(op.outputs)
    value = g.read(input, domain=domain)
    parts = g.op_multi("Split", value, outputs=count, axis=axis, num_outputs=count)
    for part, output in zip(parts, op.outputs, strict=True):
        squeezed = g.op("Squeeze", part, g.ints([axis]))
        g.write(output, squeezed, domain=domain)


@translator(Op.SPLIT, versions=(1, 5))
def split(op: OperatorView[SplitOptions], g: Graph) -> None:
    """Split into equal parts; the graph fails if they would not be equal."""
    axis, count = _axis(op, g), len(op.outputs)
    if isinstance(axis, int) and is_known(size := op["input"].shape[axis]):
        _split(op, g, axis, g.ints([size // count] * count))
        return
    whole, parts = _length(op, g, axis), g.ints([count])
    part = failing(g, g.op("Div", whole, parts), g.cast(g.op("Mod", whole, parts), _BOOL))
    _split(op, g, axis, g.op("Expand", part, parts))


@translator(Op.SPLIT_V, versions=(1, 3))
def split_v(op: OperatorView[SplitVOptions], g: Graph) -> None:
    """Split into parts of listed sizes, whose sum has to be the size of the axis."""
    axis, listed = _axis(op, g), op["size_splits"]
    if isinstance(axis, int) and listed.is_constant:
        sizes = split_sizes(op["input"].shape[axis], tuple(integers(listed)))
        if is_known(*sizes):
            _split(op, g, axis, g.ints(sizes))
            return
    whole = _length(op, g, axis)
    wanted = g.whole(listed)
    zero, one = g.ints(0), g.ints(1)
    left = g.op("Equal", wanted, g.ints(-1))
    lefts = g.op("ReduceSum", g.cast(left, ir.DataType.INT64))
    rest = g.op("Sub", whole, g.op("ReduceSum", g.larger(wanted, zero)))
    filled = g.op("Where", left, rest, wanted)
    filled = failing(g, filled, g.op("Or", g.op("Less", filled, zero), g.op("Greater", lefts, one)))
    _split(op, g, axis, filled)


def _axis(op: OperatorView[Any], g: Graph) -> int | ComputedAxis:
    if op["axis"].is_constant:
        return normalized_axis(integers(op["axis"])[0], op["input"].rank)
    return ComputedAxis.of(g, op["axis"], op["input"].shape)


def _length(op: OperatorView[Any], g: Graph, axis: int | ComputedAxis) -> ir.Value:
    """The size of the axis, int64 [1]."""
    return g.size(op["input"].shape[axis]) if isinstance(axis, int) else axis.size


def _split(op: OperatorView[Any], g: Graph, axis: int | ComputedAxis, sizes: ir.Value) -> None:
    input, count = op["input"], len(op.outputs)
    domain = moved_domain(input, *op.outputs)
    if isinstance(axis, ComputedAxis):
        value = axis.folded(g.read(input, domain=domain))
        parts = g.op_multi("Split", value, sizes, outputs=count, axis=1)
        each = g.op_multi("Split", sizes, outputs=count, axis=0, num_outputs=count)
        for part, size, output in zip(parts, each, op.outputs, strict=True):
            g.write(output, axis.resized(part, size), domain=domain)
        return
    layout = Layout.LAST if domain is Domain.FILE else g.layout(input)
    value = g.read(input, layout=layout, domain=domain)
    place = layout.axis(axis, input.rank)
    parts = g.op_multi("Split", value, sizes, outputs=count, axis=place)
    for part, output in zip(parts, op.outputs, strict=True):
        g.write(output, part, layout=layout, domain=domain)


@translator(Op.SHAPE, versions=(1, 1))
def shape(op: OperatorView[Any], g: Graph) -> None:
    """Shape for the sizes that depend on data, otherwise a constant."""
    shape = g.shape(op["input"].shape)
    g.write(op.output, g.cast(shape, op.output.dtype))


@translator(Op.RANK, versions=(1, 1))
def rank(op: OperatorView[Any], g: Graph) -> None:
    """A constant."""
    g.write(op.output, g.constant(op["input"].rank, np.int32))


@translator(Op.BITCAST, versions=(1, 1))
def bitcast(op: OperatorView[Any], g: Graph) -> None:
    """Cast between integers of one size, which keeps the bits.

    ONNX 21 has no node for other types. The bits are computed as integers, and split or joined
    along a last dimension.
    """
    input, output = op["input"], op.output
    kinds = {input.dtype.kind, output.dtype.kind}
    same = input.type is output.type
    if input.dtype.itemsize != output.dtype.itemsize or not (same or kinds <= {"i", "u"}):
        check_types(g, input.type, output.type)
        bits = bits_of(g, g.read(input, domain=Domain.FILE), input)
        g.write(output, number_of(g, _recut(op, g, bits), output.type), domain=Domain.FILE)
        return
    layout = g.layout(input)
    value = g.read(input, layout=layout, domain=Domain.FILE)
    if not same:
        value = g.cast(value, output.dtype)
    g.write(output, value, layout=layout, domain=Domain.FILE)


def _recut(op: OperatorView[Any], g: Graph, bits: ir.Value) -> ir.Value:
    """Split or join the bits of the input for the elements of the output, low ones first."""
    before, after = (8 * tensor.dtype.itemsize for tensor in (op["input"], op.output))
    last = g.ints([-1])
    if before > after:
        places = g.ints([2**place for place in range(0, before, after)])
        parts = g.op("Div", g.op("Unsqueeze", bits, last), places)
        return g.op("Mod", parts, g.ints(2**after))
    if before == after:
        return bits
    # ONNX Runtime's ReduceSum does not drop a dimension if there are no elements.
    count = after // before
    first = g.reshape(agreeing(g, g.ints([0]), op["input"].shape[-1:], (count,)), ())
    whole = g.op("Gather", bits, first, axis=-1)
    for part in range(1, count):
        value = g.op("Gather", bits, g.ints(part), axis=-1)
        moved = g.op("Mul", value, g.ints(2 ** (part * before)))
        whole = g.op("Add", whole, moved)
    return whole


@translator(Op.FILL, versions=(1, 5))
def fill(op: OperatorView[Any], g: Graph) -> None:
    """Expand of the code; the graph fails on a negative size."""
    value, output = op["value"], op.output
    if value.rank or value.type is not output.type:
        raise Untranslatable(f"value of shape {value.shape}, {value.type.name}")
    op = as_pairs(op, dims=2)
    value, output = op["value"], op.output
    domain = moved_domain(value, output)
    if value.quantization is not None and not value.quantization.equals(output.quantization):
        raise Untranslatable("value and output differ in scale or zero point")
    shape = sizes_of(g, op["dims"])
    shape = affordable(g, shape, shape, op)
    g.write(output, g.op("Expand", g.read(value, domain=domain), shape), domain=domain)


@translator(Op.RANGE, versions=(1, 2))
def range_(op: OperatorView[Any], g: Graph) -> None:
    """Range; the graph fails if steps of delta do not lead from start to limit.

    The number of floats is computed in float32, as in TFLite, and a longer Range is sliced: ONNX
    Runtime divides in double.
    """
    bounds = [op[name] for name in ("start", "limit", "delta")]
    if {bound.type for bound in bounds} != {op.output.type}:
        raise Untranslatable("start, limit, delta and result differ in type")
    start, limit, delta = (g.reshape(g.read(bound), ()) for bound in bounds)
    span, zero = g.op("Sub", limit, start), g.constant(0, op.output.dtype)
    up, down = (
        g.op("And", g.op(towards, delta, zero), g.op(f"{towards}OrEqual", span, zero))
        for towards in ("Greater", "Less")
    )
    wrong = g.op("Not", g.op("Or", up, down))
    if op.output.type is not TensorType.FLOAT32:
        wide = [g.cast(bound, ir.DataType.DOUBLE) for bound in (start, limit, delta)]
        count = g.op("Div", g.op("Sub", wide[1], wide[0]), wide[2])
        step = failing(g, g.cast(delta, ir.DataType.INT64), wrong)
        step = g.cast(affordable(g, step, count, op), ir.DataType[op.output.type.name])
        g.write(op.output, g.op("Range", start, limit, step))
        return
    count = g.op("Ceil", g.op("Abs", g.op("Div", span, delta)))
    nothing = g.cast(affordable(g, g.ints(0), count, op), ir.DataType.FLOAT)
    limit = g.op("Add", limit, g.op("Add", delta, nothing))
    count = failing(g, g.cast(count, ir.DataType.INT64), wrong)
    longer = g.op("Range", start, limit, delta)
    g.write(op.output, g.op("Slice", longer, g.ints([0]), g.reshape(count, (1,))))


@translator(Op.SPACE_TO_DEPTH, versions=(1, 2))
def space_to_depth(op: OperatorView[SpaceToDepthOptions], g: Graph) -> None:
    """Channels-first SpaceToDepth; channels-last Reshape, Transpose, Reshape."""
    n, h, w, c = op.output.shape
    b = op.options.block_size
    _blocks(op, g, "SpaceToDepth", lambda: (n, h, b, w, b, c // (b * b)))


@translator(Op.DEPTH_TO_SPACE, versions=(1, 2))
def depth_to_space(op: OperatorView[DepthToSpaceOptions], g: Graph) -> None:
    """Channels-first DepthToSpace (DCR); channels-last Reshape, Transpose, Reshape."""
    n, h, w, c = op["input"].shape
    b = op.options.block_size
    _blocks(op, g, "DepthToSpace", lambda: (n, h, w, b, b, c // (b * b)))


def _blocks(
    op: OperatorView[Any], g: Graph, name: str, blocks: Callable[[], tuple[int, ...]]
) -> None:
    """Channels-last, both operators swap axes 2 and 3 of the blocks."""
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    kind = carried_type(input)
    everywhere = g.target.fallback or name == "DepthToSpace" or kind is not TensorType.UINT8
    known = domain is Domain.STORED and kind in _BLOCKED_BY_ORT
    layout = g.layout(input) if known and everywhere else Layout.LAST
    if known and not is_known(*input.shape[1:]):
        layout = Layout.FIRST
    value = g.read(input, layout=layout, domain=domain)
    if layout is Layout.FIRST:
        value = g.op(name, value, blocksize=op.options.block_size)
    else:
        swapped = g.op("Transpose", g.reshape(value, blocks()), perm=[0, 1, 3, 2, 4, 5])
        value = g.reshape(swapped, output.shape)
    g.write(output, value, layout=layout, domain=domain)


@translator(Op.PAD, versions=(1, 6))
def pad(op: OperatorView[Any], g: Graph) -> None:
    """Pad with the value, or without one with the code of zero in the output."""
    if op.get("value") is None:
        op = as_pairs(op, paddings=(0, 0))
    input, output, given = op["input"], op.output, op.get("value")
    domain = moved_domain(input, output, *(() if given is None else (given,)))
    layout = pad_layout(op, g, domain)
    value = pad_value(op, g, domain)
    x = widened(g, g.read(input, layout=layout, domain=domain), input.type)
    padded = g.op("Pad", x, pads(op, g, layout), widened(g, value, input.type))
    g.write(output, narrowed(g, padded, input.type), layout=layout, domain=domain)


@translator(Op.PADV2, versions=(1, 6))
def padv2(op: OperatorView[Any], g: Graph) -> None:
    """As PAD; converters use it where there is a value."""
    pad(op, g)


@translator(Op.MIRROR_PAD, versions=(1, 3))
def mirror_pad(op: OperatorView[MirrorPadOptions], g: Graph) -> None:
    """Pad (reflect); SYMMETRIC, which ONNX lacks, joins reversed Slices along all padded axes."""
    op = as_pairs(op, paddings=(0, 0))
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    layout = pad_layout(op, g, domain)
    value = mirrorable(op, g, g.read(input, layout=layout, domain=domain), layout)
    if op.options.mode == MirrorPadMode.REFLECT:
        wide = widened(g, value, input.type)
        value = narrowed(g, g.op("Pad", wide, pads(op, g, layout), mode="reflect"), input.type)
    else:
        value = symmetric(op, g, value, layout)
    g.write(output, value, layout=layout, domain=domain)
