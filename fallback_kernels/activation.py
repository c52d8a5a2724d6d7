"""Activation functions: RELU and its kin, sigmoids, HARD_SWISH, GELU, SOFTMAX, LOG_SOFTMAX.

Rows of a table: relu, relu6, relu_n1_to_1, relu_0_to_1, elu, hard_swish.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.function_table import tabulated
from tflite_ort.fallback_kernels.idioms.operands import (
    FLOATS,
    centred,
    clamped_codes,
    offset,
    refusal,
    require_output,
    scale,
    zero_point,
)
from tflite_ort.fallback_kernels.idioms.parts import broadcast_shape
from tflite_ort.fallback_kernels.idioms.softmax_codes import (
    is_fixed_point,
    log_softmax_of_bytes,
    log_softmax_of_reals,
    softmax_of_bytes,
    softmax_of_int16,
    softmax_of_reals,
)
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    GeluOptions,
    KernelError,
    LeakyReluOptions,
    Op,
    OperatorView,
    SoftmaxOptions,
    TensorType,
)
from tflite_ort.schema.arithmetic.code_functions import leaky_relu_codes, sigmoid_int16, tanh_int16
from tflite_ort.schema.arithmetic.fixed_point import rescale, saturate
from tflite_ort.schema.arithmetic.function_table import exact_elu, exact_gelu, exactly, gelu_by_tanh
from tflite_ort.schema.arithmetic.hard_swish import hard_swish_codes
from tflite_ort.schema.values.semantics import rounded_ratio

Array = npt.NDArray[Any]
Float32Array = npt.NDArray[np.float32]
View = OperatorView[Any]

_BYTES = frozenset({TensorType.UINT8, TensorType.INT8})


# Piecewise linear --------------------------------------------------------------------------------


def relu_between(low: float, high: float, op: View, inputs: Inputs, state: State) -> Outputs:
    """min(max(x, low), high); codes are rescaled by s_in / s_out first."""
    (x,) = inputs
    input, output = op["input"], op.output
    if input.type is TensorType.FLOAT32:
        return (np.clip(x, np.float32(low), np.float32(high)),)
    if output.type is not input.type:
        raise refusal(op)
    zero, unit = zero_point(op, output), scale(op, output)
    codes = rescale(centred(op, input, x), scale(op, input) / unit) + zero
    codes = np.maximum(codes, zero + rounded_ratio(low, float(unit)))
    if not math.isinf(high):
        codes = np.minimum(codes, zero + rounded_ratio(high, float(unit)))
    return (clamped_codes(op, codes),)


for operator, last, low, high in (
    (Op.RELU, 3, 0.0, math.inf),
    (Op.RELU6, 3, 0.0, 6.0),
    (Op.RELU_N1_TO_1, 1, -1.0, 1.0),
    (Op.RELU_0_TO_1, 1, 0.0, 1.0),
):
    kernel(operator, versions=(1, last))(partial(relu_between, low, high))


@kernel(Op.LEAKY_RELU, versions=(1, 2))
def leaky_relu(op: OperatorView[LeakyReluOptions], inputs: Inputs, state: State) -> Outputs:
    """x for x > 0, else alpha * x."""
    (x,) = inputs
    input, alpha = op["input"], np.float32(op.options.alpha)
    if input.type is TensorType.FLOAT32:
        return (np.where(x > 0, x, x * alpha),)
    codes = leaky_relu_codes(centred(op, input, x), scale(op, input), alpha, scale(op, op.output))
    return (clamped_codes(op, codes + zero_point(op, op.output)),)


@kernel(Op.PRELU, versions=(1, 1))
def prelu(op: View, inputs: Inputs, state: State) -> Outputs:
    """x for x >= 0, else alpha * x; alpha broadcasts to the shape of the input."""
    x, slope = inputs
    input, alpha = op["input"], op["alpha"]
    if broadcast_shape(x, slope) != x.shape:
        raise KernelError(f"alpha {slope.shape} does not broadcast into {x.shape}")
    if input.type is TensorType.FLOAT32 and alpha.type is TensorType.FLOAT32:
        return (np.where(x >= 0, x, x * slope),)
    expected = TensorType.INT8 if input.type is TensorType.INT16 else input.type
    if alpha.type is not expected:
        raise refusal(op)
    codes, unit = x.astype(np.int32) - offset(op, input), scale(op, op.output)
    above = rescale(codes, scale(op, input) / unit)
    product = codes * centred(op, alpha, slope)
    below = rescale(product, scale(op, input) * scale(op, alpha) / unit)
    result = np.where(codes >= 0, above, below) + offset(op, op.output)
    return (saturate(result, op.output.dtype),)


@kernel(Op.HARD_SWISH, versions=(1, 1))
def hard_swish(op: View, inputs: Inputs, state: State) -> Outputs:
    """x * min(max(x + 3, 0), 6) / 6."""
    (x,) = inputs
    if op["input"].type is TensorType.FLOAT32:
        return (_hard_swish(x),)
    scales = scale(op, op["input"]), scale(op, op.output)
    codes = hard_swish_codes(centred(op, op["input"], x), *scales)
    if codes is None:  # TFLite's own kernel refuses such scales.
        _require_one_type(op)
        return (tabulated(op, x, _hard_swish),)
    return (clamped_codes(op, codes + zero_point(op, op.output)),)


def _hard_swish(x: Float32Array) -> Float32Array:
    gate = np.clip(x + np.float32(3), np.float32(0), np.float32(6))
    return np.asarray(x * gate / np.float32(6), np.float32)


# Sigmoids and exponentials -----------------------------------------------------------------------


def _real(x: Array) -> Float32Array:
    return np.asarray(x, np.float32)


def _logistic(x: Float32Array) -> Float32Array:
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + exactly(np.exp, -x))


@kernel(Op.LOGISTIC, versions=(1, 3))
def logistic(op: View, inputs: Inputs, state: State) -> Outputs:
    """1 / (1 + e**-x); 8-bit codes by table, int16 by its own table of sigmoids."""
    (x,) = inputs
    if op["input"].type in FLOATS:
        return (_logistic(_real(x)).astype(x.dtype),)
    _require_one_type(op)
    if op["input"].type in _BYTES:
        return (tabulated(op, x, _logistic),)
    _require_unit_output(op)
    return (sigmoid_int16(x, _symmetric_scale(op)),)


@kernel(Op.TANH, versions=(1, 3))
def tanh(op: View, inputs: Inputs, state: State) -> Outputs:
    """tanh x; 8-bit codes by table, int16 as 2 * sigmoid(2x) - 1."""
    (x,) = inputs
    if op["input"].type in FLOATS:
        return (np.tanh(_real(x)).astype(x.dtype),)
    _require_one_type(op)
    if op["input"].type is TensorType.INT16:
        _require_unit_output(op)
        return (tanh_int16(x, _symmetric_scale(op)),)
    return (tabulated(op, x, partial(exactly, np.tanh)),)


def _require_unit_output(op: View) -> None:
    """Refuses int16 results in other units than 1/32768."""
    if not math.isclose(scale(op, op.output), 1 / 32768, rel_tol=1e-3):
        raise KernelError(f"output scale is {scale(op, op.output)}, not 1/32768")


def _symmetric_scale(op: View) -> np.float32:
    zero_point(op, op["input"])
    return scale(op, op["input"])


def _require_one_type(op: View) -> None:
    if op.output.type is not op["input"].type:
        raise refusal(op)


@kernel(Op.ELU, versions=(1, 1))
def elu(op: View, inputs: Inputs, state: State) -> Outputs:
    """x where x >= 0, else e**x - 1; int8 by table."""
    (x,) = inputs
    if op["input"].type is TensorType.FLOAT32:
        return (exact_elu(x),)
    return (tabulated(op, x, exact_elu),)


@kernel(Op.GELU, versions=(1, 3))
def gelu(op: OperatorView[GeluOptions], inputs: Inputs, state: State) -> Outputs:
    """x/2 * erfc(-x / sqrt 2), or its approximation by tanh; codes by table."""
    (x,) = inputs
    function = gelu_by_tanh if op.options.approximate else exact_gelu
    if op["input"].type in (TensorType.FLOAT32, TensorType.FLOAT16):
        with np.errstate(over="ignore", invalid="ignore"):
            return (function(_real(x)).astype(x.dtype),)
    _require_one_type(op)
    return (tabulated(op, x, function),)


# SOFTMAX -----------------------------------------------------------------------------------------


@kernel(Op.SOFTMAX, versions=(1, 4))
def softmax(op: OperatorView[SoftmaxOptions], inputs: Inputs, state: State) -> Outputs:
    """e**(beta * x) divided by its sum along the last axis."""
    (x,) = inputs
    if x.ndim < 1:
        raise KernelError("input is a scalar")
    input, output = op["input"], op.output
    if input.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        real = _real(x)
        largest = real.max(axis=-1, keepdims=True, initial=-np.inf)
        powers = np.exp((real - largest) * np.float32(op.options.beta))
        return ((powers / powers.sum(axis=-1, keepdims=True)).astype(x.dtype),)
    if output.type not in (input.type, TensorType.INT16):
        raise refusal(op)
    if input.type is TensorType.INT16:
        _require_usual_output(op)
        return (softmax_of_int16(op, x),)
    in_fixed_point = is_fixed_point(op, op.options.beta) and _has_usual_output(op)
    return (softmax_of_bytes(op, x) if in_fixed_point else softmax_of_reals(op, x),)


def _require_usual_output(op: View) -> None:
    if not _has_usual_output(op):
        unit, zero = scale(op, op.output), zero_point(op, op.output)
        raise KernelError(f"output is quantized by {unit} and {zero}, expected 1/32768 and 0")


def _has_usual_output(op: View) -> bool:
    """Whether the output's scale is one over the number of its codes; int16 may use half."""
    unit, dtype = float(scale(op, op.output)), op.output.dtype
    zero = 0 if op.output.quantization is None else op.output.quantization.scalar_zero_point
    halves = dtype == np.int16 and (op["input"].type is TensorType.INT16 or zero == 0)
    lowest, steps = (0, 2**15) if halves else (np.iinfo(dtype).min, 2 ** (8 * dtype.itemsize))
    return zero == lowest and math.isclose(unit, 1 / steps, rel_tol=1e-3)


@kernel(Op.LOG_SOFTMAX, versions=(1, 2))
def log_softmax(op: View, inputs: Inputs, state: State) -> Outputs:
    """x less the logarithm of the sum of e**x along the last axis."""
    (x,) = inputs
    if x.ndim < 1:
        raise KernelError("input is a scalar")
    if op["input"].type is TensorType.FLOAT32:
        with np.errstate(invalid="ignore"):
            shifted = x - x.max(axis=-1, keepdims=True, initial=np.finfo(np.float32).min)
            return (shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)),)
    _require_one_type(op)
    require_output(op, 1 / 16, np.iinfo(x.dtype).max)
    by = log_softmax_of_bytes if is_fixed_point(op, 1.0) else log_softmax_of_reals
    return (by(op, x),)
