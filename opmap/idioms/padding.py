"""PAD, MIRROR_PAD and STABLEHLO_PAD: operands for Pad of ONNX, and what Pad lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import affordable, failing, sizes_of
from tflite_ort.opmap.idioms.movement import code_constant
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import MirrorPadMode, MirrorPadOptions, Op, OperatorView
from tflite_ort.schema.shapes.reshaping import mirrored
from tflite_ort.schema.values.sizes import is_known, multiple


def symmetric(op: OperatorView[Any], g: Graph, value: ir.Value, layout: Layout) -> ir.Value:
    """`value` between mirror images of its edges: MIRROR_PAD of mode SYMMETRIC."""
    input, paddings = op["input"], op["paddings"]
    if paddings.data is not None:
        for axis, pair in enumerate(paddings.data.tolist()):
            if any(pair):
                value = _mirrored(g, value, pair, layout.axis(axis, input.rank))
        return value
    pairs, zero, one = _computed_pairs(op, g), g.ints(0), g.ints(1)
    for axis in range(input.rank):
        size = g.reshape(g.size(input.shape[axis]), ())
        before, after = (
            g.op("Gather", g.op("Gather", pairs, g.ints(axis)), end) for end in (zero, one)
        )
        counted = g.op("Range", g.op("Neg", before), g.op("Add", size, after), one)
        counted = g.larger(counted, g.op("Sub", g.op("Neg", counted), one))
        last = g.op("Sub", g.op("Add", size, size), one)
        picks = g.smaller(counted, g.op("Sub", last, counted))
        value = g.op("Gather", value, picks, axis=axis)
    return value


def _mirrored(g: Graph, value: ir.Value, pair: Sequence[int], axis: int) -> ir.Value:
    """`value` between its first pair[0] and its last pair[1] elements, both reversed."""
    before, after = pair
    bounds = ((before - 1, -np.iinfo(np.int64).max), (-1, -1 - after))
    ends = [g.op("Slice", value, *(g.ints([n]) for n in (*bound, axis, -1))) for bound in bounds]
    return g.op("Concat", *ends[: before > 0], value, *ends[1:][: after > 0], axis=axis)


def mirrorable(
    op: OperatorView[MirrorPadOptions], g: Graph, value: ir.Value, layout: Layout
) -> ir.Value:
    """The input of a MIRROR_PAD in a graph that fails if it is smaller than its mirror image."""
    pairs, shape = op["paddings"].data, op["input"].shape
    if pairs is None:
        return value
    padded = [size for size, pair in zip(shape, pairs.tolist(), strict=True) if any(pair)]
    if is_known(*padded):
        return value
    least, sizes = mirrored(op.options, pairs), g.op("Shape", value)
    wanted = g.ints([least[axis] for axis in layout.permutation(len(shape))])
    sizes = failing(g, sizes, g.op("Less", sizes, wanted))
    return g.op("Reshape", value, sizes, allowzero=1)


def pad_layout(op: OperatorView[Any], g: Graph, domain: Domain) -> Layout:
    """The layout in which the input is padded; channels-last for computed paddings."""
    movable = domain is not Domain.FILE and op["paddings"].is_constant
    return g.layout(op["input"]) if movable else Layout.LAST


def pads(op: OperatorView[Any], g: Graph, layout: Layout) -> ir.Value:
    """The pads of ONNX: before every axis of `layout`, then after every axis; none negative."""
    paddings, rank = op["paddings"], op["input"].rank
    if paddings.data is not None:
        pads = paddings.data[list(layout.permutation(rank))]
        return g.ints(pads.T.reshape(-1))
    pairs = _computed_pairs(op, g)
    return g.reshape(g.op("Transpose", pairs, perm=[1, 0]), (2 * rank,))


def _computed_pairs(op: OperatorView[Any], g: Graph) -> ir.Value:
    """Paddings [rank, 2] as int64; the graph fails if one is negative, or too large to mirror."""
    pairs = sizes_of(g, op["paddings"])
    if op.op is not Op.MIRROR_PAD:
        added = g.op("ReduceSum", pairs, g.ints([1]), keepdims=0)
        wanted = g.op("Add", g.shape(op["input"].shape), added)
        return affordable(g, pairs, wanted, op)
    sizes = g.op("Unsqueeze", g.shape(op["input"].shape), g.ints([1]))
    if op.options.mode == MirrorPadMode.REFLECT:
        sizes = g.op("Sub", sizes, g.ints(1))
    return failing(g, pairs, g.op("Greater", pairs, sizes))


def pad_value(op: OperatorView[Any], g: Graph, domain: Domain) -> ir.Value:
    """The scalar to pad with, in `domain`."""
    given, output = op.get("value"), op.output
    if given is not None:
        value = g.read(given, domain=domain if given.is_quantized else Domain.STORED)
        return value if given.rank == 0 else g.reshape(value, ())
    return code_constant(g, output.edge_code, output, domain)


def spread_and_padded(
    g: Graph,
    value: ir.Value,
    shape: Sequence[int],
    rows: Sequence[tuple[int, int, int]],
    fill: ir.Value,
) -> ir.Value:
    """The padding of StableHLO: Pad between elements, Pad of the edges, Slice of cut elements.

    Args:
        rows: for every axis, how many `fill` go before, after (below 0: cut off), and between.
    """
    lows, highs, interior = np.reshape(rows, (-1, 3)).astype(np.int64).T
    if interior.any():
        pairs = [size for n in shape for size in (n, 1)]
        after = [size for n in interior.tolist() for size in (0, n)]
        value = _padded(g, g.reshape(value, pairs), [0] * len(pairs), after, fill)
        value = g.reshape(
            value, [multiple(n, 1 + i) for n, i in zip(shape, interior.tolist(), strict=True)]
        )
        highs = highs - interior  # nothing follows the last element
    value = _padded(g, value, np.maximum(lows, 0), np.maximum(highs, 0), fill)
    if (lows >= 0).all() and (highs >= 0).all():
        return value
    starts, ends = np.maximum(-lows, 0), np.where(highs < 0, highs, np.iinfo(np.int64).max)
    return g.op("Slice", value, g.constant(starts), g.constant(ends))


def _padded(
    g: Graph, value: ir.Value, before: Iterable[int], after: Iterable[int], fill: ir.Value
) -> ir.Value:
    edges = np.array([*before, *after], np.int64)
    return g.op("Pad", value, g.constant(edges), fill) if edges.any() else value
