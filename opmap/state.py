"""Variables: inputs and outputs of the graph, so that reading one and setting it cost nothing.

Hash tables are not translated: their keys or values are strings, which ONNX Runtime would copy one
by one on the way in and out, and a table is a dictionary already.
"""

from __future__ import annotations

from tflite_ort.opmap.forms import Domain
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorView, Untranslatable


@translator(Op.READ_VARIABLE, versions=(1, 1), inputs=("variable",))
def read_variable(op: OperatorView[None], g: Graph) -> None:
    """The present value of the variable, its codes as they are."""
    _pass_on(op["variable"], op.output, g)


@translator(Op.ASSIGN_VARIABLE, versions=(1, 1), inputs=("variable", "value"))
def assign_variable(op: OperatorView[None], g: Graph) -> None:
    """From here on the variable is the value, in the layout that this has."""
    _pass_on(op["value"], op["variable"], g)


def _pass_on(source: TensorView, target: TensorView, g: Graph) -> None:
    if source.type is not target.type:
        raise Untranslatable(f"a {source.type.name} value for a {target.type.name} one")
    domain = Domain.STORED if source.is_quantized and target.is_quantized else Domain.FILE
    layout = g.layout(source)
    g.write(target, g.read(source, layout=layout, domain=domain), layout=layout, domain=domain)
