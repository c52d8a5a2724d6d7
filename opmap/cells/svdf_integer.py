"""SVDF of integer codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering, build_chosen
from tflite_ort.opmap.graph.windows import has_window, with_newest
from tflite_ort.opmap.idioms.fixed_point import (
    clip,
    exact_product,
    first_factor,
    is_exact_in_double,
    may_tie,
    multiplies_in_double,
    reach,
    refuse_wraps,
    rescaled,
    rounded_twice,
    rounds_alike,
    shifted_right,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import carried_type
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    SVDFOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

_REACH = 255  # of an 8-bit code less its zero point
_STATE_REACH = 32768
_WRAPS = 2**31  # sums from here on wrap around in TFLite
_ALL = 2**32
# Marks numbers in float64 whose whole parts are codes.
_WHOLE_PARTS = "whole parts are codes"
# Up to so many weights a product in float64 takes less time than the nodes that it saves.
_FEW = 2**15

View = OperatorView[SVDFOptions]
Array = npt.NDArray[Any]


# Adds the newest step [B, F], codes in float64, to the state, and writes the state; makes its sums
# [B, U] in float64, larger by a number than TFLite's.
Sums = Callable[[View, Graph, int, ir.Value], ir.Value]


def integer_svdf(op: View, g: Graph) -> None:
    """SVDF of codes: a product rescaled to the newest step of the state, then a weighted sum of it.

    Multipliers are products and quotients of scales in float32. TFLite's sums have 32 bits, and
    wrap around. So do products of matrices of 32-bit integers. ReduceSum of such integers does not.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    if op["state"].type is TensorType.INT16 and _carried_zero_point(op["state"]):
        raise Untranslatable("an INT16 state with a zero point")
    _refuse_wraps(op)
    lift = _WRAPS if _reach(op) >= _WRAPS else 0
    lowerings = [_lowering(op, "sums", partial(_svdf, op, g, _sums, lift))]
    if g.target.cpu_kernels:
        lowerings.append(_lowering(op, "rows", partial(_svdf, op, g, _products_of_rows, 0)))
        if has_window(op["state"], op["weights_time"].shape[1]):
            window = _lowering(op, "window", partial(_svdf_of_window, op, g, lift))
            lowerings.insert(0, window)
    build_chosen(op, lowerings, g.target.choose)


def _refuse_wraps(op: View) -> None:
    """Refuses what TFLite shifts beyond 32 bits; `_wrapped` sums are none of it."""
    feature = _constant(op["weights_feature"])
    refuse_wraps(_state_multiplier(op), _REACH * reach(feature.T))
    refuse_wraps(_output_multiplier(op), min(_reach(op), _WRAPS - 1))


def _lowering(op: View, name: str, build: Callable[[], None]) -> Lowering:
    filters, memory = op["weights_time"].shape
    work = {"": 1.0, " codes": float(filters * memory), " filters": float(filters)}
    return Lowering(name, {f"State {name}{what}": each for what, each in work.items()}, build)


def _svdf(op: View, g: Graph, sums: Sums, lift: int) -> None:
    """The nodes of the operator.

    Args:
        lift: by how much `sums` makes sums too large.
    """
    codes = _output_codes(op, g, sums(op, g, lift, _newest(op, g)), lift)
    g.write(op.output, codes, domain=Domain.STORED)


def _svdf_of_window(op: View, g: Graph, lift: int) -> None:
    """The nodes of the operator with a state that is kept as rows [M, F] in float64.

    Where it makes no difference, the weights are multiplied by what the sums would be multiplied
    by. A sum that may wrap around is moved by half of its unit, so that no error takes it across
    the end of 32 bits.
    """
    newest, added, scaling = _newest(op, g), _added(op, lift), _scaling(op)
    if scaling is None or not _rounds_alike(op, lift):
        sums = _wrapped(g, _weighted_window(op, g, newest, 1.0, added), lift)
        g.write(op.output, _output_codes(op, g, sums, lift), domain=Domain.STORED)
        return
    factor, half = scaling
    added = (added + 0.5) * factor if lift else added * factor + half
    sums = _weighted_window(op, g, newest, factor, added)
    if lift:
        sums = g.op("Mod", sums, g.constant(_ALL * factor), fmod=1)
        sums = g.op("Add", sums, g.constant(half - (lift + 0.5) * factor))
    g.write(op.output, _whole_codes(g, sums), domain=Domain.STORED)


