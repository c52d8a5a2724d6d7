"""Shape rules of TensorFlow's reductions, scans, segments and counts."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.gather_scatter import segments_shape
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, same_shape, shown, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import differ, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView, TensorView

View = OperatorView[Any]

flex_rule("Bucketize", "Cumprod", "Cumsum", "CumulativeLogsumexp")(same_shape)


@flex_rule("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")
def reduction(op: View) -> Shapes | None:
    """The sizes of the axes that are left."""
    shape, axes = op["input"].shape, op["reduction_indices"].data
    keep = node_of(op)["keep_dims"]
    if axes is None:
        return (unknown_shape(len(shape)),) if keep else None
    gone = normalized_axes(axes, len(shape))
    if keep:
        return (tuple(1 if axis in gone else size for axis, size in enumerate(shape)),)
    return (tuple(size for axis, size in enumerate(shape) if axis not in gone),)


@flex_rule("ArgMax", "ArgMin")
def extreme_place(op: View) -> Shapes:
    """The sizes of all other axes."""
    shape, given = op["input"].shape, op["dimension"].data
    if given is None:
        return (unknown_shape(len(shape) - 1),)
    axis = normalized_axis(single(given), len(shape))
    return ((*shape[:axis], *shape[axis + 1 :]),)


def bins(size: TensorView) -> int:
    """How many bins there are."""
    if size.data is None:
        return unknown_size()
    count = single(size.data)
    if count < 0:
        raise ModelError(f"{count} bins")
    return count


@flex_rule("Bincount")
def bincount(op: View) -> Shapes:
    """[bins]."""
    return ((bins(op["size"]),),)


@flex_rule("DenseBincount")
def dense_bincount(op: View) -> Shapes:
    """[bins], or [rows, bins] of a matrix."""
    shape = op["input"].shape
    if len(shape) > 2:
        raise ModelError(f"{op.label}: rank {len(shape)}, expected at most 2")
    return ((*shape[:-1], bins(op["size"])),)


@flex_rule("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
def segments(op: View) -> Shapes:
    """[last id + 1, D...] of data [N, D...]."""
    shape, ids = op["data"].shape, op["segment_ids"]
    if not shape or ids.rank != 1 or differ(shape[:1], ids.shape):
        raise ModelError(f"{op.label}: ids of shape {ids.shape} for data of {shape}")
    count = unknown_size()
    if ids.data is not None:
        count = int(ids.data[-1]) + 1 if ids.data.size else 0
        if count < 0:
            raise ModelError(f"{op.label}: segment ids {shown(ids.data)}")
    return ((count, *shape[1:]),)


@flex_rule("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")
def unsorted_segments(op: View) -> Shapes:
    """[segments, D...] of data [I..., D...] whose ids have shape I."""
    given = op["num_segments"].data
    count = unknown_size() if given is None else single(given)
    return (segments_shape(op["data"].shape, op["segment_ids"].shape, count),)


@flex_rule("UpperBound")
def upper_bound(op: View) -> Shapes:
    """The shape of the values, as many rows as are sorted."""
    rows, values = op["sorted_inputs"].shape, op["values"].shape
    if len(rows) != 2 or len(values) != 2 or differ(rows[:1], values[:1]):
        raise ModelError(f"{op.label}: values of shape {values} in rows of {rows}")
    return (values,)
