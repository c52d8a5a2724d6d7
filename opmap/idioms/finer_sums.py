"""Sums of 8-bit codes times 4-bit weights, which XNNPACK does not take.

LiteRT's other kernels round a sum twice, both times upwards: to whole numbers of sum * q31 / 2**31,
and these to whole codes. A code is 2**right of them. So the result is

    floor(floor(sum * q31 / 2**31 + 1/2) / 2**right + 1/2)
    = floor(sum * q31 / 2**(31 + right) + 2**-(right + 1) + 1/2)

and ONNX Runtime, which rounds once, gives the same for a sum that is larger by 2**30 / q31: by 1/2
to 1. Weights of 8 bits hold 16 times those of 4 bits, so the bias can be moved by sixteenths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import Op, OperatorView, Quantization, TensorType
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.values.semantics import quantized_activation_bounds

Array = npt.NDArray[Any]

_FINER = 16
_LARGEST = 2**31 - 1
# The kernel of DEPTHWISE_CONV_2D takes so many channels at a time. Those that are left it rounds
# the second time away from zero: below zero they are moved the other way.
_AT_A_TIME = 8


def with_finer_weights(op: OperatorView[Any], g: Graph) -> OperatorView[Any]:
    """`op` with weights and a bias of a 16th of their unit, such that ONNX Runtime rounds its sums
    as LiteRT does, but where less than a 32nd of a product decides; `op` as it is where XNNPACK
    takes it, or 32 bits do not hold the sums."""
    if not _is_left_by_xnnpack(op):
        return op
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    x, w, y, codes = input.quantization, filter.quantization, op.output.quantization, filter.data
    assert x and w and y and codes is not None
    axis, added = _axis(op), None if bias is None else bias.data
    channels = filter.shape[axis]
    given = np.zeros(channels, np.int64) if added is None else added.reshape(-1).astype(np.int64)
    finer = given * _FINER + np.where(_rounded_upwards(op, channels), _moves(x, w, y), 0)
    fine_codes = g.constants.part(
        filter.constant, "finer", lambda: codes.astype(np.int8) * np.int8(_FINER)
    )
    others = tuple({*range(filter.rank)} - {axis})
    sums = np.abs(fine_codes, dtype=np.int16).sum(axis=others, dtype=np.int64)
    if (np.abs(finer) + 255 * sums).max(initial=0) > _LARGEST:
        return op
    scale = (w.scale / np.float32(_FINER)).astype(np.float32)
    weights = replace(
        filter, type=TensorType.INT8, constant=fine_codes, quantization=replace(w, scale=scale)
    )
    biases = replace(
        filter if bias is None else bias,
        name=f"{filter.name}_rounding" if bias is None else bias.name,
        type=TensorType.INT32,
        shape=(channels,),
        constant=finer.astype(np.int32),
        quantization=None,
    )
    return replace(op, inputs=(input, weights, biases))


def _axis(op: OperatorView[Any]) -> int:
    """The axis of the filter along which its output channels are."""
    return op["filter"].rank - 1 if op.op is Op.DEPTHWISE_CONV_2D else 0


def _is_left_by_xnnpack(op: OperatorView[Any]) -> bool:
    """Whether a layer has int8 codes and constant 4-bit weights, with scales and a bias that fit
    each other."""
    input, filter, bias, made = op["input"], op["filter"], op.get("bias"), op.output
    if not (filter.type is TensorType.INT4 and input.type is made.type is TensorType.INT8):
        return False
    x, w, y = (each.quantization for each in (input, filter, made))
    if x is None or w is None or y is None or filter.data is None or x.per_channel or y.per_channel:
        return False
    channels = filter.shape[_axis(op)]
    along = w.scale.size == 1 or (w.axis == _axis(op) and w.scale.size == channels)
    finest = np.finfo(np.float32).tiny * _FINER
    if not along or w.zero_point.any() or w.scale.min(initial=1) < finest:
        return False
    if bias is None:
        return True
    return bias.data is not None and bias.type is TensorType.INT32 and bias.data.size == channels


def _moves(x: Quantization, w: Quantization, y: Quantization) -> npt.NDArray[np.int64]:
    """By how many 16ths of a product the sums of each channel are moved."""
    multiplier = x.scale.astype(np.float64) * w.scale.astype(np.float64)
    q31, shift = quantize_multiplier(multiplier / y.scale.astype(np.float64))
    moves = np.rint(_FINER * 2.0**30 / np.maximum(q31, 1)).astype(np.int64)
    return np.where((q31 > 0) & (shift < 0), moves, 0)


def _rounded_upwards(op: OperatorView[Any], channels: int) -> npt.NDArray[np.bool_]:
    """The channels whose sums LiteRT rounds upwards, or none of whose results is below zero."""
    if op.op is not Op.DEPTHWISE_CONV_2D:
        return np.ones(channels, np.bool_)
    made, found = op.output, op.output.quantization
    assert found is not None
    unit, zero = found.scalar_scale, found.scalar_zero_point
    activation = op.options.fused_activation_function
    lowest, _ = quantized_activation_bounds(activation, made.type, unit, zero)
    count = channels if lowest >= zero else channels // _AT_A_TIME * _AT_A_TIME
    return np.arange(channels) < count
