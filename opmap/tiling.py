"""Repeating, reversing, spreading and blocking of elements: TILE to BATCH_TO_SPACE_ND.

All these operators move codes and do not change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.complex_arithmetic import as_channels, as_pairs
from tflite_ort.opmap.idioms.computed_axes import neighbouring_axes
from tflite_ort.opmap.idioms.indices import affordable, failing, sizes_of
from tflite_ort.opmap.idioms.movement import (
    code_constant,
    integers,
    moved_domain,
    narrowed,
    widened,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Op,
    OperatorView,
    ReverseSequenceOptions,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.shapes.tiling import reversed_axes
from tflite_ort.schema.values.complex_pairs import is_complex, paired_shape
from tflite_ort.schema.values.sizes import has_zero, is_known, known_product

Array = npt.NDArray[Any]

# Elements of what DILATE cuts its result out of, several times as many as the result has.
_MOST_PADDED = 1 << 24


@translator(Op.TILE, versions=(1, 3))
def tile(op: OperatorView[Any], g: Graph) -> None:
    """Tile."""
    op = as_pairs(op, multiples=1)
    if op["multiples"].is_constant:
        domain, layout, value = _moved(op, g)
        multiples = g.ints(layout.shape(integers(op["multiples"])))
    else:
        domain, layout = moved_domain(op["input"], op.output), Layout.LAST
        value = g.read(op["input"], domain=domain)
        multiples = g.reshape(sizes_of(g, op["multiples"]), (op["input"].rank,))
        sizes = g.op("Mul", multiples, g.shape(op["input"].shape))
        multiples = affordable(g, multiples, sizes, op)
    g.write(op.output, g.op("Tile", value, multiples), layout=layout, domain=domain)


@translator(Op.BROADCAST_TO, versions=(2, 4))
def broadcast_to(op: OperatorView[Any], g: Graph) -> None:
    """Expand; the graph fails if the result would be larger than the shape asked for."""
    op = as_pairs(op, shape=2)
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    shape = sizes_of(g, op["shape"])
    if not is_known(*input.shape, *output.shape):
        sizes = g.shape((*(1,) * (output.rank - input.rank), *input.shape))
        single = g.op("Equal", sizes, g.ints(1))
        fits = g.op("Or", single, g.op("Equal", sizes, shape))
        shape = failing(g, shape, g.op("Not", fits))
        shape = affordable(g, shape, shape, op)
    g.write(output, g.op("Expand", g.read(input, domain=domain), shape), domain=domain)


@translator(Op.BROADCAST_ARGS, versions=(1, 1))
def broadcast_args(op: OperatorView[Any], g: Graph) -> None:
    """Where(a == 1, b, a); the graph fails if a and b differ and neither is 1."""
    a, b = (_of_rank(g, op[name], op.output.shape[0]) for name in ("a", "b"))
    one = g.ints(1)
    stretched = g.op("Equal", a, one)
    fits = g.op("Or", g.op("Or", stretched, g.op("Equal", b, one)), g.op("Equal", a, b))
    shape = failing(g, g.op("Where", stretched, b, a), g.op("Not", fits))
    g.write(op.output, g.cast(shape, ir.DataType[op.output.type.name]))


def _of_rank(g: Graph, shape: TensorView, rank: int) -> ir.Value:
    """A shape as int64, extended to `rank` by ones in front."""
    value = g.whole(shape)
    missing = rank - shape.shape[0]
    if not missing:
        return value
    return g.op("Concat", g.constant(np.ones(missing, np.int64)), value, axis=0)


@translator(Op.REVERSE_V2, versions=(1, 4))
def reverse_v2(op: OperatorView[Any], g: Graph) -> None:
    """Slice with steps of -1 from the last element to before the first."""
    listed, rank = op["axes"], op["input"].rank
    if listed.data is None:
        domain, layout = moved_domain(op["input"], op.output), Layout.LAST
        value = g.read(op["input"], domain=domain)
        axes = neighbouring_axes(g, listed, rank)
    else:
        domain, layout, value = _moved(op, g)
        axes = g.ints([layout.axis(axis, rank) for axis in reversed_axes(listed.data, rank)])
    count = prod(listed.shape)
    first, before_all, step = (
        g.ints([bound] * count) for bound in (-1, np.iinfo(np.int64).min, -1)
    )
    if count:
        value = g.op("Slice", value, first, before_all, axes, step)
    g.write(op.output, value, layout=layout, domain=domain)


@translator(Op.REVERSE_SEQUENCE, versions=(1, 1))
def reverse_sequence(op: OperatorView[ReverseSequenceOptions], g: Graph) -> None:
    """ReverseSequence; two Transposes bring batch and time to the front if they are elsewhere."""
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    batch, time = op.options.batch_dim, op.options.seq_dim
    given = op["lengths"].data
    if given is not None and is_known(input.shape[time]) and (given > input.shape[time]).any():
        raise Untranslatable(f"a length above {input.shape[time]}")
    lengths = g.whole(op["lengths"])
    lengths = g.larger(lengths, g.ints(0))
    value, rank = g.read(input, domain=domain), input.rank
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    in_front = {batch, time} == {0, 1}
    if not in_front:
        value, batch, time = g.op("Transpose", value, perm=order), 0, 1
    value = g.op("ReverseSequence", value, lengths, batch_axis=batch, time_axis=time)
    if not in_front:
        value = g.op("Transpose", value, perm=np.argsort(order).tolist())
    g.write(output, value, domain=domain)


@translator(Op.MATRIX_DIAG, versions=(1, 1))
def matrix_diag(op: OperatorView[Any], g: Graph) -> None:
    """MATRIX_SET_DIAG of zeros; in a quantized tensor these are the code 0, as in TFLite."""
    diagonal, output = op["diagonal"], op.output
    domain = moved_domain(diagonal, output)
    shape = g.shape((*diagonal.shape, diagonal.shape[-1]))
    zeros = g.op("Expand", code_constant(g, 0, output, domain), shape)
    _write_with_diagonal(op, g, zeros, g.read(diagonal, domain=domain), domain)


@translator(Op.MATRIX_SET_DIAG, versions=(1, 1))
def matrix_set_diag(op: OperatorView[Any], g: Graph) -> None:
    """ScatterElements along the flat matrix: element i of a diagonal is at i * (N + 1)."""
    input, diagonal, output = op["input"], op["diagonal"], op.output
    domain = moved_domain(input, diagonal, output)
    _write_with_diagonal(
        op, g, g.read(input, domain=domain), g.read(diagonal, domain=domain), domain
    )


def _write_with_diagonal(
    op: OperatorView[Any], g: Graph, matrices: ir.Value, diagonal: ir.Value, domain: Domain
) -> None:
    *batch, rows, columns = op.output.shape
    if has_zero(*op.output.shape):
        raise Untranslatable("matrices without elements")
    sides = (g.size(rows), g.size(columns))
    if is_known(rows, columns):
        length = min(rows, columns)
        lengths = [g.shape((*batch, rows * columns)), g.shape((*batch, length))]
        places = g.ints(np.arange(length) * (columns + 1))
    else:
        least = g.smaller(*sides)
        each = (g.op("Mul", *sides), least)
        lengths = [g.op("Concat", g.shape(batch), size, axis=0) for size in each]
        zero, one = g.ints(0), g.ints(1)
        counted = g.op("Range", zero, g.reshape(least, ()), one)
        places = g.op("Mul", counted, g.op("Add", sides[1], one))
    lines, diagonal = (
        g.op("Reshape", value, shape, allowzero=1)
        for value, shape in zip((matrices, diagonal), lengths, strict=True)
    )
    places = g.op("Expand", places, lengths[1])
    value = g.op("ScatterElements", lines, places, diagonal, axis=-1)
    g.write(op.output, g.reshape(value, op.output.shape), domain=domain)


@translator(Op.DILATE, versions=(1, 1))
def dilate(op: OperatorView[Any], g: Graph) -> None:
    """A dimension of size 1 behind every dilated one is padded and joined with it.

    A Slice drops the padding behind the last element. One element has no neighbour: its dimension
    stays as it is.
    """
    input, output = op["input"], op.output
    domain = moved_domain(input, op["padding"], output)
    if not op["dilations"].is_constant:
        _computed_dilate(op, g, domain)
        return
    steps = [
        1 if size == 1 else step
        for size, step in zip(input.shape, integers(op["dilations"]), strict=True)
    ]
    whole = [
        size * step if step > 1 else size for size, step in zip(input.shape, steps, strict=True)
    ]
    if g.target.fallback and known_product(whole) > _MOST_PADDED:
        raise Untranslatable("numpy needs less memory for large results")
    split: list[int] = []
    after: list[int] = []
    for size, step in zip(input.shape, steps, strict=True):
        split += [size, 1] if step > 1 else [size]
        after += [0, step - 1] if step > 1 else [0]
    value = widened(g, g.reshape(g.read(input, domain=domain), split), input.type)
    padding = widened(g, g.reshape(g.read(op["padding"], domain=domain), ()), input.type)
    value = g.op("Pad", value, g.ints([0] * len(after) + after), padding)
    value = g.reshape(narrowed(g, value, input.type), whole)
    axes = [axis for axis, step in enumerate(steps) if step > 1]
    bounds = ([0] * len(axes), [output.shape[axis] for axis in axes], axes)
    value = g.op("Slice", value, *(g.ints(bound) for bound in bounds))
    g.write(output, value, domain=domain)


def _computed_dilate(op: OperatorView[Any], g: Graph, domain: Domain) -> None:
    """As `dilate`, with computed dilations and for all dimensions."""
    input, steps = op["input"], _positive(g, op["dilations"])
    rank, shape, one = input.rank, g.shape(input.shape), g.ints(1)
    steps = g.op("Where", g.op("Equal", shape, one), one, steps)
    steps = affordable(g, steps, g.op("Mul", steps, shape), op)
    nothing, ones = g.ints([0] * rank), g.ints([1] * rank)
    value = widened(g, g.read(input, domain=domain), input.type)
    padding = widened(g, g.reshape(g.read(op["padding"], domain=domain), ()), input.type)
    after = _alternating(g, nothing, g.op("Sub", steps, one))
    value = _shaped(g, value, _alternating(g, shape, ones))
    value = g.op("Pad", value, g.op("Concat", nothing, nothing, after, axis=0), padding)
    whole = g.op("Mul", shape, steps)
    ends = g.larger(g.op("Add", g.op("Sub", whole, steps), one), nothing)
    value = g.op("Slice", _shaped(g, value, whole), nothing, ends)
    g.write(op.output, narrowed(g, value, input.type), domain=domain)


@translator(Op.SPACE_TO_BATCH_ND, versions=(1, 4))
def space_to_batch_nd(op: OperatorView[Any], g: Graph) -> None:
    """Pad; split spatial axes to (size / block, block); move the blocks in front of the batch."""
    if not _is_known(op):
        _computed_space_to_batch(op, g)
        return
    written, (op, domain, layout, value) = op.output, _channels(op, g)
    input, output, blocks = op["input"], op.output, integers(op["block_shape"])
    split: list[int] = []
    inner: list[int] = []
    outer: list[int] = []
    shape = layout.shape((input.shape[0], *output.shape[1:]))
    for axis, size in zip(layout.permutation(input.rank), shape, strict=True):
        outer.append(len(split))
        split.append(size)
        if 0 < axis < input.rank - 1:
            inner.append(len(split))
            split.append(blocks[axis - 1])
    value = g.reshape(_padded(op, g, value, layout, domain), split)
    value = g.op("Transpose", value, perm=[*inner, *outer])
    value = g.reshape(value, layout.shape(paired_shape(written, written.shape)))
    g.write(written, value, layout=layout, domain=domain)


def _padded(
    op: OperatorView[Any], g: Graph, value: ir.Value, layout: Layout, domain: Domain
) -> ir.Value:
    """The input with constant padding of its spatial dimensions."""
    input, paddings = op["input"], _data(op["paddings"])
    if not paddings.any():
        return value
    pads = np.pad(paddings, ((1, 1), (0, 0)))[list(layout.permutation(input.rank))]
    return _padded_by(op, g, value, g.ints(pads.T.reshape(-1)), domain)


def _padded_by(
    op: OperatorView[Any], g: Graph, value: ir.Value, pads: ir.Value, domain: Domain
) -> ir.Value:
    """`value` padded with the code of zero in the output."""
    type = op["input"].type
    code = widened(g, code_constant(g, op.output.edge_code, op.output, domain), type)
    return narrowed(g, g.op("Pad", widened(g, value, type), pads, code), type)


@translator(Op.BATCH_TO_SPACE_ND, versions=(1, 4))
def batch_to_space_nd(op: OperatorView[Any], g: Graph) -> None:
    """Move the blocks from the batch behind their spatial axes, join them, and crop."""
    if not _is_known(op):
        _computed_batch_to_space(op, g)
        return
    written, (op, domain, layout, value) = op.output, _channels(op, g)
    input, output, blocks = op["input"], op.output, integers(op["block_shape"])
    shape = (output.shape[0], *layout.shape(input.shape)[1:])
    order: list[int] = []
    joined: list[int] = []
    for place, axis in enumerate(layout.permutation(input.rank)):
        spatial = 0 < axis < input.rank - 1
        order += [len(blocks) + place, axis - 1] if spatial else [len(blocks) + place]
        joined.append(shape[place] * blocks[axis - 1] if spatial else shape[place])
    value = g.op("Transpose", g.reshape(value, (*blocks, *shape)), perm=order)
    value = g.reshape(value, joined)
    crops = _data(op["crops"])
    if crops.any():
        starts = crops[:, 0]
        ends = starts + output.shape[1:-1]
        axes = [layout.axis(axis, input.rank) for axis in range(1, input.rank - 1)]
        value = g.op("Slice", value, *(g.ints(bounds) for bounds in (starts, ends, axes)))
    if is_complex(written):
        value = g.reshape(value, paired_shape(written, written.shape))
    g.write(written, value, layout=layout, domain=domain)


def _is_known(op: OperatorView[Any]) -> bool:
    """Whether the operands that determine the shapes are known."""
    _, *lists = op.present_inputs()
    return is_known(*op["input"].shape) and all(tensor.is_constant for tensor in lists)


def _computed_space_to_batch(op: OperatorView[Any], g: Graph) -> None:
    """As with constants, in computed shapes; Reshape fails if a block does not fit."""
    input, domain = op["input"], moved_domain(op["input"], op.output)
    blocks, paddings = _positive(g, op["block_shape"]), sizes_of(g, op["paddings"])
    wanted = g.op(
        "Add", g.shape(input.shape[1:-1]), g.op("ReduceSum", paddings, g.ints([1]), keepdims=0)
    )
    paddings = affordable(g, paddings, wanted, op)
    before, after = (g.op("Gather", paddings, g.ints(side), axis=1) for side in (0, 1))
    edge = g.ints([0])
    pads = g.op("Concat", edge, before, edge, edge, after, edge, axis=0)
    value = _padded_by(op, g, g.read(input, domain=domain), pads, domain)
    batch, area, channels = _sizes(g, value, input.rank)
    whole = g.op("Div", area, blocks)
    value = _shaped(g, value, batch, _alternating(g, whole, blocks), channels)
    places = range(1, 2 * input.rank - 3)
    perm = [*places[1::2], 0, *places[::2], 2 * input.rank - 3]
    batch = g.op("Mul", batch, g.op("ReduceProd", blocks))
    value = _shaped(g, g.op("Transpose", value, perm=perm), batch, whole, channels)
    g.write(op.output, value, domain=domain)


def _computed_batch_to_space(op: OperatorView[Any], g: Graph) -> None:
    """As with constants, in computed shapes; Reshape fails if the blocks do not fit."""
    input, domain = op["input"], moved_domain(op["input"], op.output)
    blocks, crops, count = _positive(g, op["block_shape"]), sizes_of(g, op["crops"]), input.rank - 2
    value = g.read(input, domain=domain)
    batch, area, channels = _sizes(g, value, input.rank)
    batch = g.op("Div", batch, g.op("ReduceProd", blocks))
    value = _shaped(g, value, blocks, batch, area, channels)
    pairs = [place for axis in range(count) for place in (count + 1 + axis, axis)]
    value = g.op("Transpose", value, perm=[count, *pairs, 2 * count + 1])
    joined = g.op("Mul", area, blocks)
    value = _shaped(g, value, batch, joined, channels)
    starts, cut = (g.op("Gather", crops, g.ints(side), axis=1) for side in (0, 1))
    ends = g.op("Sub", joined, cut)
    starts = failing(g, starts, g.op("Greater", starts, ends))
    value = g.op("Slice", value, starts, ends, g.ints(range(1, count + 1)))
    g.write(op.output, value, domain=domain)


def _alternating(g: Graph, *lists: ir.Value) -> ir.Value:
    """Interleave lists: the first numbers of all, then the second ones, and so on."""
    columns = (g.op("Unsqueeze", values, g.ints([1])) for values in lists)
    return g.reshape(g.op("Concat", *columns, axis=1), (-1,))


def _positive(g: Graph, listed: TensorView) -> ir.Value:
    """A list as int64; the graph fails if a number is below 1."""
    value = g.whole(listed)
    return failing(g, value, g.op("Less", value, g.ints(1)))


def _sizes(g: Graph, value: ir.Value, rank: int) -> Sequence[ir.Value]:
    """The sizes of a channels-last tensor: batch [1], area [rank - 2] and channels [1]."""
    parts = g.ints([1, rank - 2, 1])
    return g.op_multi("Split", g.op("Shape", value), parts, outputs=3, axis=0)


def _shaped(g: Graph, value: ir.Value, *sizes: ir.Value) -> ir.Value:
    return g.op("Reshape", value, g.op("Concat", *sizes, axis=0), allowzero=1)


def _moved(op: OperatorView[Any], g: Graph) -> tuple[Domain, Layout, ir.Value]:
    """The input, with the domain and the layout in which its codes are moved."""
    input = op["input"]
    domain = moved_domain(input, op.output)
    layout = g.layout(input) if domain is Domain.STORED else Layout.LAST
    return domain, layout, g.read(input, layout=layout, domain=domain)


def _channels(
    op: OperatorView[Any], g: Graph
) -> tuple[OperatorView[Any], Domain, Layout, ir.Value]:
    """`op` with complex numbers as two channels of reals, and what `_moved` has of it."""
    reals = as_channels(op)
    domain, layout, value = _moved(reals, g)
    if is_complex(op["input"]):
        value = g.reshape(value, reals["input"].shape)
    return reals, domain, layout, value


def _data(tensor: TensorView) -> Array:
    """The values of a tensor that is declared constant."""
    return np.asarray(tensor.data)
