"""Rows looked up by key: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP.

LSH_PROJECTION and SKIP_GRAM are not translated: ONNX has no operator that hashes numbers, and none
that joins words that are not neighbours.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.forms import Domain
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.indices import bounded, flat_rows, scattered
from tflite_ort.opmap.movement import code_constant, moved_domain, reshaped
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    CombinerType,
    EmbeddingLookupSparseOptions,
    Op,
    OperatorView,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.view import Blocks

_CODES = 1  # bytes of an element


@translator(Op.EMBEDDING_LOOKUP, versions=(1, 5), inputs=("ids", "table"))
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
    scale = g.constant(quantization.scale[0])
    if quantization.per_channel:
        scales = quantization.scale.reshape(-1, *(1,) * (table.rank - 1))
        scale = g.op("Gather", g.constant(scales), places)
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
    inputs=("ids", "indices", "dense_shape!", "weights", "params"),
)
def embedding_lookup_sparse(op: OperatorView[EmbeddingLookupSparseOptions], g: Graph) -> None:
    """ScatterElements (add) of weighted rows; divided by that of the weights, or of their squares
    under a root."""
    ids, indices, params, output = op["ids"], op["indices"], op["params"], op.output
    depth, count = indices.shape[1] - 1, ids.shape[0]
    if 0 in (count, *params.shape, *output.shape):
        raise Untranslatable("no element")
    sizes = output.shape[:depth]
    rows = flat_rows(g, indices, count, indices.shape[1], sizes, depth)
    weights = reshaped(g, g.read(op["weights"]), (count, *(1,) * (params.rank - 1)))
    picks = g.op("Gather", g.read(params), bounded(g, ids, params.shape[0]))
    zero, shape = g.constant(0, np.float32), (sizes, params.shape[1:])
    picks = g.op("Mul", picks, weights)
    value = scattered(g, zero, shape, rows, picks, count, reduction="add")
    if op.options.combiner != CombinerType.SUM:
        root = op.options.combiner == CombinerType.SQRTN
        weights = g.op("Mul", weights, weights) if root else weights
        total = scattered(g, zero, (sizes, ()), rows, weights, count, reduction="add")
        total = g.op("Sqrt", total) if root else total
        value = g.op("Div", value, g.op("Add", total, _empty(g, indices, sizes)))
    g.write(output, reshaped(g, value, output.shape))


def _empty(g: Graph, indices: TensorView, sizes: tuple[int, ...]) -> ir.Value:
    """1 for each bucket without rows, 0 for the others, of which none comes a second time."""
    if indices.data is None:
        raise Untranslatable("the buckets of a mean are computed")
    tuples = indices.data[:, : len(sizes)]
    rows = tuples @ np.array([prod(sizes[axis + 1 :]) for axis in range(len(sizes))], np.int64)
    empty = np.ones((prod(sizes), 1), np.float32)
    empty[rows] = 0
    if np.count_nonzero(np.diff(rows)) + 1 != len(np.unique(rows)):
        raise Untranslatable("a bucket comes again after another one")
    return g.constant(empty)


@translator(Op.HASHTABLE_LOOKUP, versions=(1, 1), inputs=("lookup", "keys!", "values"))
def hashtable_lookup(op: OperatorView[Any], g: Graph) -> None:
    """Gather at the first key that is equal (ArgMax); what equals none gets a row of zeros, which
    stands behind the last."""
    lookup, keys, values = op["lookup"], np.asarray(op["keys"].data), op["values"]
    rows, found = op.outputs
    if (np.diff(keys.astype(np.int64)) <= 0).any() or 0 in (lookup.shape[0], *values.shape):
        raise Untranslatable("keys are not ascending, or there is no element")
    domain = moved_domain(values, rows)
    wanted = g.op("Unsqueeze", g.read(lookup), g.constant([1], np.int64))
    equal = g.op("Cast", g.op("Equal", wanted, g.constant(keys)), to=ir.DataType.INT32)
    equal = g.op("Pad", equal, g.constant([0, 0, 0, 1], np.int64), g.constant(1, np.int32))
    places = g.op("ArgMax", equal, axis=1, keepdims=0)
    row = g.constant((1, *values.shape[1:]), np.int64)
    zeros = g.op("Expand", code_constant(g, 0, rows, domain), row)
    table = g.op("Concat", g.read(values, domain=domain), zeros, axis=0)
    g.write(rows, g.op("Gather", table, places), domain=domain)
    hit = g.op("Less", places, g.constant(len(keys), np.int64))
    g.write(found, g.op("Cast", hit, to=ir.DataType.UINT8), domain=Domain.FILE)
