"""Shape rules of TensorFlow's operators on sparse tensors: indices [N, rank], values [N], sizes."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.flex.reductions import bins
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed, of_rank, reduced, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axes
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

_SEGMENTS = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@flex_rule(*_SEGMENTS, *(f"{name}WithNumSegments" for name in _SEGMENTS))
def segments(op: View) -> Shapes:
    """[segments, D...] of data [N, D...]."""
    data, ids = op["data"].shape, op["segment_ids"]
    if not data or ids.rank != 1 or differ(op["indices"].shape, ids.shape):
        raise ModelError(f"{op.label}: ids of {ids.shape} for indices of {op['indices'].shape}")
    count = unknown_size()
    if "num_segments" in op.names:
        known = op["num_segments"].data
        count = count if known is None else single(known)
    elif ids.data is not None:
        count = int(ids.data[-1]) + 1 if ids.data.size else 0
    return ((count, *data[1:]),)


@flex_rule("SparseTensorDenseMatMul")
def matmul(op: View) -> Shapes:
    """[rows, columns]."""
    node = node_of(op)
    sizes = listed(op["a_shape"]) or (unknown_size(), unknown_size())
    other = of_rank(op, "b", 2)
    if len(sizes) != 2:
        raise ModelError(f"{op.label}: {len(sizes)} dimensions, expected 2")
    inner, columns = reversed(other) if node["adjoint_b"] else other
    rows, shared = reversed(sizes) if node["adjoint_a"] else sizes
    if differ((inner,), (shared,)):
        raise ModelError(f"{op.label}: {sizes} by {other}")
    return ((rows, columns),)


@flex_rule("SparseReduceSum")
def reduce_sum(op: View) -> Shapes | None:
    """The sizes of the axes that are not summed."""
    axes, (rank,) = op["reduction_axes"].data, of_rank(op, "input_shape", 1)
    if axes is None or not is_known(rank):
        return None
    sizes = listed(op["input_shape"]) or unknown_shape(rank)
    return reduced(sizes, normalized_axes(axes, rank), node_of(op)["keep_dims"])


@flex_rule("SparseCross", "SparseCrossHashed", "SparseCrossV2")
def crosses(op: View) -> Shapes:
    """As many crosses as the data has."""
    count = unknown_size()
    return (count, 2), (count,), (2,)


@flex_rule("SparseReshape")
def sparse_reshape(op: View) -> Shapes:
    """As many indices, of the new rank."""
    count = of_rank(op, "input_indices", 2)[0]
    (rank,) = of_rank(op, "new_shape", 1)
    return (count, rank), (rank,)


@flex_rule("SparseReorder")
def sparse_reorder(op: View) -> Shapes:
    """The shapes of indices and values."""
    return op["input_indices"].shape, op["input_values"].shape


@flex_rule("SparseFillEmptyRows")
def fill_empty_rows(op: View) -> Shapes:
    """More indices and values; a mark for each row; a place for each value."""
    count, rank = of_rank(op, "indices", 2)
    sizes = listed(op["dense_shape"])
    rows = sizes[0] if sizes else unknown_size()
    more = unknown_size()
    return (more, rank), (more,), (rows,), (count,)


def _sparse(rank: int) -> Shapes:
    count = unknown_size()
    return (count, rank), (count,), (rank,)


@flex_rule("SparseAdd")
def sparse_add(op: View) -> Shapes:
    """A sparse tensor of the same rank."""
    return _sparse(of_rank(op, "a_indices", 2)[1])


@flex_rule("SparseSlice")
def sparse_slice(op: View) -> Shapes:
    """A sparse tensor of the same rank."""
    return _sparse(of_rank(op, "indices", 2)[1])


@flex_rule("SparseBincount")
def sparse_bincount(op: View) -> Shapes:
    """[bins], or [rows, bins]."""
    sizes = listed(op["dense_shape"]) or ()
    if len(sizes) not in (1, 2):
        raise ModelError(f"{op.label}: {len(sizes)} dimensions, expected 1 or 2")
    return ((*sizes[:-1], bins(op["size"])),)


@flex_rule("SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(op: View) -> Shapes:
    """A loss for each row, and a gradient for each number."""
    shape, labels = of_rank(op, "features", 2), of_rank(op, "labels", 1)
    if differ(shape[:1], labels):
        raise ModelError(f"{op.label}: labels of shape {labels} for {shape}")
    return labels, shape


@flex_rule("DenseToDenseSetOperation")
def dense_sets(op: View) -> Shapes:
    """A sparse tensor of the same rank."""
    return _sparse(op["set1"].rank)


@flex_rule("DenseToSparseSetOperation")
def dense_and_sparse_sets(op: View) -> Shapes:
    """A sparse tensor of the same rank."""
    return _sparse(op["set1"].rank)


@flex_rule("SparseToSparseSetOperation")
def sparse_sets(op: View) -> Shapes:
    """A sparse tensor of the same rank."""
    return _sparse(of_rank(op, "set1_indices", 2)[1])
