"""Products of float rows and 8-bit weights in 8 bits, where that is faster than in floats.

Rows are rounded around 0, in steps of the largest magnitude / 127, as in LiteRT's kernels without
delegates: of several rows each one as a whole, a single one in each run of 128 numbers. Where a
single row has no such runs, it has a zero point, as in LiteRT's default.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.graph.costs import rounding_costs
from tflite_ort.opmap.idioms.hybrid_products import (
    WeightMatrix,
    keeps_exact_codes,
    moved_codes,
    multiplied_codes,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.marks import SUM_WITH_ROW

_LARGEST, _ZERO_POINT = 127, 128
_MICROSOFT = "com.microsoft"
# Of MatMulNBits: activations of 8 bits, and the blocks of a row that weights without blocks get,
# the fastest first.
ROUNDED, RUNS = 4, (128, 64, 32)
# Nodes whose results are not negative, and those whose results are not if their first input is not.
_NOT_NEGATIVE = {"Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus"}
_KEEP_SIGNS = {
    *("AveragePool", "GlobalAveragePool", "MaxPool", "ReduceMax", "ReduceMean", "ReduceSum"),
    *("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"),
}


def rounded_product(
    g: Graph, x: ir.Value, matrix: WeightMatrix, rows: int, added: ir.Value | None
) -> ir.Value:
    """`x` [rows, K] times the transposed matrix, plus `added` [N], in 8 bits."""
    assert matrix.scale is not None
    run = next((run for run in RUNS if matrix.codes.shape[1] % run == 0), None)
    if rows == 1 and run is not None and rounds_runs(g) and not has_no_negatives(x):
        return _product_of_row(g, x, matrix, run, added)
    codes, middle = multiplied_codes(g, matrix)
    if rows == 1:
        operands = x, codes, g.constant(matrix.scale), middle, added
        return g.op("DynamicQuantizeMatMul", *operands, domain=_MICROSOFT)
    scales = g.constant(matrix.scale), middle
    product = _product_of_rows(g, x, codes, scales, (rows, matrix.codes.shape[1]))
    if added is None:
        return product
    result = g.op("Add", product, added)
    result.marks |= {SUM_WITH_ROW}
    return result


def has_no_negatives(value: ir.Value) -> bool:
    """Whether the nodes that lead to `value` make no negative number. Codes around 0 would leave
    half of their range to such numbers, and be off by twice as much as those with a zero point."""
    node = value.producer()
    while node is not None and node.op_type in _KEEP_SIGNS:
        node = None if node.inputs[0] is None else node.inputs[0].producer()
    if node is None or node.op_type != "Clip":
        return node is not None and node.op_type in _NOT_NEGATIVE
    low = node.inputs[1] if len(node.inputs) > 1 else None
    return low is not None and low.const_value is not None and bool(low.const_value.array >= 0)


def is_rounded(g: Graph, matrix: WeightMatrix, rows: int, sharing: int = 1) -> bool:
    """Whether `rounded_product` is faster than floats for so many rows.

    Args:
        sharing: so many products of this size round the same rows, which is done once.
    """
    units, depth = matrix.codes.shape
    enough = is_enough(g.target, (rows, units, depth), sharing)
    return g.target.hybrid == "auto" and enough and keeps_exact_codes(g, matrix)


def rounds_runs(g: Graph) -> bool:
    """Whether MatMulNBits rounds the runs of a single row, and multiplies their codes exactly."""
    return g.target.weights == "int8" or g.target.exact_runs()


def is_enough(target: Target, sizes: tuple[int, int, int], sharing: int) -> bool:
    """Whether 8 bits are faster than floats, with the part of the nodes that round.

    Args:
        sizes: rows, units, depth.
    """
    (rows, units, depth), costs = sizes, rounding_costs(target)
    if rows == 1:
        return costs.pay_for_row(units * depth)
    rounding = costs.rows + costs.number * rows * depth
    scaling = costs.scaling + costs.number * rows * units
    return rows * units * depth * costs.saved >= rounding / sharing + scaling


def _product_of_row(
    g: Graph, x: ir.Value, matrix: WeightMatrix, run: int, added: ir.Value | None
) -> ir.Value:
    """The product of a single row, each run of it rounded as one block."""
    assert matrix.scale is not None
    units, depth = matrix.codes.shape
    codes = moved_codes(matrix).reshape(units, depth // run, run)
    scales = np.repeat(matrix.scale, depth // run).astype(np.float32)
    operands = x, g.constants.add(codes, "weights"), g.constants.add(scales, "scales")
    return g.op(
        "MatMulNBits",
        *operands,
        *((None, None, added) if added is not None else ()),
        domain=_MICROSOFT,
        K=depth,
        N=units,
        bits=8,
        block_size=run,
        accuracy_level=ROUNDED,
    )


def _product_of_rows(
    g: Graph,
    x: ir.Value,
    codes: ir.Value,
    scales: tuple[ir.Value, ir.Value | None],
    shape: tuple[int, int],
) -> ir.Value:
    """The product of `x` of this shape, each row rounded as one block. A row of zeros has steps of
    0: its result is a whole number times 0, whatever its codes are.

    Args:
        scales: of the weights, and their zero point.
    """
    (rows, depth), (scale, middle) = shape, scales
    largest = g.op("ReduceMax", g.op("Abs", x), g.ints([1]), keepdims=1)
    steps = g.op("Mul", largest, g.constant(np.float32(1 / _LARGEST)))
    # One for all: ONNX Runtime then rounds a tensor that several products read once.
    zero_points = g.constants.once(np.full((rows, 1), _ZERO_POINT, np.uint8), f"rows_{rows}")
    rounded = g.op("QuantizeLinear", x, steps, zero_points, axis=1, block_size=depth)
    one, zero_point = g.constant(1, np.float32), g.constant(_ZERO_POINT, np.uint8)
    operands = rounded, codes, one, scale, zero_point, *(() if middle is None else (middle,))
    return g.op("Mul", g.op("MatMulIntegerToFloat", *operands, domain=_MICROSOFT), steps)
