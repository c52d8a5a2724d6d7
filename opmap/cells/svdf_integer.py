"""SVDF of integer codes bit for bit, in floats that hold the integers exactly.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.fixed_point import (
    exact_product,
    reach,
    refuse_wraps,
    rescaled,
)
from tflite_ort.opmap.idioms.indices import with_first
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    SVDFOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import is_known

REACH = 255  # of an 8-bit code less its zero point
_STATE_REACH = 32768
WRAPS = 2**31  # sums from here on wrap around in TFLite
ALL = 2**32

View = OperatorView[SVDFOptions]
Array = npt.NDArray[Any]


def integer_svdf(op: View, g: Graph) -> None:
    """SVDF of codes: a product rescaled to the newest step of the state, then a weighted sum of it.

    Multipliers are products and quotients of scales in float32. TFLite's sums have 32 bits, and
    wrap around.
    """
    lift = sums_lift(op)
    sums = sums_of_state(op, g, lift, newest_step(op, g, rescaled_product(op, g)))
    g.write(op.output, output_codes(op, g, sums, lift), domain=Domain.STORED)


def sums_lift(op: View) -> int:
    """By how much sums in float64 are too large where they may wrap around, so that they are above
    0.

    Raises:
        Untranslatable: the graph would not compute as TFLite does.
    """
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        raise Untranslatable("integers without RELU")
    if op["state"].type is TensorType.INT16 and carried_zero(op["state"]):
        raise Untranslatable("an INT16 state with a zero point")
    _refuse_wraps(op)
    return WRAPS if largest_sum(op) >= WRAPS else 0


def _refuse_wraps(op: View) -> None:
    """Refuses what TFLite shifts beyond 32 bits; `wrapped` sums are none of it."""
    feature = constant_of(op["weights_feature"])
    refuse_wraps(state_multiplier(op), REACH * reach(feature.T))
    refuse_wraps(output_multiplier(op), min(largest_sum(op), WRAPS - 1))


def state_after(op: View, g: Graph, newest: ir.Value) -> ir.Value:
    """The codes [B, F, M] of the state after the step `newest`; the state is written."""
    state, (filters, memory) = op["state"], op["weights_time"].shape
    made = g.op("Unsqueeze", g.cast(newest, NUMPY_DTYPE[carried_type(state)]), g.ints([2]))
    rows = g.reshape(g.read(state, domain=Domain.STORED), (-1, filters, memory))
    rows = steps_after(op, g, rows, made)
    g.write(state, g.reshape(rows, (-1, filters * memory)), domain=Domain.STORED)
    return rows


def steps_after(op: View, g: Graph, steps: ir.Value, newest: ir.Value) -> ir.Value:
    """The steps [B, F, M] of the state after `newest`, [B, F, 1]."""
    memory, batch = op["weights_time"].shape[1], op["input"].shape[0]
    if memory == 1 and not is_known(batch):  # ONNX Runtime joins any batch to no steps
        steps = with_first(g, steps, g.size(batch), 1)
    kept = g.op("Slice", steps, *(g.ints([bound]) for bound in (1, memory, 2)))
    return g.op("Concat", kept, newest, axis=2)


def newest_step(op: View, g: Graph, product: ir.Value) -> ir.Value:
    """The newest step [B, F] of the state in float64: its codes, of the state's type.

    A sum is cut to the type of the state, and again after its zero point is added.
    """
    return _clipped(g, product, op["state"], quantized_range(op["state"].type))


def rescaled_product(op: View, g: Graph) -> ir.Value:
    """The product [B, F] with weights [F, I], rescaled to the state's unit."""
    feature = constant_of(op["weights_feature"]).astype(np.int64)
    made = exact_product(g, g.read_steps(op["input"]), feature.T, REACH)
    return rescaled(g, made, state_multiplier(op), float(REACH * reach(feature.T).max()), bits=17)


def output_codes(op: View, g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """The carried codes [B, U] of the output for sums in float64, which are `lift` too large."""
    most = float(min(largest_sum(op), WRAPS))
    sums = g.op("Sub", sums, g.constant(lift, np.float64)) if lift else sums
    return _codes(g, rescaled(g, sums, output_multiplier(op), most, bits=9), op.output)


def state_multiplier(op: View) -> np.float32:
    """The scale of a product in units of the state's."""
    return _scale(op["input"]) * _scale(op["weights_feature"]) / _scale(op["state"])


def output_multiplier(op: View) -> np.float32:
    """The scale of a sum in units of the output's."""
    return _scale(op["state"]) * _scale(op["weights_time"]) / _scale(op.output)


def largest_sum(op: View) -> int:
    """The largest magnitude of a sum of the state's codes."""
    time, bias = np.abs(constant_of(op["weights_time"]).astype(np.int64)), np.abs(bias_of(op))
    largest = time.reshape(len(time) // op.options.rank, -1).sum(axis=1) * _STATE_REACH
    return int((largest + bias).max())


def bias_of(op: View) -> npt.NDArray[np.int64]:
    """The codes of the bias."""
    if op.get("bias") is None:
        return np.zeros(1, np.int64)
    return constant_of(op["bias"]).astype(np.int64)


def sums_of_state(op: View, g: Graph, lift: int, newest: ir.Value) -> ir.Value:
    """[B, U] of the state's codes, summed in float64. Where they may wrap around they are from 0 to
    2**32, and `lift` too large."""
    time, rank, added = constant_of(op["weights_time"]), op.options.rank, added_to_sums(op, lift)
    filters, memory = time.shape
    steps = state_steps(op, g, state_after(op, g, newest), np.float64)
    steps = g.op("Mul", steps, time_weights(g, time, np.float64))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    sums = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    sums = g.op("Add", sums, g.constant(added)) if added.any() else sums
    return wrapped(g, sums, lift)


def added_to_sums(op: View, lift: int) -> npt.NDArray[np.float64]:
    """What is added to the sums: with a `lift`, it takes them to above 0, where the rest of a
    division is."""
    bias = bias_of(op).astype(np.float64)
    return bias + lift + ALL * (largest_sum(op) // ALL + 1) if lift else bias


def wrapped(g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """Sums of 32 bits, `lift` too large."""
    return g.op("Mod", sums, g.constant(ALL, np.float64), fmod=1) if lift else sums


def state_steps(op: View, g: Graph, rows: ir.Value, dtype: type[np.number[Any]]) -> ir.Value:
    """The state's codes less their zero point."""
    steps, zero_point = g.cast(rows, np.dtype(dtype)), carried_zero(op["state"])
    return g.op("Sub", steps, g.constant(zero_point, dtype)) if zero_point else steps


def time_weights(g: Graph, time: Array, dtype: type[np.number[Any]]) -> ir.Value:
    """The weights of the steps as numbers of a type."""
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
    carried = carried_zero(tensor)
    return g.op("Add", value, g.constant(carried, np.float64)) if carried else value


def carried_zero(tensor: TensorView) -> int:
    """The zero point of the carried codes of `tensor`."""
    zero_point = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    return zero_point + (128 if carried_type(tensor) is not tensor.type else 0)


def constant_of(tensor: TensorView) -> Array:
    """The codes of a constant; Untranslatable where it is computed."""
    if tensor.data is None:
        raise Untranslatable(f"{tensor.name!r} is not a constant")
    return tensor.data


def _scale(tensor: TensorView) -> np.float32:
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    return tensor.quantization.sole_scale
