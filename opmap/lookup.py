"""Lookup of rows by key: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP.

LSH_PROJECTION and SKIP_GRAM have no translation: ONNX has no operator that hashes numbers, and none
that joins words that are not neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.indices import agreeing, bounded, flat_rows, scattered
from tflite_ort.opmap.idioms.movement import code_constant, moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    CombinerType,
    EmbeddingLookupSparseOptions,
    Op,
    OperatorView,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.values.semantics import quantized_range, unpack
from tflite_ort.schema.values.sizes import has_zero
from tflite_ort.schema.values.view import Blocks

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_CODES = 1  # bytes of an element


@translator(Op.EMBEDDING_LOOKUP, versions=(1, 5))
def embedding_lookup(op: OperatorView[Any], g: Graph) -> None:
    """Gather of rows.

    For a float output, rows of integer codes are multiplied by a Gather of their scales; blockwise
    scales are repeated along the row.
    """
    ids, table, output = op["ids"], op["table"], op.output
    places = bounded(g, ids, table.shape[0])
    if table.type is output.type:
        domain = moved_domain(table, output)
        g.write(output, g.op("Gather", g.read(table, domain=domain), places), domain=domain)
        return
    if table.is_constant and table.blocks is not None:
        rows = _rows_of_blocks(g, table, table.blocks, places, ids.shape[0])
        rows = g.cast(rows, output.dtype)
        g.write(output, g.reshape(rows, output.shape))
        return
    scales = scales_of_rows(table, output)
    rows = _rows_of_codes(g, table, places, ids.shape[0])
    scale = g.constant(scales if scales.ndim else np.float32(scales))
    if scales.ndim:
        scale = g.op("Gather", scale, places)
    g.write(output, g.cast(g.op("Mul", rows, scale), output.dtype))


def scales_of_rows(table: TensorView, output: TensorView) -> npt.NDArray[np.float32]:
    """The scale of the codes of a constant table, or one for each row, [rows, 1, ...].

    Raises:
        Untranslatable: it has no scales, or TFLite does not multiply by them.
    """
    quantization = table.quantization
    if not table.is_constant or quantization is None or table.dtype.itemsize != _CODES:
        raise Untranslatable(f"{output.type.name} rows from a table of {table.type.name}")
    if output.dtype.kind != "f" or quantization.zero_point[0]:
        raise Untranslatable(f"{output.type.name} rows, zero point {quantization.zero_point[0]}")
    if quantization.per_channel:
        return quantization.scale.reshape(-1, *(1,) * (table.rank - 1))
    return np.asarray(quantization.sole_scale, np.float32)


def codes_of_table(table: TensorView) -> npt.NDArray[np.int8]:
    """The codes of a constant table; TFLite reads uint8 codes as int8 ones."""
    return np.asarray(table.data).view(np.int8)


def _rows_of_codes(g: Graph, table: TensorView, places: ir.Value, count: int) -> ir.Value:
    """Rows of the codes of a table as float32 [count, ...].

    Packed codes stay packed: a byte of a row is looked up in a table of what is in each byte.
    """
    bits, shape = PACKED_BITS.get(table.type), table.shape
    if bits is None or prod(shape[1:]) * bits % 8:
        codes = g.constants.laid(
            table.constant, "codes", partial(codes_of_table, table), table.name
        )
        return g.cast(g.op("Gather", codes, places), ir.DataType.FLOAT)

    def octets() -> npt.NDArray[np.uint8]:
        return table.packed(bits).reshape(shape[0], -1)

    rows = g.op("Gather", g.constants.laid(table.constant, "octets", octets, table.name), places)
    every = np.arange(256, dtype=np.uint8)
    signed = quantized_range(table.type)[0] < 0
    fields = unpack(every, 256 * 8 // bits, bits, signed=signed).reshape(256, -1)
    values = g.constants.once(fields.astype(np.float32), f"fields_of_{table.type.name}")
    rows = g.op("Gather", values, g.cast(rows, ir.DataType.INT32))
    return g.reshape(rows, (count, *shape[1:]))


def _rows_of_blocks(
    g: Graph, table: TensorView, blocks: Blocks, places: ir.Value, count: int
) -> ir.Value:
    """Rows of blockwise codes as real numbers [count, blocks, block size]."""
    codes = _rows_of_codes(g, table, places, count)
    real = g.reshape(codes, (count, *blocks.scale.shape[1:], blocks.size))
    scale = g.constant(blocks.scale[..., np.newaxis], np.float32)
    return g.op("Mul", real, g.op("Gather", scale, places))


@translator(
    Op.EMBEDDING_LOOKUP_SPARSE,
    versions=(1, 1),
    constants=("dense_shape",),
)
def embedding_lookup_sparse(op: OperatorView[EmbeddingLookupSparseOptions], g: Graph) -> None:
    """ScatterElements (add) of weighted rows.

    MEAN divides it by the sum of the weights, SQRTN by the root of the sum of their squares.
    """
    ids, indices, params, output = op["ids"], op["indices"], op["params"], op.output
    depth, count = indices.shape[1] - 1, ids.shape[0]
    if has_zero(*params.shape, *output.shape):
        raise Untranslatable("no element")
    shape = output.shape[:depth], params.shape[1:]
    weights = g.reshape(g.read(op["weights"]), (count, *(1,) * (params.rank - 1)))
    picks = g.op("Gather", g.read(params), bounded(g, ids, params.shape[0]))
    picks = g.op("Mul", picks, weights)
    if not count:
        others = indices.shape[0], op["weights"].shape[0]
        sizes = agreeing(g, g.shape(output.shape), (count, count), others)
        value = g.op("Expand", g.constant(0, np.float32), sizes)
    elif op.options.combiner == CombinerType.SUM:
        rows = flat_rows(g, indices, count, indices.shape[1], shape[0], depth)
        zero = g.constant(0, np.float32)
        value = scattered(g, zero, shape, rows, picks, count, reduction="add")
    else:
        value = _means(g, _buckets(indices, shape[0]), shape, picks, weights, op.options.combiner)
    g.write(output, g.reshape(value, output.shape))


def _means(
    g: Graph,
    buckets: Array,
    shape: tuple[Shape, Shape],
    picks: ir.Value,
    weights: ir.Value,
    combiner: CombinerType,
) -> ir.Value:
    """The sums of the visits to the buckets that have items, among zeros for those that have none;
    a bucket is divided after every visit."""
    filled, places = np.unique(buckets, return_inverse=True)
    root, zero = combiner == CombinerType.SQRTN, g.constant(0, np.float32)
    weights = g.op("Mul", weights, weights) if root else weights
    value = g.op("Expand", zero, g.ints((len(filled), prod(shape[1]))))
    for visit in _visits(places, len(filled)):
        items, rows, count = g.constant(visit.items), g.constant(visit.rows), len(visit.items)
        part, total = (
            scattered(
                g, zero, ((len(filled),), width), rows, g.op("Gather", of, items), count, "add"
            )
            for of, width in ((picks, shape[1]), (weights, ()))
        )
        total = g.op("Add", g.op("Sqrt", total) if root else total, g.constant(visit.others))
        value = g.op("Div", g.op("Add", value, part), total)
    if len(filled) == prod(shape[0]):
        return value
    return scattered(g, zero, shape, g.constant(filled), value, len(filled))


@record
class _Visit:
    """Items that go into buckets at the same time, one run of items a bucket.

    Args:
        rows: the buckets of the items.
        others: [R, 1], 1 for a bucket without items in this visit, 0 for the others.
    """

    items: Array
    rows: Array
    others: Array


def _buckets(indices: TensorView, sizes: Shape) -> Array:
    """The number of each item's bucket."""
    if indices.data is None:
        raise Untranslatable("the buckets of a mean are computed")
    tuples = indices.data[:, : len(sizes)]
    if ((tuples < 0) | (tuples >= sizes)).any():
        raise Untranslatable("an index out of bounds")
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return np.asarray(tuples @ np.array(strides, np.int64))


