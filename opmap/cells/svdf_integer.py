"""SVDF of integer codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, ir
from tflite_ort.opmap.graph.constants import carried_type
from tflite_ort.opmap.idioms.fixed_point import (
    clip,
    exact_product,
    first_factor,
    is_exact_in_double,
    multiplies_in_double,
    rescaled,
    shifted_right,
)
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
_HELD = 2**52  # integers that float64 holds, with a bit to spare
# Up to so many weights a product in float64 takes less time than the nodes that it saves.
_FEW = 2**15

View = OperatorView[SVDFOptions]
Array = npt.NDArray[Any]


def integer_svdf(op: View, g: Graph) -> None:
    """SVDF of codes: a MatMul rescaled to the newest step of the state, then a weighted sum of it.

    Multipliers are products and quotients of scales in float32.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    state, output = op["state"], op.output
    feature, (filters, memory) = _constant(op["weights_feature"]), op["weights_time"].shape
    made = _newest(op, g, feature.astype(np.int64))
    # A sum is cut to the type of the state, and again after its zero point is added.
    made = _codes(g, made, state, *quantized_range(state.type))
    made = g.op("Unsqueeze", made, g.ints([2]))
    rows = g.reshape(g.read(state, domain=Domain.STORED), (-1, filters, memory))
    kept = g.op("Slice", rows, *(g.ints([bound]) for bound in (1, memory, 2)))
    rows = g.op("Concat", kept, made, axis=2)
    g.write(state, g.reshape(rows, (-1, filters * memory)), domain=Domain.STORED)
    g.write(output, _output_codes(op, g, rows), domain=Domain.STORED)


def _newest(op: View, g: Graph, feature: Array) -> ir.Value:
    """The newest step [B, F] of the state: the product with weights [F, I], rescaled."""
    input = op["input"]
    multiplier = _scale(input) * _scale(op["weights_feature"]) / _scale(op["state"])
    largest = float(_REACH * np.abs(feature).sum(axis=1).max())
    # The products with the zero point are added, so that sums may be twice as large.
    few = feature.size <= _FEW and is_exact_in_double(multiplier, 2 * largest)
    if not (g.target.cpu_kernels and few):
        made = exact_product(g, g.read_steps(input), feature.T, _REACH)
        return rescaled(g, made, multiplier, largest, bits=17)
    factor, right = first_factor(multiplier)
    codes = g.cast(g.read(input, domain=Domain.STORED), ir.DataType.DOUBLE)
    weights = g.constants.add(feature.T * factor, "weights_feature")
    rest = 0.5 - _carried_zero_point(input) * feature.sum(axis=1) * factor
    sums = g.op("Gemm", codes, weights, g.constants.add(rest, "zero_point"))
    return shifted_right(g, g.op("Floor", sums), right)


def _output_codes(op: View, g: Graph, rows: ir.Value) -> ir.Value:
    """The carried codes [B, U] of the output for the state's codes [B, F, M]."""
    sums, reach = _sums(op, g, rows)
    output, multiplier = op.output, _scale(op["state"]) * _scale(op["weights_time"])
    multiplier /= _scale(output)
    in_double = multiplies_in_double(multiplier, reach, bits=9)
    if not (g.target.cpu_kernels and in_double and _carried_zero_point(output) == 0):
        return _codes(g, rescaled(g, sums, multiplier, reach, bits=9), output)
    # What is below 0 is clipped. Above, both roundings are one: they take halves upwards.
    factor, right = first_factor(multiplier)
    half = 0.5 + (2.0 ** -(right + 1) if right else 0)
    sums = g.op("Mul", sums, g.constant(factor * 2.0**-right))
    sums = g.op("Add", sums, g.constant(half))
    return g.cast(clip(g, sums, (0, _REACH)), ir.DataType.UINT8)


def _sums(op: View, g: Graph, rows: ir.Value) -> tuple[ir.Value, float]:
    """[B, U] of the state's codes [B, F, M] in float64, held in 32 bits as TFLite's are, and the
    largest magnitude of one."""
    time, rank = _constant(op["weights_time"]).astype(np.int64), op.options.rank
    filters, memory = time.shape
    bias = np.zeros(1, np.int64) if op.get("bias") is None else _constant(op["bias"])
    largest = np.abs(time).reshape(filters // rank, -1).sum(axis=1) * _STATE_REACH
    reach = (largest + np.abs(bias.astype(np.int64))).max()
    # float64 adds in half the time that int64 takes.
    dtype: type[np.number[Any]] = np.float64 if reach < _HELD else np.int64
    steps = g.cast(rows, np.dtype(dtype))
    zero_point = _carried_zero_point(op["state"])
    if zero_point:
        steps = g.op("Sub", steps, g.constant(zero_point, dtype))
    steps = g.op("Mul", steps, g.constants.add(time.astype(dtype), "weights_time"))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    sums = g.op("Add", sums, g.constant(bias, dtype)) if bias.any() else sums
    if reach >= 2**31:  # 64 bits wrap around when they are cast to 32
        for kind in (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.DOUBLE):
            sums = g.cast(sums, kind)
    return sums, min(float(reach), 2.0**31)


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


def _constant(tensor: TensorView) -> Array:
    if tensor.data is None:
        raise Untranslatable(f"{tensor.name!r} is not a constant")
    return tensor.data


def _scale(tensor: TensorView) -> np.float32:
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    return tensor.quantization.sole_scale
