"""Convolutions of floats by windows of one cell over a map that has its channels last: products of
rows.

ONNX Runtime would put the map into blocks of channels first. A product of rows takes as long as the
convolution of blocks, and reads the map as it is.
"""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.rows import has_rows
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias
from tflite_ort.schema import ActivationFunctionType, OperatorView, TensorType
from tflite_ort.schema.values.sizes import is_known

# Those that ONNX Runtime makes a part of a Gemm.
_FUSED = frozenset({ActivationFunctionType.NONE, ActivationFunctionType.RELU})


def product_of_cells(op: OperatorView[Any], g: Graph) -> bool:
    """Translate a CONV_2D as a Gemm; returns whether that is faster.

    The result has to be no larger than the map: a convolution that follows puts it into blocks.
    """
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    if not (g.target.cpu_kernels and g.target.block and _is_by_cell(op)):
        return False
    if any(tensor.type is not TensorType.FLOAT32 for tensor in (input, filter, op.output)):
        return False
    if not filter.is_constant or not (bias is None or bias.is_constant):
        return False
    outputs, channels = filter.shape[0], filter.shape[3]
    if input.shape[3] != channels or not g.target.block <= channels >= outputs > 1:
        return False
    if not is_known(*input.shape) or g.layout(input) is not Layout.LAST or not has_rows(op.output):
        return False
    rows = g.read(input, layout=Layout.ROWS)
    weights = g.weights(filter, shape=[outputs, channels], real=True)
    result = g.op("Gemm", rows, weights, accumulator_bias(g, input, filter, bias), transB=1)
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.ROWS, activation=activation)
    return True


def _is_by_cell(op: OperatorView[Any]) -> bool:
    """Whether each cell of the result is made of one cell, and is made no other number after."""
    options = op.options
    is_cell = tuple(op["filter"].shape[1:3]) == (1, 1) and op["input"].rank == 4
    steps = options.stride_h, options.stride_w
    return is_cell and steps == (1, 1) and options.fused_activation_function in _FUSED
