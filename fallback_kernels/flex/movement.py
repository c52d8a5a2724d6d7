"""TensorFlow's operators that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.scattering import combine_at, rows_of
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.movement import (
    check_updates,
    slice_places,
    stitched_count,
    unique_axis,
)
from tflite_ort.schema.shapes.registry import shown, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axis

View = OperatorView[Any]

_SCATTERS = {
    "TensorScatterAdd": np.add,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "TensorScatterSub": np.subtract,
    "TensorScatterUpdate": None,
}


@flex_kernel(*_SCATTERS)
def tensor_scatter(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor, combined with updates at index tuples, one after another."""
    return (combined_places(_SCATTERS[op.name.removeprefix("Flex")], inputs, op),)


def combined_places(combine: np.ufunc | None, given: Inputs, op: View | None = None) -> Array:
    """A tensor, combined with updates at index tuples, one after another.

    Args:
        given: the tensor, the indices and the updates.
    """
    tensor, indices, updates = (np.asarray(array) for array in given)
    check_updates(tensor.shape, indices.shape, updates.shape)
    if op is not None and node_of(op)["bad_indices_policy"] not in ("", "DEFAULT", "ERROR"):
        raise KernelError(f"indices out of bounds: {node_of(op)['bad_indices_policy']}")
    sizes = tensor.shape[: indices.shape[-1]]
    if indices.size and ((indices < 0) | (indices >= np.asarray(sizes))).any():
        raise KernelError(f"indices {shown(indices)} in {sizes}")
    result = tensor.copy()
    rows = rows_of(indices, sizes).reshape(-1)
    _combine(combine, result, prod(sizes), rows, updates)
    return result


def _combine(
    combine: np.ufunc | None, result: Array, count: int, rows: Array, updates: Array
) -> None:
    """Rows of `result`, of which there are `count`; of equal ones the last is written."""
    if not result.size or not updates.size:
        return
    if combine is None:
        _, last = np.unique(rows[::-1], return_index=True)
        last = rows.size - 1 - last
        result.reshape(count, -1)[rows[last]] = updates.reshape(rows.size, -1)[last]
    elif count == 1 or rows.size:
        combine_at(combine, result, rows, updates)


_INPLACE = {"InplaceAdd": np.add, "InplaceSub": np.subtract, "InplaceUpdate": None}


