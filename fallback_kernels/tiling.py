"""Repeating, reversing, spreading and blocking of elements: TILE to BATCH_TO_SPACE_ND."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView, ReverseSequenceOptions
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.shapes.tiling import (
    batch_to_space_shape,
    broadcast_shape,
    diagonal_shape,
    dilated_shape,
    reversed_axes,
    space_to_batch_shape,
    tiled_shape,
)


@kernel(Op.TILE, versions=(1, 3))
def tile(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The input `multiples[i]` times along axis i."""
    array, multiples = inputs
    shape = tiled_shape(array.shape, tuple(multiples.reshape(-1).tolist()))
    return (np.tile(array, multiples.reshape(-1)).reshape(shape),)


@kernel(Op.BROADCAST_TO, versions=(2, 4))
def broadcast_to(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The input with its dimensions of size 1 repeated to fill `shape`."""
    array, shape = inputs
    return (np.broadcast_to(array, broadcast_shape(array.shape, tuple(shape.tolist()))).copy(),)


@kernel(Op.BROADCAST_ARGS, versions=(1, 1))
def broadcast_args(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The shape to which tensors of two shapes broadcast."""
    rank = max(shape.size for shape in inputs)
    a, b = (np.concatenate([np.ones(rank - s.size, s.dtype), s]) for s in inputs)
    if ((a != b) & (a != 1) & (b != 1)).any():
        raise KernelError(f"{shown(inputs[0])} and {shown(inputs[1])} do not broadcast")
    return (np.where(a == 1, b, a),)


@kernel(Op.REVERSE_V2, versions=(1, 4))
def reverse_v2(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The input with some consecutive axes reversed."""
    return (np.flip(inputs[0], reversed_axes(inputs[1], inputs[0].ndim)).copy(),)


@kernel(Op.REVERSE_SEQUENCE, versions=(1, 1))
def reverse_sequence(
    op: OperatorView[ReverseSequenceOptions], inputs: Inputs, state: State
) -> Outputs:
    """Sequence b with its first `lengths[b]` steps reversed, and the other steps unchanged."""
    array, lengths = inputs
    axes = (op.options.batch_dim, op.options.seq_dim)
    sequences = np.moveaxis(array, axes, (0, 1))
    if lengths.shape != sequences.shape[:1] or (lengths > sequences.shape[1]).any():
        raise KernelError(
            f"lengths {shown(lengths)} for {len(sequences)} sequences of {sequences.shape[1]}"
        )
    steps, ends = np.arange(sequences.shape[1]), lengths[:, np.newaxis]
    order = np.where(steps < ends, ends - 1 - steps, steps)
    order = order.reshape(*order.shape, *(1,) * (array.ndim - 2))
    turned = np.take_along_axis(sequences, order.astype(np.int64), 1)
    return (np.ascontiguousarray(np.moveaxis(turned, (0, 1), axes)),)


@kernel(Op.MATRIX_DIAG, versions=(1, 1))
def matrix_diag(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """[..., N] on the diagonal of [..., N, N] zeros (the code 0, whatever the zero point)."""
    (diagonal,) = inputs
    zeros = np.zeros((*diagonal.shape, diagonal.shape[-1]), diagonal.dtype)
    return (_with_diagonal(zeros, diagonal),)


@kernel(Op.MATRIX_SET_DIAG, versions=(1, 1))
def matrix_set_diag(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """[..., M, N] with its main diagonal of min(M, N) elements replaced."""
    matrices, diagonal = inputs
    if diagonal.size != np.prod(diagonal_shape(matrices.shape)):
        raise KernelError(f"shape {diagonal.shape} is not the diagonal of {matrices.shape}")
    return (_with_diagonal(matrices.copy(), diagonal),)


def _with_diagonal(matrices: Array, diagonal: Array) -> Array:
    shape = diagonal_shape(matrices.shape)
    at = np.arange(shape[-1])
    matrices[..., at, at] = diagonal.reshape(shape)
    return matrices


@kernel(Op.DILATE, versions=(1, 1))
def dilate(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """`dilations[i] - 1` elements of `padding` between neighbours along axis i."""
    array, dilations, padding = inputs
    result = np.full(dilated_shape(array.shape, dilations), padding.reshape(()), array.dtype)
    result[tuple(slice(None, None, step) for step in dilations.tolist())] = array
    return (result,)


@kernel(Op.SPACE_TO_BATCH_ND, versions=(1, 4))
def space_to_batch_nd(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """[N, H, W, C] to [BH*BW*N, H/BH, W/BW, C]: every BH-th row and BW-th column of the padded
    input is an image of its own."""
    array, blocks, paddings = inputs
    shape = space_to_batch_shape(array.shape, blocks, paddings)
    pads = [(0, 0), *((int(before), int(after)) for before, after in paddings), (0, 0)]
    padded = np.pad(array, pads, constant_values=op.output.edge_code)
    split = [array.shape[0]]
    for size, block in zip(shape[1:-1], blocks.tolist(), strict=True):
        split += [size, block]
    inner, outer = range(2, len(split), 2), range(1, len(split), 2)
    blocked = padded.reshape(*split, shape[-1]).transpose(*inner, 0, *outer, len(split))
    return (blocked.reshape(shape),)


@kernel(Op.BATCH_TO_SPACE_ND, versions=(1, 4))
def batch_to_space_nd(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """[BH*BW*N, H, W, C] to [N, H*BH, W*BW, C] less the crops: undoes SPACE_TO_BATCH_ND."""
    array, blocks, crops = inputs
    shape, count = batch_to_space_shape(array.shape, blocks, crops), blocks.size
    split = array.reshape(*blocks, shape[0], *array.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    whole = [size * block for size, block in zip(array.shape[1:-1], blocks.tolist(), strict=True)]
    joined = split.transpose(*order, 2 * count + 1).reshape(shape[0], *whole, shape[-1])
    starts = (int(first) for first in crops[:, 0])
    region = [slice(a, a + size) for a, size in zip(starts, shape[1:-1], strict=True)]
    return (np.ascontiguousarray(joined[(slice(None), *region)]),)