def _with_newest(op: View, g: Graph, newest: ir.Value) -> ir.Value:
    """The codes [B, F, M] of the state after the step `newest`; the state is written."""
    state, (filters, memory) = op["state"], op["weights_time"].shape
    made = g.op("Unsqueeze", g.cast(newest, NUMPY_DTYPE[carried_type(state)]), g.ints([2]))
    rows = g.reshape(g.read(state, domain=Domain.STORED), (-1, filters, memory))
    kept = g.op("Slice", rows, *(g.ints([bound]) for bound in (1, memory, 2)))
    rows = g.op("Concat", kept, made, axis=2)
    g.write(state, g.reshape(rows, (-1, filters * memory)), domain=Domain.STORED)
    return rows


def _newest(op: View, g: Graph) -> ir.Value:
    """The newest step [B, F] of the state in float64: its codes, of the state's type.

    A sum is cut to the type of the state, and again after its zero point is added.
    """
    state, feature = op["state"], _constant(op["weights_feature"]).astype(np.int64)
    return _clipped(g, _rescaled_product(op, g, feature), state, quantized_range(state.type))


def _rescaled_product(op: View, g: Graph, feature: Array) -> ir.Value:
    """The product [B, F] with weights [F, I], rescaled to the state's unit."""
    input = op["input"]
    multiplier = _state_multiplier(op)
    largest = float(_REACH * reach(feature.T).max())
    # The products with the zero point are added, so that sums may be twice as large.
    few = feature.size <= _FEW and is_exact_in_double(multiplier, 2 * largest)
    if not (g.target.cpu_kernels and few):
        made = exact_product(g, g.read_steps(input), feature.T, _REACH)
        return rescaled(g, made, multiplier, largest, bits=17)
    factor, right = first_factor(multiplier)
    at_once = bool(right) and not may_tie(*quantize_multiplier(multiplier), 2 * largest, bits=17)
    factor, half = (factor * 2.0**-right, 0.0) if at_once else (factor, 0.5)
    weights = g.constants.add(feature.T * factor, "weights_feature")
    rest = half - _carried_zero_point(input) * feature.sum(axis=1) * factor
    sums = g.op("Gemm", _in_double(op, g), weights, g.constants.add(rest, "zero_point"))
    if at_once:
        return rounded_twice(g, sums, int(right))
    return shifted_right(g, g.op("Floor", sums), right)


def _in_double(op: View, g: Graph) -> ir.Value:
    """The carried codes of the input; those of another SVDF are not made integers before."""
    codes = g.read(op["input"], domain=Domain.STORED)
    maker = codes.producer()
    source = None if maker is None or maker.op_type != "Cast" else maker.inputs[0]
    if source is not None and _WHOLE_PARTS in source.marks:
        return g.op("Floor", source)
    return g.cast(codes, ir.DataType.DOUBLE)


