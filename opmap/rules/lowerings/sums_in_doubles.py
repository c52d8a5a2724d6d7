"""Sums of products of 16-bit activations as one product of doubles, in place of digits.

A float64 holds every such sum, so no digits are split off and put together. ONNX Runtime multiplies
matrices of doubles, and has no convolution of them: windows of one cell are products of a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from tflite_ort.opmap import convolution, linear
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.exact_sums import ExactSums
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.sizes import is_known

# Doubles take twice the memory of the floats that are multiplied by digits: with fewer rows than
# this a weight is read longer than it is multiplied.
_MOST_WEIGHTS_OF_FEW, _FEW_ROWS = 2**15, 8


def doubled_rows(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """FULLY_CONNECTED of 16-bit rows."""
    input, filter = op["input"], op["filter"]
    if input.type is not TensorType.INT16 or not _pay(input.shape, filter.shape):
        return ()
    sums = linear.exact_sums(op, g)
    return () if sums is None else [Lowering("doubles", {}, partial(_rows, op, g, sums))]


def doubled_cells(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """CONV_2D of 16-bit images by windows of one cell."""
    input, filter, options = op["input"], op["filter"], op.options
    if input.type is not TensorType.INT16 or filter.shape[1:3] != (1, 1):
        return ()
    if (options.stride_h, options.stride_w) != (1, 1) or input.shape[3] != filter.shape[3]:
        return ()
    if not _pay(input.shape, filter.shape):
        return ()
    sums = convolution.exact_sums(op, g)
    return () if sums is None else [Lowering("doubles", {}, partial(_cells, op, g, sums))]


def _pay(numbers: Sequence[int], weights: Sequence[int]) -> bool:
    """Whether a product of tensors of these sizes is faster in doubles than in digits."""
    if not is_known(*numbers, *weights) or 0 in (*numbers, *weights):
        return False
    rows = prod(numbers) // weights[-1]
    return rows >= _FEW_ROWS or prod(weights) <= _MOST_WEIGHTS_OF_FEW


def _rows(op: View, g: Graph, sums: ExactSums) -> None:
    input, output, depth = op["input"], op.output, op["filter"].shape[1]
    codes = g.read(input, domain=Domain.STORED)
    rows = _reshaped(g, codes, input.shape, (prod(input.shape) // depth, depth))
    made = sums.rounded(g, _product(g, rows, sums), (-1,))
    rows_made = prod(output.shape[:-1]), output.shape[-1]
    g.write(output, _reshaped(g, made, rows_made, output.shape), domain=Domain.STORED)


def _cells(op: View, g: Graph, sums: ExactSums) -> None:
    images, height, width, channels = op["input"].shape
    codes = g.read(op["input"], layout=Layout.FIRST, domain=Domain.STORED)
    if height == width == 1:
        rows = g.reshape(codes, (images, channels))
        made = sums.rounded(g, _product(g, rows, sums), (-1,))
    else:
        cells = g.cast(g.reshape(codes, (images, channels, height * width)), ir.DataType.DOUBLE)
        total = g.op("MatMul", sums.held_weights(g, np.float64, matrix=True), cells)
        made = sums.rounded(g, total, (-1, 1))
    made = g.reshape(made, Layout.FIRST.shape(op.output.shape))
    g.write(op.output, made, layout=Layout.FIRST, domain=Domain.STORED)


def _product(g: Graph, rows: ir.Value, sums: ExactSums) -> ir.Value:
    """The sums of rows of codes."""
    weights = sums.held_weights(g, np.float64, matrix=True)
    return g.op("Gemm", g.cast(rows, ir.DataType.DOUBLE), weights, transB=1)


def _reshaped(g: Graph, value: ir.Value, shape: Sequence[int], to: Sequence[int]) -> ir.Value:
    return value if tuple(shape) == tuple(to) else g.reshape(value, to)
