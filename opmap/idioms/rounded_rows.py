"""Products of float rows and 8-bit weights in 8 bits, where that is faster than in floats.

A row is rounded as LiteRT rounds it. A single one has a zero point, as in LiteRT's default. Of
several ones, each is rounded around 0 in steps of its largest magnitude / 127, as in its kernels
without delegates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.idioms.hybrid import reach
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix, keeps_exact_codes
from tflite_ort.schema import TensorView

_LARGEST, _ZERO_POINT = 127, 128
_MICROSOFT = "com.microsoft"
# Of MatMulNBits: activations of 8 bits, and the blocks of a row of weights that it takes.
_ROUNDED, _BLOCKS = 4, (32, 64, 128, 256)
# With fewer weights or products the nodes that round take as long as what 8 bits save: measured
# with 64 to 1,536 columns and up to 128 rows.
_WEIGHTS_OF_ONE_ROW = 2**16
_PRODUCTS_OF_ROWS = 2**21


def rounded_product(
    g: Graph, x: ir.Value, matrix: WeightMatrix, rows: int, added: ir.Value | None
) -> ir.Value | None:
    """`x` [rows, K] times the transposed matrix, plus `added` [N]; None where floats are faster."""
    weights = matrix.codes.size
    enough = weights >= _WEIGHTS_OF_ONE_ROW if rows == 1 else rows * weights >= _PRODUCTS_OF_ROWS
    if g.target.hybrid != "auto" or not enough or not keeps_exact_codes(g, matrix):
        return None
    assert matrix.scale is not None
    codes, scale = g.constants.add(matrix.codes.T, "weights"), g.constant(matrix.scale)
    if rows == 1:
        operands = x, codes, scale, None, added
        return g.op("DynamicQuantizeMatMul", *operands, domain=_MICROSOFT)
    product = _product_of_rows(g, x, codes, scale, rows)
    return product if added is None else g.op("Add", product, added)


def _product_of_rows(
    g: Graph, x: ir.Value, codes: ir.Value, scale: ir.Value, rows: int
) -> ir.Value:
    steps = g.op("Mul", reach(g, x, [1]), g.constant(np.float32(1 / _LARGEST)))
    zero_points = g.constant(np.full(rows, _ZERO_POINT, np.uint8))
    rounded = g.op("QuantizeLinear", x, g.reshape(steps, [rows]), zero_points, axis=0)
    one, zero_point = g.constant(1, np.float32), g.constant(_ZERO_POINT, np.uint8)
    operands = rounded, codes, one, scale, zero_point
    return g.op("Mul", g.op("MatMulIntegerToFloat", *operands, domain=_MICROSOFT), steps)


def rounded_product_of_4_bits(
    g: Graph, x: ir.Value, filter: TensorView, rows: int
) -> ir.Value | None:
    """`x` [rows, K] times the transposed 4-bit weights; None where floats are as fast, or the
    weights are of another form.

    Each run of a row as long as a block of weights is rounded around 0 in steps of its own, which
    are no larger than those of the row.
    """
    data, few = filter.data, rows != 1 or filter.shape[0] * filter.shape[1] < _WEIGHTS_OF_ONE_ROW
    fits = g.target.hybrid == "auto" and g.target.cpu_kernels and g.target.weights == "int8"
    scales = _scales_of_blocks(filter)
    if few or not fits or data is None or scales is None:
        return None
    units, depth = data.shape
    blocks = scales.shape[1]
    codes = (data.astype(np.uint8) + 8) & 15
    pairs = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(units, blocks, -1)
    operands = x, g.constants.add(pairs, filter.name), g.constants.add(scales, "scales")
    return g.op(
        "MatMulNBits",
        *operands,
        domain=_MICROSOFT,
        K=depth,
        N=units,
        bits=4,
        block_size=depth // blocks,
        accuracy_level=_ROUNDED,
    )


def _scales_of_blocks(filter: TensorView) -> npt.NDArray[np.float32] | None:
    """The scale of each block [units, blocks] of a constant matrix; None where MatMulNBits does not
    take its blocks."""
    depth, quantization = filter.shape[-1], filter.quantization
    if filter.blocks is not None:
        scales = filter.blocks.scale.astype(np.float32)
        return scales if filter.blocks.size in _BLOCKS else None
    if quantization is None or quantization.zero_point.any() or depth % _BLOCKS[0]:
        return None
    if quantization.per_channel and quantization.axis != 0:
        return None
    shape = filter.shape[0], depth // _BLOCKS[0]
    return np.broadcast_to(quantization.scale.reshape(-1, 1), shape).copy()
