"""Normalisation along the channels: L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.operands import centred, refusal, require_output
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    KernelError,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    Op,
    OperatorView,
    TensorType,
)
from tflite_ort.schema.arithmetic.fixed_point import (
    inverse_sqrt,
    multiply_by_quantized_multiplier,
    saturate,
)

Array = npt.NDArray[Any]


@kernel(Op.L2_NORMALIZATION, versions=(1, 2))
def l2_normalization(op: OperatorView[L2NormOptions], inputs: Inputs, state: State) -> Outputs:
    """x / max(|x|, 1e-6) along the last axis; codes by a fixed-point inverse root."""
    (x,) = inputs
    activation = op.options.fused_activation_function
    if x.ndim < 1 or activation:
        raise KernelError(f"rank {x.ndim} and activation {activation.name}, expected 1 and NONE")
    if op["input"].type is TensorType.FLOAT32:
        least = np.float32(1e-6)
        with np.errstate(over="ignore", invalid="ignore"):
            norm = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
            return (x / np.where(norm < least, least, norm),)
    return (_of_codes(op, x),)


def _of_codes(op: OperatorView[L2NormOptions], x: Array) -> Array:
    """128 times the unit vector."""
    zero = 128 if op.output.type is TensorType.UINT8 else 0
    require_output(op, 1 / 128, zero)
    codes = centred(op, op["input"], x)
    squares = np.sum(np.square(codes, dtype=np.int64), axis=-1, keepdims=True)
    halvings = np.maximum((np.frexp(squares.astype(np.float64))[1] - 30) // 2, 0)
    inverse, shift = inverse_sqrt(squares >> (2 * halvings))  # of 32 bits
    shift = shift - halvings
    if op.output.type is TensorType.UINT8:
        rescaled = multiply_by_quantized_multiplier(codes * 128, inverse, shift)
    else:
        rescaled = multiply_by_quantized_multiplier(codes, inverse, shift + 7)
    return saturate(rescaled.astype(np.int64) + zero, x.dtype)


@kernel(Op.LOCAL_RESPONSE_NORMALIZATION, versions=(1, 1))
def local_response_normalization(
    op: OperatorView[LocalResponseNormalizationOptions], inputs: Inputs, state: State
) -> Outputs:
    """x * (bias + alpha * the sum of squares of channels c - radius to c + radius)**-beta.

    TFLite's reference kernel leaves the channel c + radius out; this is what its others do.
    """
    (x,) = inputs
    options = op.options
    if x.dtype != np.float32:
        raise refusal(op)
    if x.ndim != 4 or options.radius < 0:
        raise KernelError(f"rank {x.ndim} and radius {options.radius}, expected 4 and 0 or more")
    radius = min(options.radius, x.shape[-1])
    padded = np.pad(x.astype(np.float64) ** 2, [(0, 0)] * 3 + [(radius + 1, radius)])
    running = np.cumsum(padded, axis=-1)
    total = running[..., 2 * radius + 1 :] - running[..., : -2 * radius - 1]
    with np.errstate(all="ignore"):
        factor = (options.bias + options.alpha * np.maximum(total, 0)) ** -options.beta
        return ((x * factor).astype(np.float32),)
