"""TensorFlow's layers of neural networks."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.flex.elementwise import FLOAT, read_computed, write_computed
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView

_UNARY = {"Softplus": "Softplus"}


@flex_translator(*_UNARY)
def activation(op: OperatorView[Any], g: Graph) -> None:
    """The node of `_UNARY`, element by element."""
    (x,) = op.present_inputs()
    layout = g.layout(x)
    result = g.op(_UNARY[op.name.removeprefix("Flex")], read_computed(g, x, FLOAT, layout))
    write_computed(g, op.output, result, layout)