def _visits(rows: Array, count: int) -> Iterator[_Visit]:
    """The first run of items of every one of `count` buckets, the second run, and so on.

    A run of a bucket ends where another bucket begins.
    """
    begins = np.diff(rows, prepend=-1) != 0
    order = np.argsort(rows[begins], kind="stable")
    ordered = rows[begins][order]
    times = np.empty_like(order)
    times[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    time_of_item = times[np.cumsum(begins) - 1]
    for time in range(times.max() + 1):
        (items,) = np.nonzero(time_of_item == time)
        others = np.ones((count, 1), np.float32)
        others[rows[items]] = 0
        yield _Visit(items, rows[items], others)


@translator(Op.HASHTABLE_LOOKUP, versions=(1, 1))
def hashtable_lookup(op: OperatorView[Any], g: Graph) -> None:
    """Gather at the position that a binary search finds.

    A key that is not found gets a row of zeros, which is appended to the values.
    """
    lookup, keys, values = op["lookup"], op["keys"], op["values"]
    rows, found = op.outputs
    domain = moved_domain(values, rows)
    places = _binary_search(g, g.read(lookup), g.read(keys), keys.shape[0])
    places = agreeing(g, places, values.shape[:1], keys.shape)
    row = g.shape((1, *values.shape[1:]))
    zeros = g.op("Expand", code_constant(g, 0, rows, domain), row)
    table = g.op("Concat", g.read(values, domain=domain), zeros, axis=0)
    g.write(rows, g.op("Gather", table, places), domain=domain)
    hit = g.op("Less", places, g.ints(keys.shape[0]))
    g.write(found, g.cast(hit, ir.DataType.UINT8), domain=Domain.FILE)


def _binary_search(g: Graph, wanted: ir.Value, keys: ir.Value, count: int) -> ir.Value:
    """The positions of `wanted` [N] among the keys, int64; `count` for one that is not found.

    It makes the steps of C's bsearch, also among equal keys and among keys that do not ascend.
    """
    zero, one, two = (g.ints(number) for number in (0, 1, 2))
    none = g.ints(count)
    places = high = g.op("Expand", none, g.op("Shape", wanted))
    low = g.op("Expand", zero, g.op("Shape", wanted))
    for _ in range(count.bit_length()):
        middle = g.op("Div", g.op("Add", low, high), two)
        key = g.op("Gather", keys, g.smaller(middle, g.ints(count - 1)))
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
