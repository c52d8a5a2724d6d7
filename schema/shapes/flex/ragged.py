"""Shape rules of TensorFlow's operators on ragged tensors."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.flex.reductions import bins
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed, of_rank
from tflite_ort.schema.shapes.tokenizers import partition_kinds
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("RaggedRange")
def ragged_range(op: View) -> Shapes:
    """The splits and the values, of which only the data says how many."""
    return unknown_shape(1), unknown_shape(1)


@flex_rule("RaggedTensorToTensor")
def to_tensor(op: View) -> Shapes:
    """[rows, widths..., D...] of values [N, D...]."""
    node, values = node_of(op), op["values"].shape
    kinds = partition_kinds(node["row_partition_types"], node["num_row_partition_tensors"])
    if not values:
        raise ModelError(f"{op.label}: the values are a scalar")
    levels = len(kinds) - (kinds[0] == "FIRST_DIM_SIZE")
    partitions = node.inputs(op.present_inputs(), "row_partition_tensors")
    rows = unknown_size()
    if kinds[0] == "ROW_SPLITS" and is_known(*partitions[0].shape):
        rows = partitions[0].shape[0] - 1
    sizes = [rows, *unknown_shape(levels), *values[1:]]
    told = listed(op["shape"]) if op["shape"].rank else ()
    for place, size in enumerate(told or ()):
        if place < len(sizes) and (not is_known(size) or size >= 0):
            sizes[place] = size
    return (tuple(sizes),)


@flex_rule("RaggedTensorToSparse")
def to_sparse(op: View) -> Shapes:
    """Indices, values and sizes of as many dimensions as there are together."""
    node = node_of(op)
    values = node.inputs(op.present_inputs(), "rt_dense_values")[0].shape
    rank, count = node["RAGGED_RANK"] + len(values), unknown_size()
    return (count, rank), (count,), (rank,)


@flex_rule("RaggedGather")
def gather(op: View) -> Shapes:
    """Splits, and values [N, D...]."""
    node = node_of(op)
    values = node.inputs(op.present_inputs(), "params_dense_values")[0].shape
    if not values:
        raise ModelError(f"{op.label}: the values are a scalar")
    splits = [unknown_shape(1) for _ in op.outputs[:-1]]
    return (*splits, (unknown_size(), *values[1:]))


@flex_rule("RaggedBincount")
def bincount(op: View) -> Shapes:
    """[rows, bins]."""
    (count,) = of_rank(op, "splits", 1)
    return ((count - 1 if is_known(count) else unknown_size(), bins(op["size"])),)


@flex_rule("RaggedTensorToVariant")
def to_variant(op: View) -> Shapes:
    """One value, or one for each row."""
    node, first = node_of(op), op.present_inputs()[0].shape
    if not node["batched_input"]:
        return ((),)
    if not first:
        raise ModelError(f"{op.label}: the rows of a scalar")
    if not node["RAGGED_RANK"]:
        return ((first[0],),)
    return ((first[0] - 1 if is_known(first[0]) else unknown_size(),),)


@flex_rule("RaggedTensorFromVariant")
def from_variant(op: View) -> Shapes | None:
    """Splits, and values of any shape: of the rank that the file declares, if it does."""
    if not op.outputs[-1].rank:
        return None
    splits = [unknown_shape(1) for _ in op.outputs[:-1]]
    return (*splits, unknown_shape(op.outputs[-1].rank))


@flex_rule("RaggedTensorToVariantGradient")
def to_variant_gradient(op: View) -> Shapes | None:
    """The shape of the values."""
    shape = listed(op["dense_values_shape"])
    return None if shape is None else (shape,)
