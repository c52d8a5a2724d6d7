"""TensorFlow's operators: ``Flex<name>``, or their own name where a converter left them custom."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import custom_translator, translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.node_def import SAME_AS_BUILTIN, as_builtin

UNARY = {
    "Atan": "Atan",
    "ATAN": "Atan",
    "Sinh": "Sinh",
    "FlexErf": "Erf",
    "FlexSoftplus": "Softplus",
}


def unary(op: OperatorView[Any], g: Graph) -> None:
    """The ONNX operator of `UNARY`, element by element; float32."""
    if op["x"].type is not TensorType.FLOAT32:
        raise Untranslatable(f"{op['x'].type.name} input, only FLOAT32 is defined")
    layout = g.layout(op["x"])
    result = g.op(UNARY[op.name], g.read(op["x"], layout=layout))
    g.write(op.output, result, layout=layout)


def same_as_builtin(op: OperatorView[Any], g: Graph) -> None:
    """What the translator of TFLite's own operator makes."""
    builtin = as_builtin(op)
    entry = translator.find(builtin.op, builtin.version)
    if entry is None:
        raise Untranslatable(f"no translator for {builtin.name}")
    entry.function(entry.inputs.bind(builtin), g)


for _name in UNARY:
    custom_translator(_name, versions=(1, 1))(unary)
for _name in SAME_AS_BUILTIN:
    custom_translator(f"Flex{_name}", versions=(1, 1))(same_as_builtin)
