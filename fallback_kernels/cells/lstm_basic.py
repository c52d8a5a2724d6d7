"""LSTM with the basic kernel: one matrix for all gates, in the order input, cell, forget, output.

It has floats, or 8-bit activations with a 16-bit state of 4 integer bits. B batch, C cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.cells.lstm_float import sigmoid
from tflite_ort.fallback_kernels.cells.lstm_tensors import quantization, variables
from tflite_ort.fallback_kernels.registry import Inputs, Outputs
from tflite_ort.schema import KernelError, LSTMOptions, OperatorView, TensorType
from tflite_ort.schema.arithmetic import fixed_point16
from tflite_ort.schema.arithmetic.fixed_point import (
    quantize_multiplier,
    rounding_doubling_high_mul,
    rounding_shift_right,
    saturate,
)

Array = npt.NDArray[Any]

FLOAT32, UINT8, INT16 = TensorType.FLOAT32, TensorType.UINT8, TensorType.INT16
_FLOAT = (FLOAT32,) * 5
_QUANTIZED = (UINT8, UINT8, UINT8, TensorType.INT32, INT16)
_GATE_BITS, _STATE_BITS = 3, 4  # integer bits of the gates' sums and of the state
_ZERO_POINT = 128  # of all activations


def basic_lstm(op: OperatorView[LSTMOptions], inputs: Inputs) -> Outputs:
    """The outputs of the operator, then the new values of its variables."""
    x, previous, weights, bias, state = inputs
    types = tuple(tensor.type for tensor in op.present_inputs())
    together = np.concatenate([x, previous], axis=-1)
    if types == _FLOAT:
        sums = together @ weights.T + bias
        output, state = _float_step(sums, state)
    elif types == _QUANTIZED:
        sums = _quantized_sums(op, together, weights, bias)
        output, state = _quantized_step(sums, state)
    else:
        raise KernelError(f"inputs of types {', '.join(type.name for type in types)}: no kernel")
    return (output, state, together, sums, *variables(op, inputs, {1: output, 4: state}))


def _gates(sums: Array) -> list[Array]:
    return np.split(sums, 4, axis=-1)


def _float_step(sums: Array, state: Array) -> tuple[Array, Array]:
    admit, update, forget, output = _gates(sums)
    state = sigmoid(admit) * np.tanh(update) + sigmoid(forget) * state
    return sigmoid(output) * np.tanh(state), state


def _quantized_sums(
    op: OperatorView[LSTMOptions], codes: Array, weights: Array, bias: Array
) -> Array:
    """The sums [B, 4 * C] of all gates, with 12 fraction bits."""
    state = quantization(op.outputs[1], "the state").scalar_scale
    if abs(np.log2(state) - (_STATE_BITS - 15)) >= 1e-3:
        raise KernelError(f"the state has scale {state}, expected 2**{_STATE_BITS - 15}")
    zero_point = quantization(op.inputs[2], "weights").scalar_zero_point
    centred = codes.astype(np.float64) - _ZERO_POINT
    sums = (centred @ (weights.astype(np.float64) - zero_point).T).astype(np.int32) + bias
    factor = 4096 * quantization(op.inputs[3], "bias").scalar_scale
    return saturate(_rescaled(sums, factor), np.int16)


def _rescaled(sums: Array, factor: float) -> Array:
    """``sums * factor`` with both roundings of TFLite; here the second takes halves upwards too."""
    q31, shift = quantize_multiplier(factor)
    left, right = max(int(shift), 0), max(-int(shift), 0)
    high = rounding_doubling_high_mul(sums << left, q31).astype(np.int64)
    return (high + ((1 << right) >> 1)) >> right


def _quantized_step(sums: Array, state: Array) -> tuple[Array, Array]:
    admit, update, forget, output = _gates(sums)
    logistic, tanh, product = fixed_point16.logistic, fixed_point16.tanh, fixed_point16.product
    added = product(logistic(admit, _GATE_BITS), tanh(update, _GATE_BITS))
    kept = product(logistic(forget, _GATE_BITS), state)
    state = saturate(rounding_shift_right(added, _STATE_BITS) + kept, np.int16)
    held = fixed_point16.shifted_left(state.astype(np.int32), _STATE_BITS - _GATE_BITS)
    activated = tanh(saturate(held, np.int16), _GATE_BITS)
    real = product(logistic(output, _GATE_BITS), activated)
    codes = saturate(rounding_shift_right(real, 8), np.int8)
    return (codes + np.int16(_ZERO_POINT)).astype(np.uint8), state
