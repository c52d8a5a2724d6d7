"""Products of float rows and 4-bit weights that ONNX Runtime's CPU multiplies as they are, or as
floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.costs import rounding_costs
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias
from tflite_ort.opmap.linear import hybrid_rows, write_rows
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowerings.rounded_products import (
    ROUNDED,
    RUNS,
    has_no_negatives,
    rounds_runs,
)
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

Scales = npt.NDArray[np.float32]

_MICROSOFT = "com.microsoft"
# Of MatMulNBits: activations as they are, and the blocks of a row of weights that it takes. Weights
# without blocks get the first of `RUNS`: in blocks of 128 they take 0.65 to 0.8 of the time that
# they take in blocks of 32.
_FLOATS, _BLOCKS = 1, (32, 64, 128, 256)
# Weights for several rows; more take 2 MB as floats.
_MOST_UNPACKED = 2**19
# Up to so many rows are rounded for weights that have scales in blocks, by the type of weights that
# the CPU multiplies exactly and fast.
_MOST_ROWS = {"int8": 1, "uint8": 16}


def rows_of_4_bits(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """FULLY_CONNECTED of floats and constant 4-bit weights."""
    input, filter = op["input"], op["filter"]
    if filter.type is not TensorType.INT4 or input.is_quantized or not filter.is_constant:
        return ()
    depth = filter.shape[1]
    if not depth:
        return ()
    rows = math.prod(input.shape) // depth if is_known(*input.shape) else 0
    if _unpacks(g, filter, rows):
        return [Lowering("floats", {}, partial(_unpacked, op, g))]
    scales = _scales_of_blocks(filter)
    return [] if scales is None else [Lowering("codes", {}, partial(_packed, op, g, scales, rows))]


def _unpacks(g: Graph, filter: TensorView, rows: int) -> bool:
    """Whether 4-bit weights become floats: with few of them Gemm is faster than MatMulNBits, with
    several rows up to twice as fast."""
    if g.target.hybrid != "auto" or filter.blocks is not None:
        return False
    weights = filter.shape[0] * filter.shape[1]
    if rows == 1:
        return not rounding_costs(g.target).pay_for_row(weights)
    return weights < _MOST_UNPACKED


def _unpacked(op: View, g: Graph) -> None:
    rows, bias = hybrid_rows(op, g), accumulator_bias(g, op["input"], op["filter"], op.get("bias"))
    weights = g.weights(op["filter"], real=True)
    write_rows(op, g, g.op("Gemm", rows, weights, bias, transB=1))


def _packed(op: View, g: Graph, scales: Scales, rows: int) -> None:
    """The product by MatMulNBits. With `hybrid="auto"` each run of a single row as long as a block
    of weights is rounded around 0 in steps of its own, which are no larger than those of the
    row."""
    filter = op["filter"]
    (units, depth), blocks = filter.shape, scales.shape[1]
    x, bias = hybrid_rows(op, g), accumulator_bias(g, op["input"], filter, op.get("bias"))

    def laid() -> npt.NDArray[np.uint8]:
        # ONNX Runtime's codes have the zero point 8.
        return (filter.packed(4) ^ np.uint8(0x88)).reshape(units, blocks, -1)

    codes = g.constants.laid(filter.constant, ("blocks", blocks), laid, filter.name)
    rounds = g.target.hybrid == "auto" and _is_faster_in_blocks(g, x, filter, rows)
    product = g.op(
        "MatMulNBits",
        *(x, codes, g.constants.add(scales, "scales")),
        domain=_MICROSOFT,
        K=depth,
        N=units,
        bits=4,
        block_size=depth // blocks,
        accuracy_level=ROUNDED if rounds else _FLOATS,
    )
    write_rows(op, g, product if bias is None else g.op("Add", product, bias))


def _is_faster_in_blocks(g: Graph, x: ir.Value, filter: TensorView, rows: int) -> bool:
    """Whether MatMulNBits of 4 bits is faster with rounded rows, and no less exact than LiteRT: its
    kernels round rows that meet blocks with a zero point."""
    most = 1 if filter.blocks is None else _MOST_ROWS[g.target.weights]
    if filter.blocks is not None and has_no_negatives(x):
        return False
    pays = rounding_costs(g.target).pay_for_row(filter.shape[0] * filter.shape[1])
    return 1 <= rows <= most and pays and rounds_runs(g)


def _scales_of_blocks(filter: TensorView) -> Scales | None:
    """The scale of each block [units, blocks] of a constant matrix; None where MatMulNBits does not
    take its blocks."""
    depth, quantization = filter.shape[-1], filter.quantization
    if filter.blocks is not None:
        scales = filter.blocks.scale.astype(np.float32)
        return scales if filter.blocks.size in _BLOCKS else None
    run = next((run for run in RUNS if depth % run == 0), None)
    if quantization is None or quantization.zero_point.any() or run is None:
        return None
    if quantization.per_channel and quantization.axis != 0:
        return None
    shape = filter.shape[0], depth // run
    return np.broadcast_to(quantization.scale.reshape(-1, 1), shape).copy()