@flex_kernel(*_INPLACE)
def inplace(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor, combined with rows at indices, which wrap around."""
    x, rows, v = inputs
    rows = rows.reshape(-1)
    if not x.ndim or v.shape != (rows.size, *x.shape[1:]) or not len(x):
        raise KernelError(f"rows of shape {v.shape} in shape {x.shape}")
    result = x.copy()
    _combine(_INPLACE[op.name.removeprefix("Flex")], result, len(x), rows % len(x), v)
    return (result,)


@flex_kernel("TensorStridedSliceUpdate")
def tensor_strided_slice_update(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor with a slice of other values."""
    whole, *bounds, value = inputs
    places = slice_places(op, whole.shape, bounds)
    if value.shape != places.shape:
        raise KernelError(f"values of shape {value.shape}, expected {places.shape}")
    result = whole.copy()
    result.reshape(-1)[places] = value
    return (result,)


@flex_kernel("InvertPermutation")
def invert_permutation(op: View, inputs: Inputs, state: State) -> Outputs:
    """Where each number is."""
    (x,) = inputs
    if x.ndim != 1 or not np.array_equal(np.sort(x), np.arange(len(x))):
        raise KernelError(f"{shown(x)} is no permutation")
    return (np.argsort(x).astype(x.dtype),)


@flex_kernel("Roll")
def roll(op: View, inputs: Inputs, state: State) -> Outputs:
    """Elements shifted along axes, with those at the end at the start."""
    x, shift, axis = inputs
    if not x.ndim or shift.shape != axis.shape:
        raise KernelError(f"{shift.shape} shifts along {axis.shape} axes of rank {x.ndim}")
    for amount, along in zip(shift.reshape(-1).tolist(), axis.reshape(-1).tolist(), strict=True):
        x = np.roll(x, amount, normalized_axis(along, x.ndim))
    return (x,)


@flex_kernel("LinSpace")
def lin_space(op: View, inputs: Inputs, state: State) -> Outputs:
    """Numbers in equal steps, from the first to the last."""
    start, stop, num = inputs
    count = single(num)
    if count <= 0:
        raise KernelError(f"{count} numbers")
    if count == 1:
        return (start.reshape(1).copy(),)
    step = (stop - start) / start.dtype.type(count - 1)
    result = (start + step * np.arange(count).astype(start.dtype)).astype(start.dtype)
    result[-1] = stop
    return (result,)


@flex_kernel("ListDiff")
def list_diff(op: View, inputs: Inputs, state: State) -> Outputs:
    """What of x is not in y, and where."""
    x, y = inputs
    (places,) = np.nonzero(~np.isin(x, y))
    return x[places], places.astype(op.outputs[1].dtype)


@flex_kernel("Where")
def where(op: View, inputs: Inputs, state: State) -> Outputs:
    """The coordinates of elements that are not zero."""
    return (np.argwhere(inputs[0]).astype(np.int64),)


@flex_kernel("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: View, inputs: Inputs, state: State) -> Outputs:
    """What differs in order of appearance, the place of each slice, and how many are equal."""
    x = inputs[0]
    axis = unique_axis(x.ndim, inputs[1] if len(inputs) > 1 else None)
    rows = np.moveaxis(x, axis, 0)
    along = None if x.ndim == 1 else 0
    _, first, inverse, counts = np.unique(
        rows,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=along,
        equal_nan=False,
    )
    order = np.argsort(first)
    values = np.moveaxis(rows[np.sort(first)], 0, axis)
    places = np.argsort(order)[inverse.reshape(-1)]
    dtype = op.outputs[1].dtype
    return (values, places.astype(dtype), counts[order].astype(dtype))[: len(op.outputs)]


@flex_kernel("DynamicPartition")
def dynamic_partition(op: View, inputs: Inputs, state: State) -> Outputs:
    """The rows of each part."""
    data, parts = inputs
    if parts.size and not (parts.min() >= 0 and parts.max() < len(op.outputs)):
        raise KernelError(f"parts {shown(parts)} of {len(op.outputs)}")
    return tuple(data[parts == number] for number in range(len(op.outputs)))


@flex_kernel("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: View, inputs: Inputs, state: State) -> Outputs:
    """Rows at their indices; of equal ones the last stays, and what has none is zero."""
    half = len(inputs) // 2
    indices, data = inputs[:half], inputs[half:]
    rest = data[0].shape[indices[0].ndim :]
    result = np.zeros((stitched_count(list(indices)), *rest), data[0].dtype)
    for place, values in zip(indices, data, strict=True):
        _combine(None, result, len(result), place.reshape(-1).astype(np.int64), values)
    return (result,)


@flex_kernel("ConcatOffset")
def concat_offset(op: View, inputs: Inputs, state: State) -> Outputs:
    """Where each part of a concatenation begins."""
    axis, sizes = single(inputs[0]), np.stack(inputs[1:])
    if sizes.ndim != 2 or not -sizes.shape[1] <= axis < sizes.shape[1]:
        raise KernelError(f"sizes of shape {sizes.shape} along axis {axis}")
    if (np.delete(sizes, axis, 1) != np.delete(sizes[:1], axis, 1)).any():
        raise KernelError(f"sizes {shown(sizes)} differ along other axes than {axis}")
    result = np.zeros_like(sizes)
    result[1:, axis] = np.cumsum(sizes[:-1, axis])
    return tuple(result)


refuse_rest("movement")
