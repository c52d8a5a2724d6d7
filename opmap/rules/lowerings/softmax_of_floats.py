"""SOFTMAX between 8-bit codes as one of floats: the codes are the same.

ONNX Runtime makes one node of the plain form, which has a table of powers and rounds the quotients.
For long rows floats take less time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import OperatorView, SoftmaxOptions, TensorType
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[SoftmaxOptions]
_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})


def softmax_of_floats(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """The plain softmax, by a table, and one of floats."""
    input, output = op["input"], op.output
    if op.options.beta != 1 or not {input.type, output.type} <= _BYTES or not input.is_quantized:
        return ()
    if input.rank < 1 or not is_known(*input.shape) or input.shape[-1] == 1:
        return ()
    codes = float(prod(input.shape))
    rows = codes / max(1, input.shape[-1])
    work = {"Softmax": 1.0, "Softmax rows": rows, "Softmax codes": codes}
    floats = {"Softmax of floats": 1.0, "Softmax float rows": rows, "Softmax floats": codes}
    return [
        Lowering("table", work, partial(rest, op)),
        Lowering("floats", floats, partial(_of_floats, op, g)),
    ]


def _of_floats(op: View, g: Graph) -> None:
    input, output = op["input"], op.output
    x = g.read(input, layout=Layout.LAST)
    # Past a Flatten, which takes no time, ONNX Runtime moves no DequantizeLinear.
    rows = g.op("Softmax", g.op("Flatten", x, axis=input.rank - 1), axis=-1)
    g.write(output, rows if input.rank == 2 else g.reshape(rows, output.shape))
