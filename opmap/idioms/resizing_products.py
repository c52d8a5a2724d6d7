"""Bilinear resizing of 8-bit codes as two products with constant matrices.

One matrix mixes rows, the other one the cells and channels of a row. ONNX Runtime's Resize takes 1
to 5 ns for each number of the result, a product of up to 64 numbers less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, ir
from tflite_ort.schema import OperatorView, ResizeBilinearOptions, TensorType
from tflite_ort.schema.arithmetic.resizing import float_positions
from tflite_ort.schema.values.sizes import is_known

Floats = npt.NDArray[np.float32]

_MOST_PRODUCTS = 64  # for each number of the result
# Weights of so many binary digits keep the sums of both products exact.
_DIGITS = 6
# A unit of the results that moves halves upwards, and nothing else past a half.
_UNIT = 1 - 2.0**-22


def resized_by_products(op: OperatorView[ResizeBilinearOptions], g: Graph) -> ir.Value | None:
    """The carried codes of the result, channels-last, halves upwards; None where the weights have
    more digits or Resize is faster."""
    input, output = op["input"], op.output
    if not g.target.cpu_kernels or input.type not in (TensorType.INT8, TensorType.UINT8):
        return None
    if not is_known(*input.shape, *output.shape) or 0 in output.shape:
        return None
    batch, height, width, channels = input.shape
    _, rows, columns, _ = output.shape
    row = width * channels
    if row * (height + columns * channels) > _MOST_PRODUCTS * columns * channels:
        return None
    down, across = _matrix(op, height, rows), _matrix(op, width, columns)
    if down is None or across is None:
        return None
    codes = g.reshape(g.read(input, domain=Domain.STORED), (batch, height, row))
    zero = g.constant(np.uint8(0))
    units = g.op("DequantizeLinear", codes, g.constant(np.float32(1)), zero)
    made = g.op("MatMul", g.constant(down), units)
    mixing = np.kron(across.T, np.eye(channels, dtype=np.float32))
    made = g.op("MatMul", made, g.constant(mixing))
    result = g.op("QuantizeLinear", made, g.constant(np.float32(_UNIT)), zero)
    return g.reshape(result, output.shape)


def _matrix(op: OperatorView[ResizeBilinearOptions], old: int, new: int) -> Floats | None:
    """The weights of the old cells of an axis for each new one; None if one has too many digits."""
    lower, upper, past = float_positions(old, new, op.options)
    scaled = past * np.float32(2**_DIGITS)
    if not np.array_equal(scaled, np.rint(scaled)):
        return None
    matrix, cells = np.zeros((new, old), np.float32), np.arange(new)
    np.add.at(matrix, (cells, lower), 1 - past)
    np.add.at(matrix, (cells, upper), past)
    return matrix
