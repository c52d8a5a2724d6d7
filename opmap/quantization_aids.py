"""Operators that tools for quantization add to models: NumericVerify, aeq.hadamard_rotation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import matched
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import custom_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.sizes import may_differ
from tflite_ort.schema.values.well_known_options import (
    HadamardRotationOptions,
    NumericVerifyOptions,
    map_options,
)

_WIDEST = 256  # of a Hadamard matrix that stands in a graph as a whole


@custom_translator("NumericVerify", versions=(1, 1))
def numericverify(op: OperatorView[Any], g: Graph) -> None:
    """Dequantized codes less the reference; ONNX has no node that fails on a large difference."""
    if map_options(op, NumericVerifyOptions).checks:
        raise Untranslatable("a difference above the tolerance is to be an error")
    real = g.read(op["input"])
    if op["input"].type is TensorType.FLOAT16:
        real = g.cast(real, ir.DataType.FLOAT)
    elif not op["input"].is_quantized:
        raise Untranslatable(f"{op['input'].type.name} input without a scale")
    reference = g.read(op["reference"])
    if may_differ(op["input"].shape, op["reference"].shape):
        reference = matched(g, reference, real)
    g.write(op.output, g.op("Sub", real, reference))


@custom_translator("aeq.hadamard_rotation", versions=(1, 1))
def aeq_hadamard_rotation(op: OperatorView[Any], g: Graph) -> None:
    """MatMul of every `hadamard_size` values with the normalised Hadamard matrix. Many are rows and
    columns, each with a matrix of its own."""
    input, size = op["input"], map_options(op, HadamardRotationOptions).hadamard_size
    if input.type is not TensorType.FLOAT32 or size < 1 or size & (size - 1):
        raise Untranslatable(f"{input.type.name} input in parts of {size}")
    if input.shape[-1] % size:
        raise Untranslatable(f"rows of {input.shape[-1]} in parts of {size}")
    rows = 1 if size <= _WIDEST else 1 << (size.bit_length() - 1) // 2
    columns = size // rows
    parts = g.reshape(g.read(input), (-1, columns) if rows == 1 else (-1, rows, columns))
    turned = g.op("MatMul", parts, _hadamard(g, columns))
    if rows > 1:
        turned = g.op("MatMul", _hadamard(g, rows), turned)
    g.write(op.output, g.reshape(turned, input.shape))


def _hadamard(g: Graph, size: int) -> ir.Value:
    """The normalised Hadamard matrix, [size, size]."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return g.constant(matrix / np.sqrt(size), np.float32)
