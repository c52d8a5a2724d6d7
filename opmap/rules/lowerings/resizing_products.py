"""Bilinear resizing of 8-bit codes as two products with constant matrices.

One matrix mixes rows, the other one the cells and channels of a row. ONNX Runtime's Resize takes 1
to 5 ns for each number of the result, a product of up to 64 numbers less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.image_resizing import has_integer_weights, keeps_pixels, resized_linearly
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import OperatorView, ResizeBilinearOptions, TensorType
from tflite_ort.schema.arithmetic.resizing import float_positions
from tflite_ort.schema.values.sizes import is_known, known_product

View = OperatorView[ResizeBilinearOptions]
Floats = npt.NDArray[np.float32]

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_MOST_PRODUCTS = 64  # for each number of the result
# Weights of so many binary digits keep the sums of both products exact.
_DIGITS = 6
# A unit of the results that moves halves upwards, and nothing else past a half.
_UNIT = 1 - 2.0**-22


def resized_by_products(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """Products, where these are exact and Resize is not faster."""
    input, output = op["input"], op.output
    if input.type not in _BYTES or keeps_pixels(op) or has_integer_weights(op):
        return ()
    if not is_known(*input.shape, *output.shape) or 0 in output.shape:
        return ()
    _, height, width, channels = input.shape
    _, rows, columns, _ = output.shape
    row = width * channels
    if row * (height + columns * channels) > _MOST_PRODUCTS * columns * channels:
        return ()
    down, across = _matrix(op, height, rows), _matrix(op, width, columns)
    if down is None or across is None:
        return ()
    return [Lowering("products", {}, partial(_products, op, g, down, across))]


def _products(op: View, g: Graph, down: Floats, across: Floats) -> None:
    """Halves are rounded upwards, as in TFLite."""
    batch, height, width, channels = op["input"].shape
    codes = g.read(op["input"], domain=Domain.STORED)
    codes = g.reshape(codes, (batch, height, width * channels))
    zero = g.constant(np.uint8(0))
    units = g.op("DequantizeLinear", codes, g.constant(np.float32(1)), zero)
    made = g.op("MatMul", g.constant(down), units)
    mixing = np.kron(across.T, np.eye(channels, dtype=np.float32))
    made = g.op("MatMul", made, g.constant(mixing))
    result = g.op("QuantizeLinear", made, g.constant(np.float32(_UNIT)), zero)
    g.write(op.output, g.reshape(result, op.output.shape), domain=Domain.STORED)


def layout_of_resize(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A linear Resize in the layout in which it is faster: all providers resize channels-first;
    ONNX Runtime's CPU provider enlarges faster channels-last unless it has the channels in blocks
    of 8 or 16."""
    input = op["input"]
    if keeps_pixels(op) or has_integer_weights(op):
        return ()
    channels = input.shape[-1]
    blocked = input.is_quantized or not is_known(channels) or channels % 8 == 0
    enlarged = known_product(op.output.shape) > known_product(input.shape)
    layout = Layout.LAST if enlarged and not blocked else g.layout(input)
    return [Lowering(layout.value, {}, partial(resized_linearly, op, g, layout))]


def _matrix(op: View, old: int, new: int) -> Floats | None:
    """The weights of the old cells of an axis for each new one; None if one has too many digits."""
    lower, upper, past = float_positions(old, new, op.options)
    scaled = past * np.float32(2**_DIGITS)
    if not np.array_equal(scaled, np.rint(scaled)):
        return None
    matrix, cells = np.zeros((new, old), np.float32), np.arange(new)
    np.add.at(matrix, (cells, lower), 1 - past)
    np.add.at(matrix, (cells, upper), past)
    return matrix
