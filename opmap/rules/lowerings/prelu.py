"""PRELU by nodes that ONNX Runtime runs faster than PRelu, with the same results.

- In blocks of channels it is Relu(x) + slope * -Relu(-x), with depthwise 1x1 convolutions as
  products: unlike PRelu these keep the blocks, so that nothing is reordered before and after.
- Of one slope it is LeakyRelu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known


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


def _is_one_a_channel(input: TensorView, alpha: TensorView) -> bool:
    return (
        input.rank == 4
        and is_known(input.shape[-1])
        and alpha.shape[-1:] == (math.prod(alpha.shape),) == input.shape[-1:]
        and input.shape[-1] > 1
    )
