"""SVDF of integer codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, ir
from tflite_ort.opmap.graph.constants import carried_type
from tflite_ort.opmap.idioms.fixed_point import exact_product, rescaled
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    SVDFOptions,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

_REACH = 255  # of an 8-bit code less its zero point
_STATE_REACH = 32768


def integer_svdf(op: OperatorView[SVDFOptions], g: Graph) -> None:
    """SVDF of codes: a MatMul rescaled to the newest step of the state, then a weighted sum of it.

    Multipliers are products and quotients of scales in float32.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    state, output = op["state"], op.output
    feature, (filters, memory) = _constant(op["weights_feature"]), op["weights_time"].shape
    made = exact_product(g, g.read_steps(op["input"]), feature.T, _REACH)
    multiplier = _scale(op["input"]) * _scale(op["weights_feature"]) / _scale(state)
    largest = _REACH * np.abs(feature.astype(np.int64)).sum(axis=1).max()
    made = rescaled(g, made, multiplier, float(largest), bits=17)
    # A sum is cut to the type of the state, and again after its zero point is added.
    made = _codes(g, made, state, *quantized_range(state.type))
    made = g.op("Unsqueeze", made, g.ints([2]))
    rows = g.reshape(g.read(state, domain=Domain.STORED), (-1, filters, memory))
    kept = g.op("Slice", rows, *(g.ints([bound]) for bound in (1, memory, 2)))
    rows = g.op("Concat", kept, made, axis=2)
    g.write(state, g.reshape(rows, (-1, filters * memory)), domain=Domain.STORED)
    g.write(output, _codes(g, _rescaled_sums(op, g, rows), output), domain=Domain.STORED)


def _rescaled_sums(op: OperatorView[SVDFOptions], g: Graph, rows: ir.Value) -> ir.Value:
    """[B, U] of the state's codes [B, F, M]; the sums are held in 32 bits as TFLite's are."""
    time, rank = _constant(op["weights_time"]).astype(np.int64), op.options.rank
    filters, memory = time.shape
    bias = np.zeros(1, np.int64) if op.get("bias") is None else _constant(op["bias"])
    largest = np.abs(time).reshape(filters // rank, -1).sum(axis=1) * _STATE_REACH
    reach = (largest + np.abs(bias.astype(np.int64))).max()
    # Sums beyond 32 bits are cut by ONNX Runtime; those of 64 bits wrap around when they are cast.
    wide = reach >= 2**31
    dtype: type[np.integer] = np.int64 if wide else np.int32
    steps = g.cast(rows, np.dtype(dtype))
    zero_point = _carried_zero_point(op["state"])
    if zero_point:
        steps = g.op("Sub", steps, g.constant(zero_point, dtype))
    steps = g.op("Mul", steps, g.constants.add(time.astype(dtype), "weights_time"))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    sums = g.op("Add", sums, g.constant(bias, dtype)) if bias.any() else sums
    sums = g.cast(sums, ir.DataType.INT32) if wide else sums
    sums = g.cast(sums, ir.DataType.DOUBLE)
    multiplier = _scale(op["state"]) * _scale(op["weights_time"]) / _scale(op.output)
    return rescaled(g, sums, multiplier, min(float(reach), 2.0**31), bits=9)


def _codes(
    g: Graph, value: ir.Value, tensor: TensorView, lowest: float = -np.inf, highest: float = np.inf
) -> ir.Value:
    """The carried codes of `tensor` for codes less their zero point, in float64.

    They are clipped to `lowest` and `highest`, and to the range of the type.
    """
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    low, high = quantized_range(tensor.type)
    bounds = max(lowest, low - zero_point), min(highest, high - zero_point)
    value = g.op("Clip", value, *(g.constant(bound, np.float64) for bound in bounds))
    carried = _carried_zero_point(tensor)
    if carried:
        value = g.op("Add", value, g.constant(carried, np.float64))
    return g.cast(value, NUMPY_DTYPE[carried_type(tensor)])


def _carried_zero_point(tensor: TensorView) -> int:
    """The zero point of the carried codes of `tensor`."""
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    return zero_point + (128 if carried_type(tensor) is not tensor.type else 0)


def _constant(tensor: TensorView) -> npt.NDArray[Any]:
    if tensor.data is None:
        raise Untranslatable(f"{tensor.name!r} is not a constant")
    return tensor.data


def _scale(tensor: TensorView) -> np.float32:
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    return tensor.quantization.sole_scale
