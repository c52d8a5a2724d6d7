"""Matrix products: FULLY_CONNECTED, BATCH_MATMUL."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.cells.lstm_float import activated
from tflite_ort.fallback_kernels.idioms.accumulator import (
    Accumulator,
    real_bounds,
    requantized_input,
    rescale_float,
    rescale_wide,
    scales,
)
from tflite_ort.fallback_kernels.idioms.operands import clamped_codes, refusal, scale, zero_point
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    BatchMatMulOptions,
    Blocks,
    FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat,
    KernelError,
    Op,
    OperatorView,
    TensorType,
    TensorView,
)
from tflite_ort.schema.arithmetic.fixed_point import rescale, round_half_away
from tflite_ort.schema.values.semantics import UNCLAMPED

Array = npt.NDArray[Any]


@kernel(Op.FULLY_CONNECTED, versions=(1, 14))
def fully_connected(
    op: OperatorView[FullyConnectedOptions], inputs: Inputs, state: State
) -> Outputs:
    """``input [B, D] @ filter [N, D].T + bias [N]``, the input flattened to rows of D."""
    filter, options = op["filter"], op.options
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise KernelError(f"weights format {options.weights_format.name}: no kernel")
    depth, shape = inputs[1].shape[1], inputs[0].shape
    if depth == 0:
        return (_empty_sums(op, shape, inputs[1].shape[0]),)
    if inputs[0].size % depth or (options.keep_num_dims and shape[-1] != depth):
        raise KernelError(f"filter has depth {depth}, input has shape {shape}")
    if filter.blocks is not None and inputs[0].dtype == np.float32:
        result = _blockwise_sums(op, filter.blocks, inputs)
        return (result.reshape(*shape[:-1], result.shape[-1]) if options.keep_num_dims else result,)
    wide = filter.type is TensorType.INT16
    per_channel = filter.quantization is not None and filter.quantization.per_channel
    sums = Accumulator(
        op["input"],
        filter,
        op.output,
        options.fused_activation_function,
        rescale_wide if wide else rescale_float,
        narrow_scale=wide and not per_channel,
    )
    x, weights = sums.operands(
        inputs[0].reshape(-1, depth),
        inputs[1],
        axes=(1,),
        asymmetric=options.asymmetric_quantize_inputs,
    )
    result = sums.result(x @ weights.T, inputs[2] if len(inputs) > 2 else None)
    if options.fused_activation_function in UNCLAMPED:
        result = activated(result, options.fused_activation_function)
    return (result.reshape(*shape[:-1], result.shape[-1]) if options.keep_num_dims else result,)


def _blockwise_sums(
    op: OperatorView[FullyConnectedOptions], blocks: Blocks, inputs: Inputs
) -> Array:
    """Rows rounded to 8 bits with a zero point, times weights with one scale a block."""
    rows = requantized_input(inputs[0].reshape(-1, inputs[1].shape[1]), (1,), asymmetric=True)
    scales = np.repeat(blocks.scale.astype(np.float32), blocks.size, axis=1)
    sums: Array = rows @ (inputs[1] * scales).T
    if len(inputs) > 2 and inputs[2] is not None:
        sums = sums + inputs[2].reshape(-1)
    return np.clip(sums, *real_bounds(op.options.fused_activation_function))


def _empty_sums(
    op: OperatorView[FullyConnectedOptions], shape: tuple[int, ...], units: int
) -> Array:
    """The result of TFLite for sums without terms: stored zeros, without bias and zero point."""
    rows = shape[:-1] if op.options.keep_num_dims else (prod(shape[:-1]),)
    return np.zeros((*rows, units), op.output.dtype)


@kernel(Op.BATCH_MATMUL, versions=(1, 4))
def batch_matmul(op: OperatorView[BatchMatMulOptions], inputs: Inputs, state: State) -> Outputs:
    """``x @ y`` over the last two axes, the others broadcast; adj_x and adj_y swap them first."""
    x, y = inputs
    if min(x.ndim, y.ndim) < 2:
        raise KernelError(f"ranks are {x.ndim} and {y.ndim}, expected at least 2")
    sums = Accumulator(
        op["x"],
        op["y"],
        op.output,
        rounding=rescale_wide if op["x"].type is TensorType.INT16 else rescale,
        narrow_scale=True,
    )
    if op["x"].type is not TensorType.FLOAT32 and _has_channels(op["y"]):
        return (_by_channel(op, sums, x, y),)
    if op.output.type is TensorType.INT32:  # codes are multiplied as they are
        if op["y"].type is not TensorType.INT8:
            raise refusal(op)
        return (_product(x.astype(np.float64), y.astype(np.float64), op.options).astype(np.int32),)
    depth_axis = x.ndim - 2 if op.options.adj_x else x.ndim - 1
    a, b = sums.operands(x, y, axes=(depth_axis,), asymmetric=op.options.asymmetric_quantize_inputs)
    return (sums.result(_product(a, b, op.options), None),)


def _has_channels(tensor: TensorView) -> bool:
    """Whether there is a scale for each channel."""
    return tensor.quantization is not None and tensor.quantization.per_channel


def _by_channel(
    op: OperatorView[BatchMatMulOptions], sums: Accumulator, x: Array, y: Array
) -> Array:
    """The product of the real numbers that codes with a scale for each channel of `y` stand for;
    TFLite takes these scales for 0."""
    a, b = sums.operands(x, y, axes=(), asymmetric=False)
    real = _product(a, b * scales(op["y"]).astype(np.float64), op.options)
    unit = np.float64(scale(op, op["x"])) / np.float64(scale(op, op.output))
    codes = round_half_away(real * unit) + zero_point(op, op.output)
    return clamped_codes(op, codes)


def _product(x: Array, y: Array, options: BatchMatMulOptions) -> Array:
    a = np.swapaxes(x, -1, -2) if options.adj_x else x
    b = np.swapaxes(y, -1, -2) if options.adj_y else y
    if a.shape[-1] != b.shape[-2]:
        raise KernelError(f"depth is {a.shape[-1]} on the left, {b.shape[-2]} on the right")
    return np.asarray(a @ b)
