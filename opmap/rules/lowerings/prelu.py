"""PRELU by nodes that ONNX Runtime runs faster than PRelu, with the same results.

- In blocks of channels it is Relu(x) + slope * -Relu(-x), with depthwise 1x1 convolutions as
  products: unlike PRelu these keep the blocks, so that nothing is reordered before and after.
- Of one slope it is LeakyRelu.
- Otherwise it is the larger of x and slope * x, or chosen by the sign of x. PRelu takes up to 15
  times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.sloped_codes import rounds_as_reals
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
Slopes = npt.NDArray[np.float64]

_FEWEST_PRODUCTS = 1 << 13  # below so many elements PRelu takes no longer than two nodes
_MOST_REPEATED = 1 << 18  # numbers; longer rows of a product need no repetition


def in_blocks(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """PRELU of floats with a constant slope for each channel, which are in blocks."""
    input, alpha = op["input"], op["alpha"]
    constant = alpha.is_constant and input.type is TensorType.FLOAT32
    if not constant or not _is_one_a_channel(input, alpha) or g.layout(input) is not Layout.FIRST:
        return ()
    return [Lowering("blocks", {}, partial(_in_blocks, op, g))]


def _in_blocks(op: View, g: Graph) -> None:
    alpha, channels = op["alpha"], op["input"].shape[-1]
    assert alpha.data is not None
    x = g.read(op["input"], layout=Layout.FIRST)
    negated = g.constant(np.full((channels, 1, 1, 1), -1, np.float32))
    slopes = g.constant(-alpha.data.reshape(channels, 1, 1, 1))
    negative = g.op("Relu", g.op("Conv", x, negated, group=channels))
    sum = g.op("Add", g.op("Conv", negative, slopes, group=channels), g.op("Relu", x))
    g.write(op.output, sum, layout=Layout.FIRST)


def of_one_slope(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """PRELU of floats whose slopes are all the same constant."""
    slopes = op["alpha"].data
    if op["input"].type is not TensorType.FLOAT32 or slopes is None or not slopes.size:
        return ()
    slope = float(slopes.reshape(-1)[0])
    return [Lowering("leaky", {}, partial(_leaky, op, g, slope))] if (slopes == slope).all() else ()


def _leaky(op: View, g: Graph, slope: float) -> None:
    layout = g.layout(op["input"])
    x = g.read(op["input"], layout=layout)
    g.write(op.output, g.op("LeakyRelu", x, alpha=slope), layout=layout)


def products(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """PRELU of many elements by constant slopes, of floats or of codes that are rounded as real
    numbers are."""
    input, alpha = op["input"], op["alpha"]
    if alpha.data is None or (input.type in _BYTES and not rounds_as_reals(op)):
        return ()
    if is_known(*input.shape) and math.prod(input.shape) < _FEWEST_PRODUCTS:
        return ()
    return [Lowering("products", {}, partial(_products, op, g))]


def _products(op: View, g: Graph) -> None:
    input, alpha = op["input"], op["alpha"]
    layout = g.layout(input)
    x, slope = g.read(input, layout=layout), g.read(alpha, layout=layout, rank=input.rank)
    assert alpha.data is not None
    slopes = alpha.data.astype(np.float64)
    if alpha.quantization is not None:
        codes = slopes - alpha.quantization.scalar_zero_point
        slopes = codes * alpha.quantization.scalar_scale
    elif layout is Layout.LAST and _is_one_a_channel(input, alpha):
        slope = _for_rows(g, slope, slopes, input)
    product = g.op("Mul", x, slope)
    if np.all((slopes > 0) & (slopes <= 1)):
        g.write(op.output, g.op("Max", x, product), layout=layout)
    else:
        is_negative = g.op("Less", x, g.constant(0, np.float32))
        g.write(op.output, g.op("Where", is_negative, product, x), layout=layout)


def _for_rows(g: Graph, slope: ir.Value, slopes: Slopes, input: TensorView) -> ir.Value:
    """The slopes of the channels, repeated for all cells of a row of a map.

    ONNX Runtime calls its kernel once for each repetition of a smaller operand. For 64 channels of
    a large map a product then takes twice as long.
    """
    *_, width, channels = input.shape
    if not is_known(width) or width * channels > _MOST_REPEATED:
        return slope
    return g.constant(np.tile(slopes.reshape(channels), (width, 1)), np.float32)


def _is_one_a_channel(input: TensorView, alpha: TensorView) -> bool:
    return (
        input.rank == 4
        and is_known(input.shape[-1])
        and alpha.shape[-1:] == (math.prod(alpha.shape),) == input.shape[-1:]
        and input.shape[-1] > 1
    )
