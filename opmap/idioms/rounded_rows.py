"""Products of float rows and 8-bit weights in 8 bits, where that is faster than in floats.

A row is rounded as LiteRT rounds it. A single one has a zero point, as in LiteRT's default. Of
several ones, each is rounded around 0 in steps of its largest magnitude / 127, as in its kernels
without delegates.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.idioms.hybrid import reach
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix, keeps_exact_codes

_LARGEST, _ZERO_POINT = 127, 128
_MICROSOFT = "com.microsoft"
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
