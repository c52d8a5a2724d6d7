"""The fused activation functions of values that are floats."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType
from tflite_ort.schema.values.semantics import activation_bounds


def activated(g: Graph, value: ir.Value, activation: ActivationFunctionType) -> ir.Value:
    """`value` after an activation function."""
    if activation is ActivationFunctionType.TANH:
        return g.op("Tanh", value)
    if activation is ActivationFunctionType.SIGN_BIT:
        negative = g.op("Less", value, g.constant(0, np.float32))
        return g.cast(negative, ir.DataType.FLOAT)
    low, high = activation_bounds(activation)
    if (low, high) == (0.0, None):
        return g.op("Relu", value)
    bounds = [None if bound is None else g.constant(bound, np.float32) for bound in (low, high)]
    return g.op("Clip", value, *bounds) if low is not None else value
