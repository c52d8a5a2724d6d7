"""SVDF of integer codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, ir
from tflite_ort.opmap.graph.choices import Lowering, build_chosen
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
_WRAPS = 2**31  # sums from here on wrap around in TFLite
_ALL = 2**32
# Up to so many weights a product in float64 takes less time than the nodes that it saves.
_FEW = 2**15

View = OperatorView[SVDFOptions]
Array = npt.NDArray[Any]


# Makes the sums [B, U] in float64 of the state's codes [B, F, M].
Sums = Callable[[ir.Value], ir.Value]


def integer_svdf(op: View, g: Graph) -> None:
    """SVDF of codes: a product rescaled to the newest step of the state, then a weighted sum of it.

    Multipliers are products and quotients of scales in float32. TFLite's sums have 32 bits, and
    wrap around. So do products of matrices of 32-bit integers. ReduceSum of such integers does not.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    filters, memory = op["weights_time"].shape
    work = {"State sums": 1.0, "State sums codes": float(filters * memory)}
    work["State sums filters"] = float(filters)
    rows = {what.replace("sums", "rows"): amount for what, amount in work.items()}
    lift = _WRAPS if _reach(op) >= _WRAPS else 0
    lowerings = [
        Lowering("sums", work, partial(_svdf, op, g, partial(_sums, op, g, lift), lift)),
        Lowering("rows", rows, partial(_svdf, op, g, partial(_products_of_rows, op, g), 0)),
    ]
    build_chosen(op, lowerings if g.target.cpu_kernels else lowerings[:1], g.target.choose)


def _svdf(op: View, g: Graph, sums: Sums, lift: int) -> None:
    """The nodes of the operator.

    Args:
        sums: larger by `lift` than TFLite's.
    """
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
    g.write(output, _output_codes(op, g, sums(rows), lift), domain=Domain.STORED)


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


def _output_codes(op: View, g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """The carried codes [B, U] of the output for sums in float64, which are `lift` too large."""
    output, multiplier = op.output, _scale(op["state"]) * _scale(op["weights_time"])
    multiplier, reach = multiplier / _scale(output), float(min(_reach(op), _WRAPS))
    in_double = multiplies_in_double(multiplier, reach, bits=9)
    if not (g.target.cpu_kernels and in_double and _carried_zero_point(output) == 0):
        sums = g.op("Sub", sums, g.constant(lift, np.float64)) if lift else sums
        return _codes(g, rescaled(g, sums, multiplier, reach, bits=9), output)
    # What is below 0 is clipped. Above, both roundings are one: they take halves upwards. Lifted
    # products are below 2**63, and so within 2**9 of the double, as `multiplies_in_double` wants.
    factor, right = first_factor(multiplier)
    half = 0.5 + (2.0 ** -(right + 1) if right else 0)
    factor = factor * 2.0**-right
    sums = g.op("Mul", sums, g.constant(factor))
    sums = g.op("Add", sums, g.constant(half - lift * factor))
    return g.cast(clip(g, sums, (0, _REACH)), ir.DataType.UINT8)


def _reach(op: View) -> int:
    """The largest magnitude of a sum of the state's codes."""
    time, bias = np.abs(_constant(op["weights_time"]).astype(np.int64)), np.abs(_bias(op))
    largest = time.reshape(len(time) // op.options.rank, -1).sum(axis=1) * _STATE_REACH
    return int((largest + bias).max())


def _bias(op: View) -> npt.NDArray[np.int64]:
    if op.get("bias") is None:
        return np.zeros(1, np.int64)
    return _constant(op["bias"]).astype(np.int64)


def _sums(op: View, g: Graph, lift: int, rows: ir.Value) -> ir.Value:
    """[B, U] of the state's codes [B, F, M], summed in float64. Where they may wrap around they are
    from 0 to 2**32, and `lift` too large."""
    time, rank, added = _constant(op["weights_time"]), op.options.rank, _bias(op).astype(np.float64)
    filters, memory = time.shape
    steps = g.op("Mul", _steps(op, g, rows, np.float64), _weights(g, time, np.float64))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    if lift:  # to above 0, where the rest of a division is
        added = added + lift + _ALL * (_reach(op) // _ALL + 1)
    sums = g.op("Add", sums, g.constant(added)) if added.any() else sums
    return g.op("Mod", sums, g.constant(_ALL, np.float64), fmod=1) if lift else sums


def _products_of_rows(op: View, g: Graph, rows: ir.Value) -> ir.Value:
    """[B, U] of the state's codes [B, F, M]: each row times its weights, in 32-bit integers."""
    time, rank, bias = _constant(op["weights_time"]), op.options.rank, _bias(op)
    filters, memory = time.shape
    units, columns = filters // rank, rank * memory
    steps = g.reshape(_steps(op, g, rows, np.int32), (-1, units, 1, columns))
    weights = _weights(g, time.reshape(units, columns, 1), np.int32)
    sums = g.reshape(g.op("MatMul", steps, weights), (-1, units))
    sums = g.op("Add", sums, g.constant(bias.astype(np.int32))) if bias.any() else sums
    return g.cast(sums, ir.DataType.DOUBLE)


def _steps(op: View, g: Graph, rows: ir.Value, dtype: type[np.number[Any]]) -> ir.Value:
    """The state's codes less their zero point."""
    steps, zero_point = g.cast(rows, np.dtype(dtype)), _carried_zero_point(op["state"])
    return g.op("Sub", steps, g.constant(zero_point, dtype)) if zero_point else steps


def _weights(g: Graph, time: Array, dtype: type[np.number[Any]]) -> ir.Value:
    return g.constants.add(time.astype(dtype), "weights_time")


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
