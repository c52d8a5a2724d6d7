"""NEG between DEQUANTIZE and QUANTIZE, as converters write it since TFLite has none of codes.

The codes are read with the opposite scale. ONNX Runtime makes one lookup of it.
"""

from __future__ import annotations

from functools import partial

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import Op, TensorType, TensorView

_CODES = Leaf()
_REAL = node(Op.DEQUANTIZE)(_CODES)
_NEGATIVE = node(Op.QUANTIZE)(node(Op.NEG)(_REAL))
_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})


def _plan(found: Found, _: Surroundings) -> Emit | None:
    given, made = found[_CODES], found[_NEGATIVE]
    if {given.type, made.type} - _BYTES or found[_REAL].type is not TensorType.FLOAT32:
        return None
    for each in (given, made):
        if each.quantization is None or each.quantization.per_channel or not each.is_quantized:
            return None
    return partial(_emit, given) if given.shape == made.shape else None


def _emit(given: TensorView, g: Graph, op: View) -> None:
    assert given.quantization is not None
    layout = g.layout(given)
    opposite = g.read_steps(given, -given.quantization.scalar_scale, layout=layout)
    # Between two nodes of codes a LeakyRelu of slope 1 makes a table of them.
    g.write(op.output, g.op("LeakyRelu", opposite, alpha=1.0), layout=layout)


NEGATIVES = (Pattern("NEG of codes", _NEGATIVE, _plan),)
