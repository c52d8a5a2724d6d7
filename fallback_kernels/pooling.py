"""Pooling over windows of images [B, H, W, C]: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.accumulator import quantization, real_bounds
from tflite_ort.fallback_kernels.idioms.operands import finite
from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ActivationFunctionType,
    KernelError,
    Op,
    OperatorView,
    Pool2DOptions,
    TensorView,
)
from tflite_ort.schema.values.semantics import (
    quantized_activation_bounds,
    quantized_range,
    within_reach,
)

Array = npt.NDArray[Any]

_INTEGERS = (np.int8, np.uint8, np.int16)


@kernel(Op.AVERAGE_POOL_2D, versions=(1, 3))
def average_pool_2d(op: OperatorView[Pool2DOptions], inputs: Inputs, state: State) -> Outputs:
    """The mean of the cells inside the image; codes are averaged as they are, never rescaled."""
    x = _checked(inputs[0], *_INTEGERS)
    rows, columns = _spans(x, op.options)
    wide = x.astype(np.float32 if x.dtype == np.float32 else np.int32)
    sums, cells = _summed(wide, rows, columns), _cells(x, rows, columns)
    if x.dtype == np.float32:
        return (_clamped(op, sums / cells.astype(np.float32)),)
    rounded = (np.abs(sums) + cells // 2) // cells  # halves away from zero
    return (_clamped(op, np.sign(sums) * rounded),)


@kernel(Op.MAX_POOL_2D, versions=(1, 3))
def max_pool_2d(op: OperatorView[Pool2DOptions], inputs: Inputs, state: State) -> Outputs:
    """The greatest cell inside the image."""
    x = _checked(inputs[0], *_INTEGERS)
    rows, columns = _spans(x, op.options)
    lowest = np.finfo(x.dtype).min if x.dtype == np.float32 else np.iinfo(x.dtype).min
    rows_max = windows(x, 1, rows, lowest).max(axis=-1)
    return (_clamped(op, windows(rows_max, 2, columns, lowest).max(axis=-1)),)


@kernel(Op.L2_POOL_2D, versions=(1, 1))
def l2_pool_2d(op: OperatorView[Pool2DOptions], inputs: Inputs, state: State) -> Outputs:
    """sqrt(mean of squares) over the cells inside the image; float32."""
    x = _checked(inputs[0])
    rows, columns = _spans(x, op.options)
    mean = _summed(x * x, rows, columns) / _cells(x, rows, columns).astype(np.float32)
    return (_clamped(op, finite(np.sqrt(mean))),)


def _checked(x: Array, *integers: type[np.integer[Any]]) -> Array:
    if x.ndim != 4:
        raise KernelError(f"input has rank {x.ndim}, expected 4")
    if x.dtype not in (np.dtype(np.float32), *map(np.dtype, integers)):
        raise KernelError(f"no kernel for {x.dtype} input")
    return x


def _spans(x: Array, options: Pool2DOptions) -> tuple[Span, Span]:
    rows = within_reach(options.padding, x.shape[1], options.filter_height)
    columns = within_reach(options.padding, x.shape[2], options.filter_width)
    return (
        Span.over(x.shape[1], options.padding, rows, options.stride_h),
        Span.over(x.shape[2], options.padding, columns, options.stride_w),
    )


def _summed(x: Array, rows: Span, columns: Span) -> Array:
    return np.asarray(windows(windows(x, 1, rows).sum(axis=-1), 2, columns).sum(axis=-1))


def _cells(x: Array, rows: Span, columns: Span) -> Array:
    """How many cells of the image each window holds, [1, OH, OW, 1]."""
    ones = np.ones((1, *x.shape[1:3], 1), np.int32)
    return _summed(ones, rows, columns)


def _clamped(op: OperatorView[Pool2DOptions], result: Array) -> Array:
    """The fused activation, in the output's own codes where it is quantized."""
    activation, output = op.options.fused_activation_function, op.output
    low, high = _bounds(activation, output)
    return np.clip(result, low, high).astype(output.dtype)


def _bounds(activation: ActivationFunctionType, output: TensorView) -> tuple[float, float]:
    if output.dtype == np.float32:
        return real_bounds(activation)
    if activation is ActivationFunctionType.NONE:
        return quantized_range(output.type)
    parameters = quantization(output)
    return quantized_activation_bounds(
        activation, output.type, parameters.scalar_scale, parameters.scalar_zero_point
    )
