"""Convolutions of floats by windows of one cell over a map that has its channels last: products of
rows.

ONNX Runtime would put the map into blocks of channels first. A product of rows takes as long as the
convolution of blocks, and reads the map as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.rows import RESHAPES, has_rows
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import ActivationFunctionType, Op, TensorType
from tflite_ort.schema.values.sizes import is_known

# Those that ONNX Runtime makes a part of a Gemm.
_FUSED = frozenset({ActivationFunctionType.NONE, ActivationFunctionType.RELU})
_MOVES = frozenset({*RESHAPES, Op.TRANSPOSE, Op.FULLY_CONNECTED, Op.SOFTMAX})


def cells_as_rows(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A CONV_2D as a Gemm where that is faster: what reads the result must not want it in
    blocks."""
    if not _is_by_cell(op, g) or g.is_in(op["input"], Layout.FIRST) or not has_rows(op.output):
        return ()
    return [Lowering("cells", {}, partial(_product, op, g))]


def _product(op: View, g: Graph) -> None:
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    rows, (outputs, *_, channels) = g.read(input, layout=Layout.ROWS), filter.shape
    weights = g.weights(filter, shape=[outputs, channels], real=True)
    result = g.op("Gemm", rows, weights, accumulator_bias(g, input, filter, bias), transB=1)
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.ROWS, activation=activation)


def _is_by_cell(op: View, g: Graph) -> bool:
    """Whether a convolution of floats makes each cell of one cell, no more channels than it reads,
    and only moves and such convolutions follow."""
    input, filter, bias = (*op.inputs, None)[:3]
    if input is None or filter is None or not filter.is_constant or filter.rank != 4:
        return False
    if any(tensor.type is not TensorType.FLOAT32 for tensor in (input, filter, op.output)):
        return False
    if not (bias is None or bias.is_constant) or not is_known(*input.shape) or input.rank != 4:
        return False
    options, (outputs, *kernel, channels) = op.options, filter.shape
    if kernel != [1, 1] or (options.stride_h, options.stride_w) != (1, 1):
        return False
    if input.shape[3] != channels or not g.target.block <= channels >= outputs > 1:
        return False
    return options.fused_activation_function in _FUSED and all(
        reader.op in _MOVES or (reader.op is Op.CONV_2D and _is_by_cell(reader, g))
        for reader in g.readers(op.output)
    )
