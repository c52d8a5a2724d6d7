"""SVDF of codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.fixed_point import (
    centred_codes,
    exact_product,
    read_centred,
    rescaled,
)
from tflite_ort.opmap.forms import Domain
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.movement import reshaped
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    SVDFOptions,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.semantics import quantized_range

_REACH = 255  # of an 8-bit code less its zero point
_STATE_REACH = 32768


def integer_svdf(op: OperatorView[SVDFOptions], g: Graph) -> None:
    """MatMul, rescaled into the last place of the state; ReduceSum of that times weights, rescaled.

    Multipliers are products and quotients of scales in float32.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    state, output = op["state"], op.output
    feature, (filters, memory) = _codes(op["weights_feature"]), op["weights_time"].shape
    made = exact_product(g, read_centred(g, op["input"]), feature.T, _REACH)
    multiplier = _scale(op["input"]) * _scale(op["weights_feature"]) / _scale(state)
    largest = _REACH * np.abs(feature.astype(np.int64)).sum(axis=1).max()
    made = rescaled(g, made, multiplier, float(largest), bits=17)
    # A sum is cut to the type of the state, and again after its zero point is added.
    made = _held(g, _cut(g, made, *quantized_range(state.type)), state)
    made = g.op("Unsqueeze", g.op("Cast", made, to=ir.DataType.FLOAT), g.constant([2], np.int64))
    rows = reshaped(g, read_centred(g, state), (-1, filters, memory))
    kept = g.op("Slice", rows, *(g.constant([bound], np.int64) for bound in (1, memory, 2)))
    rows = g.op("Concat", kept, made, axis=2)
    new = reshaped(g, rows, (-1, filters * memory))
    g.write(state, centred_codes(g, new, state), domain=Domain.STORED)
    value = _held(g, _rescaled_sums(op, g, rows), output)
    value = g.op("Cast", value, to=ir.DataType.FLOAT)
    g.write(output, centred_codes(g, value, output), domain=Domain.STORED)


def _rescaled_sums(op: OperatorView[SVDFOptions], g: Graph, rows: ir.Value) -> ir.Value:
    """[B, U] of the state [B, F, M]."""
    time, rank = _codes(op["weights_time"]).astype(np.int64), op.options.rank
    filters, memory = time.shape
    rows = g.op("Cast", rows, to=ir.DataType.DOUBLE)
    weighted = g.op("Mul", rows, g.constants.add(time.astype(np.float64), "weights_time"))
    units = reshaped(g, weighted, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", units, g.constant([2], np.int64), keepdims=0)
    largest = np.abs(time).reshape(filters // rank, -1).sum(axis=1) * _STATE_REACH
    if op.get("bias") is not None:
        bias = _codes(op["bias"]).astype(np.int64)
        largest = largest + np.abs(bias)
        sums = g.op("Add", sums, g.constant(bias.astype(np.float64)))
    if largest.max() >= 2**31:
        sums = _wrapped(g, sums)
    multiplier = _scale(op["state"]) * _scale(op["weights_time"]) / _scale(op.output)
    return rescaled(g, sums, multiplier, min(float(largest.max()), 2.0**31), bits=9)


def _wrapped(g: Graph, value: ir.Value) -> ir.Value:
    """Sums as TFLite's 32 bits hold them."""
    for type in (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.DOUBLE):
        value = g.op("Cast", value, to=type)
    return value


def _codes(tensor: TensorView) -> npt.NDArray[Any]:
    if tensor.data is None:
        raise Untranslatable(f"{tensor.name!r} is not a constant")
    return tensor.data


def _scale(tensor: TensorView) -> np.float32:
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    return np.float32(tensor.quantization.scale[0])


def _held(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """Cut to what the codes of `tensor` reach from their zero point."""
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    low, high = quantized_range(tensor.type)
    return _cut(g, value, low - zero_point, high - zero_point)


def _cut(g: Graph, value: ir.Value, low: int, high: int) -> ir.Value:
    return g.op("Clip", value, g.constant(low, np.float64), g.constant(high, np.float64))
