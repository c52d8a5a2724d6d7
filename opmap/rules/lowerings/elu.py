"""ELU of many floats by four nodes: ONNX Runtime runs Exp four times as fast as the powers in Elu.

The larger of x and exp(min(x, 0)) - 1 is ELU for all x, a NaN too, since exp(x) - 1 >= x. What does
not fit into a processor's cache takes the time of four passes over memory, which is no less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.sizes import is_known

_FEWEST, _MOST = 1 << 12, 1 << 18


def elu(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """ELU of floats, neither few nor too many."""
    input = op["input"]
    if input.type is not TensorType.FLOAT32 or not is_known(*input.shape):
        return ()
    if not _FEWEST <= prod(input.shape) <= _MOST:
        return ()
    return [Lowering("powers", {}, partial(_powers, op, g))]


def _powers(op: View, g: Graph) -> None:
    layout = g.layout(op["input"])
    x = g.read(op["input"], layout=layout)
    power = g.op("Exp", g.op("Clip", x, None, g.constant(np.float32(0))))
    below = g.op("Add", power, g.constant(np.float32(-1)))
    g.write(op.output, g.op("Max", below, x), layout=layout)
