"""Rows looked up by key: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP.

LSH_PROJECTION and SKIP_GRAM are not translated: ONNX has no operator that hashes numbers, and none
that joins words that are not neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.indices import bounded, flat_rows, scattered
from tflite_ort.opmap.idioms.movement import code_constant, moved_domain, reshaped
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    CombinerType,
    EmbeddingLookupSparseOptions,
    Op,
    OperatorView,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.sizes import has_zero
from tflite_ort.schema.values.view import Blocks

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_CODES = 1  # bytes of an element


@translator(Op.EMBEDDING_LOOKUP, versions=(1, 5))
def embedding_lookup(op: OperatorView[Any], g: Graph) -> None:
    """Gather of rows; of integer codes for a float output, times the Gather of their scales, which
    blockwise ones repeat along the row."""
    ids, table, output = op["ids"], op["table"], op.output
    places = bounded(g, ids, table.shape[0])
    if table.type is output.type:
        domain = moved_domain(table, output)
        g.write(output, g.op("Gather", g.read(table, domain=domain), places), domain=domain)
        return
    if table.data is not None and table.blocks is not None:
        rows = _rows_of_blocks(g, table, table.blocks, places, ids.shape[0])
        rows = g.op("Cast", rows, to=ir.DataType.from_numpy(output.dtype))
        g.write(output, g.reshape(rows, output.shape))
        return
    quantization = table.quantization
    if table.data is None or quantization is None or table.data.itemsize != _CODES:
        raise Untranslatable(f"{output.type.name} rows from a table of {table.type.name}")
    if output.dtype.kind != "f" or quantization.zero_point[0]:
        raise Untranslatable(f"{output.type.name} rows, zero point {quantization.zero_point[0]}")
    # TFLite reads uint8 codes as int8 ones.
    codes = g.constants.add(table.data.view(np.int8), table.name)
    rows = g.op("Cast", g.op("Gather", codes, places), to=ir.DataType.FLOAT)
    if quantization.per_channel:
        scales = quantization.scale.reshape(-1, *(1,) * (table.rank - 1))
        scale = g.op("Gather", g.constant(scales), places)
    else:
        scale = g.constant(quantization.sole_scale)
    value = g.op("Mul", rows, scale)
    g.write(output, g.op("Cast", value, to=ir.DataType.from_numpy(output.dtype)))


def _rows_of_blocks(
    g: Graph, table: TensorView, blocks: Blocks, places: ir.Value, count: int
) -> ir.Value:
    """Real rows [count, blocks, block size]."""
    codes = g.op("Gather", g.constant(np.asarray(table.data)), places)
    shape = (count, *blocks.scale.shape[1:], blocks.size)
    real = g.reshape(g.op("Cast", codes, to=ir.DataType.FLOAT), shape)
    scale = g.constant(blocks.scale[..., np.newaxis], np.float32)
    return g.op("Mul", real, g.op("Gather", scale, places))


@translator(
    Op.EMBEDDING_LOOKUP_SPARSE,
    versions=(1, 1),
    constants=("dense_shape",),
)
def embedding_lookup_sparse(op: OperatorView[EmbeddingLookupSparseOptions], g: Graph) -> None:
    """ScatterElements (add) of weighted rows; divided by that of the weights, or of their squares
    under a root."""
    ids, indices, params, output = op["ids"], op["indices"], op["params"], op.output
    depth, count = indices.shape[1] - 1, ids.shape[0]
    if has_zero(*params.shape, *output.shape):
        raise Untranslatable("no element")
    shape = output.shape[:depth], params.shape[1:]
    weights = reshaped(g, g.read(op["weights"]), (count, *(1,) * (params.rank - 1)))
    picks = g.op("Gather", g.read(params), bounded(g, ids, params.shape[0]))
    picks = g.op("Mul", picks, weights)
    if not count:
        value = g.op("Expand", g.constant(0, np.float32), g.shape(output.shape))
    elif op.options.combiner == CombinerType.SUM:
        rows = flat_rows(g, indices, count, indices.shape[1], shape[0], depth)
        zero = g.constant(0, np.float32)
        value = scattered(g, zero, shape, rows, picks, count, reduction="add")
    else:
        value = _means(g, _visits(indices, shape[0]), shape, picks, weights, op.options.combiner)
    g.write(output, reshaped(g, value, output.shape))


def _means(
    g: Graph,
    visits: Iterable[_Visit],
    shape: tuple[Shape, Shape],
    picks: ir.Value,
    weights: ir.Value,
    combiner: CombinerType,
) -> ir.Value:
    """What the visits add to each bucket, which is divided after each."""
    root, zero = combiner == CombinerType.SQRTN, g.constant(0, np.float32)
    weights = g.op("Mul", weights, weights) if root else weights
    value = g.op("Expand", zero, g.constant(list(map(prod, shape)), np.int64))
    for visit in visits:
        items, rows, count = g.constant(visit.items), g.constant(visit.rows), len(visit.items)
        part, total = (
            scattered(g, zero, (shape[0], width), rows, g.op("Gather", of, items), count, "add")
            for of, width in ((picks, shape[1]), (weights, ()))
        )
        total = g.op("Add", g.op("Sqrt", total) if root else total, g.constant(visit.others))
        value = g.op("Div", g.op("Add", value, part), total)
    return value


@dataclass(frozen=True, slots=True)
class _Visit:
    """What comes into buckets at a time.

    Args:
        rows: the bucket of each of the items.
        others: 1 for each bucket that none is for, 0 for the rest, [R, 1].
    """

    items: Array
    rows: Array
    others: Array


def _visits(indices: TensorView, sizes: Shape) -> Iterator[_Visit]:
    """The items with which each bucket begins, those with which it comes again, and so on: a bucket
    ends where another begins."""
    if indices.data is None:
        raise Untranslatable("the buckets of a mean are computed")
    tuples = indices.data[:, : len(sizes)]
    if ((tuples < 0) | (tuples >= sizes)).any():
        raise Untranslatable("an index out of bounds")
    rows = tuples @ np.array([prod(sizes[axis + 1 :]) for axis in range(len(sizes))], np.int64)
    begins = np.diff(rows, prepend=-1) != 0
    order = np.argsort(rows[begins], kind="stable")
    ordered = rows[begins][order]
    times = np.empty_like(order)
    times[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    time_of_item = times[np.cumsum(begins) - 1]
    for time in range(times.max() + 1):
        (items,) = np.nonzero(time_of_item == time)
        others = np.ones((prod(sizes), 1), np.float32)
        others[rows[items]] = 0
        yield _Visit(items, rows[items], others)


@translator(Op.HASHTABLE_LOOKUP, versions=(1, 1))
def hashtable_lookup(op: OperatorView[Any], g: Graph) -> None:
    """Gather at the key that a binary search finds; what it does not find gets a row of zeros,
    which stands behind the last."""
    lookup, keys, values = op["lookup"], op["keys"], op["values"]
    rows, found = op.outputs
    domain = moved_domain(values, rows)
    places = _binary_search(g, g.read(lookup), g.read(keys), keys.shape[0])
    row = g.shape((1, *values.shape[1:]))
    zeros = g.op("Expand", code_constant(g, 0, rows, domain), row)
    table = g.op("Concat", g.read(values, domain=domain), zeros, axis=0)
    g.write(rows, g.op("Gather", table, places), domain=domain)
    hit = g.op("Less", places, g.constant(keys.shape[0], np.int64))
    g.write(found, g.op("Cast", hit, to=ir.DataType.UINT8), domain=Domain.FILE)


def _binary_search(g: Graph, wanted: ir.Value, keys: ir.Value, count: int) -> ir.Value:
    """Where among the keys `wanted` [N] is, in int64, `count` where it is not found. Of equal keys,
    and where they are not ascending, C's bsearch finds the same."""
    zero, one, two = (g.constant(number, np.int64) for number in (0, 1, 2))
    none = g.constant(count, np.int64)
    places = high = g.op("Expand", none, g.op("Shape", wanted))
    low = g.op("Expand", zero, g.op("Shape", wanted))
    for _ in range(count.bit_length()):
        middle = g.op("Div", g.op("Add", low, high), two)
        key = g.op("Gather", keys, g.smaller(middle, g.constant(count - 1, np.int64)))
        step = g.op("Sub", wanted, key)
        is_open = g.op("Less", low, high)
        below, equal, above = (
            g.op("And", is_open, g.op(name, step, g.constant(0, np.int32)))
            for name in ("Less", "Equal", "Greater")
        )
        places = g.op("Where", equal, middle, places)
        high = g.op("Where", g.op("Or", below, equal), middle, high)
        low = g.op("Where", above, g.op("Add", middle, one), g.op("Where", equal, middle, low))
    return places
