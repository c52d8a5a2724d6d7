"""Shape rules of TensorFlow's operators that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule, same_shape, shown, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]
Array = npt.NDArray[Any]

flex_rule(
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
    "InvertPermutation",
    "Roll",
    "TensorStridedSliceUpdate",
)(same_shape)


@flex_rule(
    "TensorScatterAdd",
    "TensorScatterMax",
    "TensorScatterMin",
    "TensorScatterSub",
    "TensorScatterUpdate",
)
def tensor_scatter(op: View) -> Shapes:
    """The tensor's shape."""
    shape = op["tensor"].shape
    check_updates(shape, op["indices"].shape, op["updates"].shape)
    return (shape,)


def check_updates(shape: Shape, indices: Shape, updates: Shape) -> None:
    """Refuse updates that are not as their indices say."""
    if not indices or not is_known(indices[-1]) or indices[-1] > len(shape):
        raise ModelError(f"indices of shape {indices} do not index shape {shape}")
    if differ(updates, (*indices[:-1], *shape[indices[-1] :])):
        raise ModelError(f"updates of shape {updates} at indices {indices} of shape {shape}")


@flex_rule("LinSpace")
def lin_space(op: View) -> Shapes:
    """[num]."""
    data = op["num"].data
    count = unknown_size() if data is None else single(data)
    if is_known(count) and count <= 0:
        raise ModelError(f"{op.label}: {count} numbers")
    return ((count,),)


@flex_rule("ListDiff")
def list_diff(op: View) -> Shapes:
    """[N] twice."""
    if op["x"].rank != 1 or op["y"].rank != 1:
        raise ModelError(f"{op.label}: {op['x'].shape} and {op['y'].shape} are no lists")
    return (unknown_shape(1),) * 2


@flex_rule("Where")
def where(op: View) -> Shapes:
    """[N, rank]."""
    return ((unknown_size(), op["input"].rank),)


def unique_axis(rank: int, axis: Array | None) -> int:
    """The axis whose slices are told apart; an empty list of axes is of a list."""
    if axis is None or not axis.size:
        if rank != 1:
            raise ModelError(f"rank {rank}, expected a list")
        return 0
    return normalized_axis(single(axis), rank)


@flex_rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: View) -> Shapes | None:
    """What differs, the place of each slice, and how many are equal."""
    shape, axis = op["x"].shape, None
    if "axis" in op.names:
        axis = op["axis"].data
        if axis is None:
            return None
    place, count = unique_axis(len(shape), axis), unknown_size()
    values = (*shape[:place], count, *shape[place + 1 :])
    places: Shape = (shape[place],)
    return (values, places, (count,))[: len(op.outputs)]


@flex_rule("DynamicPartition")
def dynamic_partition(op: View) -> Shapes:
    """[N, D...] for each part of data [I..., D...] whose parts have shape I."""
    data, parts = op["data"].shape, op["partitions"].shape
    if differ(data[: len(parts)], parts):
        raise ModelError(f"{op.label}: data of shape {data} by {parts}")
    return tuple((unknown_size(), *data[len(parts) :]) for _ in op.outputs)


@flex_rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: View) -> Shapes:
    """[largest index + 1, D...]."""
    tensors = op.present_inputs()
    indices, data = tensors[: len(tensors) // 2], tensors[len(tensors) // 2 :]
    rest = data[0].shape[indices[0].rank :]
    for place, values in zip(indices, data, strict=True):
        if differ(values.shape, (*place.shape, *rest)):
            raise ModelError(f"{op.label}: data of {values.shape} at indices of {place.shape}")
    known = [place.data for place in indices]
    count = unknown_size()
    if all(each is not None for each in known):
        count = stitched_count([each for each in known if each is not None])
    return ((count, *rest),)


def stitched_count(indices: list[Array]) -> int:
    """The largest index and 1."""
    for each in indices:
        if each.size and each.min() < 0:
            raise ModelError(f"indices {shown(each)}")
    return max((int(each.max()) for each in indices if each.size), default=-1) + 1


@flex_rule("ConcatOffset")
def concat_offset(op: View) -> Shapes:
    """As the sizes."""
    return tuple(tensor.shape for tensor in op.present_inputs()[1:])


def slice_places(op: View, shape: Shape, values: list[Array]) -> Array:
    """The places, of an array of `shape` in a line, that a strided slice takes.

    Args:
        values: begin, end and strides.
    """
    node = node_of(op)
    begin, end, strides = (each.reshape(-1).tolist() for each in values)
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        raise ModelError(f"{op.label}: from {begin} to {end} in steps of {strides}")
    items: list[Any] = []
    for place, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << place
        if node["ellipsis_mask"] & bit:
            items.append(...)
        elif node["new_axis_mask"] & bit:
            items.append(None)
        elif node["shrink_axis_mask"] & bit:
            items.append(first)
        else:
            first = None if node["begin_mask"] & bit else first
            items.append(slice(first, None if node["end_mask"] & bit else last, step))
    try:
        return np.asarray(np.arange(prod(shape)).reshape(shape)[tuple(items)])
    except IndexError as error:
        raise ModelError(f"{op.label}: {error}") from None
