"""Elements picked by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import GatherOptions, KernelError, Op, OperatorView
from tflite_ort.schema.shapes_slicing import gather_axes


@kernel(Op.GATHER, versions=(1, 8), inputs=("input", "positions"))
def gather(op: OperatorView[GatherOptions], inputs: Inputs, state: State) -> Outputs:
    """Slices along `axis` at `positions`, which share the leading `batch_dims` axes."""
    array, positions = inputs
    axis, batch = gather_axes(array.ndim, positions.ndim, op.options.axis, op.options.batch_dims)
    _check(positions, array.shape[axis], "gather")
    if array.shape[:batch] != positions.shape[:batch]:
        raise KernelError(f"batch dimensions of {array.shape} and {positions.shape} differ")
    if batch == 0:
        return (np.take(array, positions, axis),)
    rows = int(np.prod(array.shape[:batch]))
    flat = array.reshape(rows, *array.shape[batch:])
    picks = positions.reshape(rows, *positions.shape[batch:])
    results = [np.take(row, pick, axis - batch) for row, pick in zip(flat, picks, strict=True)]
    shape = (*array.shape[:axis], *positions.shape[batch:], *array.shape[axis + 1 :])
    return (np.array(results, array.dtype).reshape(shape),)


@kernel(Op.GATHER_ND, versions=(1, 6), inputs=("params", "indices"))
def gather_nd(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """params[i0, i1, ...] for each index tuple in the last axis of `indices`."""
    params, indices = inputs
    depth = indices.shape[-1]
    for axis in range(depth):
        _check(indices[..., axis], params.shape[axis], "gather_nd")
    if depth == 0:
        return (np.broadcast_to(params, indices.shape[:-1] + params.shape).copy(),)
    return (params[tuple(np.moveaxis(indices, -1, 0))],)


def _check(indices: Array, size: int, name: str) -> None:
    """TFLite takes no negative index."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise KernelError(
            f"{name} index out of bounds: {indices.min()}..{indices.max()} in an axis of {size}"
        )
