"""Operators that tools for quantization add to models: NumericVerify, aeq.hadamard_rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.well_known_options import (
    HadamardRotationOptions,
    NumericVerifyOptions,
    map_options,
)

View = OperatorView[Any]


@custom_kernel("NumericVerify", versions=(1, 1))
def numericverify(op: View, inputs: Inputs, state: State) -> Outputs:
    """Dequantized codes less the reference.

    Raises:
        KernelError: the shapes differ; or a difference is above the tolerance, in units of the
            scale, and the options ask for the check.
    """
    options, (codes, reference) = map_options(op, NumericVerifyOptions), inputs
    if codes.shape != reference.shape:
        raise KernelError(f"shapes {codes.shape} and {reference.shape} differ")
    difference = _real(op, codes) - reference
    quantization = op["input"].quantization
    scale = 0.0 if quantization is None else quantization.scalar_scale
    limit = np.float32(options.tolerance) * np.float32(scale)
    if options.checks and (worst := np.max(np.abs(difference), initial=0)) > limit:
        raise KernelError(f"a value is off by {worst}, {limit} is the tolerance")
    return (difference,)


def _real(op: View, codes: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    quantization = op["input"].quantization
    if codes.dtype == np.float16:
        return codes.astype(np.float32)
    if quantization is None:
        raise KernelError(f"{codes.dtype} input without a scale")
    steps = (codes.astype(np.int32) - quantization.scalar_zero_point).astype(np.float64)
    return (steps * quantization.scalar_scale).astype(np.float32)


@custom_kernel("aeq.hadamard_rotation", versions=(1, 1))
def aeq_hadamard_rotation(op: View, inputs: Inputs, state: State) -> Outputs:
    """The normalised Walsh-Hadamard transform of every `hadamard_size` values of the last axis."""
    (x,), size = inputs, map_options(op, HadamardRotationOptions).hadamard_size
    if x.dtype != np.float32 or size < 1 or size & (size - 1) or x.shape[-1] % size:
        raise KernelError(f"{x.dtype} rows of {x.shape[-1]} in parts of {size}")
    parts, half = x.reshape(-1, size), 1
    while half < size:
        pairs = parts.reshape(len(parts), size // (2 * half), 2, half)
        left, right = pairs[:, :, 0], pairs[:, :, 1]
        parts = np.stack([left + right, left - right], axis=2).reshape(-1, size)
        half *= 2
    norm = np.float32(1) / np.sqrt(np.float32(size))
    return ((parts * norm).reshape(x.shape),)