def _output_codes(op: View, g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """The carried codes [B, U] of the output for sums in float64, which are `lift` too large."""
    scaling = _scaling(op)
    if not g.target.cpu_kernels or scaling is None:
        output, most = op.output, float(min(_reach(op), _WRAPS))
        sums = g.op("Sub", sums, g.constant(lift, np.float64)) if lift else sums
        return _codes(g, rescaled(g, sums, _output_multiplier(op), most, bits=9), output)
    factor, half = scaling
    sums = g.op("Mul", sums, g.constant(factor))
    return _whole_codes(g, g.op("Add", sums, g.constant(half - lift * factor)))


def _state_multiplier(op: View) -> np.float32:
    return _scale(op["input"]) * _scale(op["weights_feature"]) / _scale(op["state"])


def _output_multiplier(op: View) -> np.float32:
    return _scale(op["state"]) * _scale(op["weights_time"]) / _scale(op.output)


def _scaling(op: View) -> tuple[float, float] | None:
    """(factor, half): the code of a sum is the whole part of sum * factor + half, as far as it is
    no code below 0; None where it is not.

    What is below 0 is clipped. Above, both roundings are one: they take halves upwards. Lifted
    products are below 2**63, and so within 2**9 of the double, as `multiplies_in_double` wants.
    """
    multiplier, most = _output_multiplier(op), float(min(_reach(op), _WRAPS))
    if _carried_zero_point(op.output) or not multiplies_in_double(multiplier, most, bits=9):
        return None
    factor, right = first_factor(multiplier)
    half = 0.5 + (2.0 ** -float(right + 1) if right else 0)
    return float(factor * 2.0 ** -float(right)), half


def _rounds_alike(op: View, lift: int) -> bool:
    """Whether codes are the same where weights are multiplied before they are summed.

    Then numbers with 31 more bits are rounded to float64: all products, which together are below
    the largest sum, all partial sums, and what is added.
    """
    largest = (_reach(op) + float(_added(op, lift).max(initial=0)) + 1) * 2.0**31
    terms = op.options.rank * op["weights_time"].shape[1]
    return rounds_alike(_output_multiplier(op), (terms + 4) * largest * 2.0**-53, bits=8)


def _whole_codes(g: Graph, value: ir.Value) -> ir.Value:
    """The whole parts of `value`, from 0 to 255, as codes."""
    value = clip(g, value, (0, _REACH))
    value.marks |= {_WHOLE_PARTS}
    return g.cast(value, ir.DataType.UINT8)


def _reach(op: View) -> int:
    """The largest magnitude of a sum of the state's codes."""
    time, bias = np.abs(_constant(op["weights_time"]).astype(np.int64)), np.abs(_bias(op))
    largest = time.reshape(len(time) // op.options.rank, -1).sum(axis=1) * _STATE_REACH
    return int((largest + bias).max())


def _bias(op: View) -> npt.NDArray[np.int64]:
    if op.get("bias") is None:
        return np.zeros(1, np.int64)
    return _constant(op["bias"]).astype(np.int64)


def _sums(op: View, g: Graph, lift: int, newest: ir.Value) -> ir.Value:
    """[B, U] of the state's codes, summed in float64. Where they may wrap around they are from 0 to
    2**32, and `lift` too large."""
    time, rank, added = _constant(op["weights_time"]), op.options.rank, _added(op, lift)
    filters, memory = time.shape
    steps = _steps(op, g, _with_newest(op, g, newest), np.float64)
    steps = g.op("Mul", steps, _weights(g, time, np.float64))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    sums = g.op("Add", sums, g.constant(added)) if added.any() else sums
    return _wrapped(g, sums, lift)


def _weighted_window(
    op: View, g: Graph, newest: ir.Value, factor: float, added: npt.NDArray[np.float64]
) -> ir.Value:
    """The sums [1, U] of a state that is kept as rows, times `factor`, and `added`: a product of
    ones and the weighted rows."""
    time, rank = _constant(op["weights_time"]), op.options.rank
    filters, memory = time.shape
    rows = with_newest(g, op["state"], newest, memory, ir.DataType.DOUBLE)
    zero_point = _carried_zero_point(op["state"])
    rows = g.op("Sub", rows, g.constant(zero_point, np.float64)) if zero_point else rows
    weights = g.constants.add(time.T * factor, "weights_time")
    rows = g.op("Mul", rows, weights)
    if rank > 1:
        rows = g.op("ReduceSum", g.reshape(rows, (memory, -1, rank)), g.ints([2]), keepdims=0)
    bias = np.ascontiguousarray(np.broadcast_to(added, filters // rank))
    ones = g.constant(np.ones((1, memory)))
    return g.op("Gemm", ones, rows, g.constants.add(bias, "bias"))


def _added(op: View, lift: int) -> npt.NDArray[np.float64]:
    """What is added to the sums: with a `lift`, it takes them to above 0, where the rest of a
    division is."""
    bias = _bias(op).astype(np.float64)
    return bias + lift + _ALL * (_reach(op) // _ALL + 1) if lift else bias


def _wrapped(g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """Sums of 32 bits, `lift` too large."""
    return g.op("Mod", sums, g.constant(_ALL, np.float64), fmod=1) if lift else sums


def _products_of_rows(op: View, g: Graph, lift: int, newest: ir.Value) -> ir.Value:
    """[B, U] of the state's codes: each row times its weights, in 32-bit integers, which wrap
    around by themselves."""
    time, rank, bias = _constant(op["weights_time"]), op.options.rank, _bias(op)
    filters, memory = time.shape
    units, columns = filters // rank, rank * memory
    steps = _steps(op, g, _with_newest(op, g, newest), np.int32)
    steps = g.reshape(steps, (-1, units, 1, columns))
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


def _codes(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """The carried codes of `tensor` for codes less their zero point, in float64."""
    return g.cast(_clipped(g, value, tensor, (-np.inf, np.inf)), NUMPY_DTYPE[carried_type(tensor)])


def _clipped(
    g: Graph, value: ir.Value, tensor: TensorView, bounds: tuple[float, float]
) -> ir.Value:
    """As `_codes`, in float64. What is less its zero point is clipped to `bounds`, and codes to the
    range of the type."""
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    low, high = quantized_range(tensor.type)
    ends = max(bounds[0], low - zero_point), min(bounds[1], high - zero_point)
    value = g.op("Clip", value, *(g.constant(end, np.float64) for end in ends))
    carried = _carried_zero_point(tensor)
    return g.op("Add", value, g.constant(carried, np.float64)) if carried else value


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
