"""FULLY_CONNECTED of many rows of 8-bit codes as a convolution by windows of one cell: a row each.

The sums and their rounding are the same. For many rows ONNX Runtime's QLinearConv takes less time
than its QGemm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.rows import has_rows
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import FullyConnectedOptions, OperatorView, TensorType
from tflite_ort.schema.values.sizes import is_known, known_product

View = OperatorView[FullyConnectedOptions]

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_UNITS_AT_ONCE = 16
_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def rows_as_cells(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """The plain product of rows, and cells where there are several rows of codes."""
    input, filter, output = op["input"], op["filter"], op.output
    types = {input.type, filter.type, output.type}
    if not (types <= _BYTES and filter.is_constant and is_known(*input.shape, *filter.shape)):
        return ()
    units, depth = filter.shape
    count = known_product(input.shape) // max(depth, 1)
    if count < 2 or not (units and depth):
        return ()
    # The kernels write 16 results at once, and the rest one by one.
    ragged = " ragged" if units % _UNITS_AT_ONCE else ""
    work = {"Gemm": 1.0, "Gemm rows": count, f"Gemm results{ragged}": count * units}
    work[f"Gemm products{ragged}"] = count * units * depth
    cells = {what.replace("Gemm", "Cells"): amount for what, amount in work.items()}
    return [
        Lowering("rows", work, partial(rest, op)),
        Lowering("cells", cells, partial(_cells, op, g, count)),
    ]


def _cells(op: View, g: Graph, count: int) -> None:
    input, filter, output = op["input"], op["filter"], op.output
    units, depth = filter.shape
    layout = Layout.ROWS if has_rows(input) and input.shape[-1] == depth else Layout.LAST
    codes = g.reshape(g.read(input, layout=layout, domain=Domain.STORED), (1, 1, count, depth))
    x = g.dequantize(g.op("Transpose", codes, perm=_TO_FIRST), input)
    weights = g.weights(filter, shape=(units, depth, 1, 1))
    bias = accumulator_bias(g, input, filter, op.get("bias"))
    made = g.quantize(g.op("Conv", x, weights, bias, kernel_shape=[1, 1]), output)
    made = g.op("Transpose", made, perm=_TO_LAST)
    in_rows = output.rank == 2 or has_rows(output)
    made = g.reshape(made, (count, units) if in_rows else output.shape)
    layout = Layout.ROWS if in_rows else Layout.LAST
    activation = op.options.fused_activation_function
    g.write(output, made, layout=layout, domain=Domain.STORED, activation=activation)
