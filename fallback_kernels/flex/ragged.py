"""Ragged tensors: the values of all N rows in a line, and splits [N + 1], their bounds."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.flex.reductions import counted
from tflite_ort.fallback_kernels.idioms.maps import variant
from tflite_ort.fallback_kernels.idioms.ragged_rows import dense, levels_of, places_of, row_ids
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.registry import shown, single
from tflite_ort.schema.shapes.tokenizers import partition_kinds
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


@flex_kernel("RaggedRange")
def ragged_range(op: View, inputs: Inputs, state: State) -> Outputs:
    """(splits, values): for every row the numbers from start to limit; a scalar is for all rows."""
    starts, limits, deltas = np.broadcast_arrays(*inputs)
    if (deltas == 0).any() or starts.ndim > 1:
        raise KernelError(f"ranges of shape {starts.shape} in steps of {deltas.reshape(-1)[:4]}")
    numbers = np.stack([starts, limits, deltas], axis=-1).reshape(-1, 3).tolist()
    rows = [np.arange(*row).astype(starts.dtype) for row in numbers]
    splits = np.cumsum([0, *map(len, rows)])
    values = np.concatenate([np.empty(0, starts.dtype), *rows])
    return splits.astype(op.outputs[0].dtype), values


@flex_kernel("RaggedTensorToTensor")
def to_tensor(op: View, inputs: Inputs, state: State) -> Outputs:
    """The values in rows of one length, and the default value beside shorter ones."""
    node = node_of(op)
    shape, values, default, *tensors = inputs
    levels, rows = levels_of(
        partition_kinds(node["row_partition_types"], node["num_row_partition_tensors"]),
        tensors,
        len(values),
    )
    places, sizes = places_of(levels, rows)
    rest = values.shape[1:]
    if shape.ndim:
        told = shape.tolist()
        if len(told) != len(sizes) + len(rest) or any(
            size not in (-1, other) for size, other in zip(told[len(sizes) :], rest, strict=True)
        ):
            raise KernelError(f"values of {values.shape} in {len(sizes)} levels as {told}")
        sizes = [b if a < 0 else a for a, b in zip(told, sizes, strict=False)]
    elif single(shape) != -1:
        raise KernelError(f"shape {shown(shape)}")
    return (dense(values, default, places, sizes),)


@flex_kernel("RaggedTensorToSparse")
def to_sparse(op: View, inputs: Inputs, state: State) -> Outputs:
    """Indices and values of all elements, and the sizes that hold them."""
    *tensors, values = inputs
    if not values.ndim:
        raise KernelError("the values are a scalar")
    levels, rows = levels_of(["ROW_SPLITS"], tensors, len(values))
    places, sizes = places_of(levels, rows)
    rest = values.shape[1:]
    inner = np.indices(rest).reshape(len(rest), prod(rest)).T
    outer = np.repeat(places, len(inner), axis=0)
    indices = np.concatenate([outer, np.tile(inner, (len(values), 1))], axis=1)
    return indices.astype(np.int64), values.reshape(-1), np.array([*sizes, *rest], np.int64)


@flex_kernel("RaggedGather")
def gather(op: View, inputs: Inputs, state: State) -> Outputs:
    """The rows at indices: their splits, and their values."""
    node = node_of(op)
    splits = node.inputs(inputs, "params_nested_splits")
    (values,) = node.inputs(inputs, "params_dense_values")
    (indices,) = node.inputs(inputs, "indices")
    counts = [len(each) - 1 for each in splits[1:]] + [len(values)]
    for each, count in zip(splits, counts, strict=True):
        row_ids(each, count)
    rows = indices.reshape(-1)
    if rows.size and not (rows.min() >= 0 and rows.max() < len(splits[0]) - 1):
        raise KernelError(f"rows {shown(indices)} of {len(splits[0]) - 1}")
    found, total = [], indices.shape[0] if indices.ndim else 1
    for size in indices.shape[1:]:
        found.append(np.arange(total + 1) * size)
        total *= size
    for each in splits:
        lengths = each[rows + 1] - each[rows]
        bounds = np.cumsum([0, *lengths.tolist()])
        found.append(bounds)
        starts = np.repeat(each[rows] - bounds[:-1], lengths)
        rows = starts + np.arange(bounds[-1])
    if len(found) != len(op.outputs) - 1:
        raise KernelError(f"{len(found)} lists of splits, expected {len(op.outputs) - 1}")
    dtype = op.outputs[0].dtype
    return (*(each.astype(dtype) for each in found), values[rows])


@flex_kernel("RaggedBincount")
def bincount(op: View, inputs: Inputs, state: State) -> Outputs:
    """How often each number is in each row."""
    splits, values, size, weights = inputs
    rows = row_ids(splits, values.size), len(splits) - 1
    binary = bool(node_of(op)["binary_output"])
    return (counted(rows, values, single(size), weights, binary),)


# Ragged tensors as single values -----------------------------------------------------------------


@record(eq=False)
class _Ragged:
    """What a variant holds: the splits of each level, from the outermost, and the values."""

    splits: tuple[Array, ...]
    values: Array

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.splits[0]) - 1 if self.splits else len(self.values)


def _of(variants: Array) -> list[_Ragged]:
    found = list(variants.reshape(-1))
    if not all(isinstance(each, _Ragged) for each in found):
        raise KernelError("variants that are no ragged tensors")
    return found


@flex_kernel("RaggedTensorToVariant")
def to_variant(op: View, inputs: Inputs, state: State) -> Outputs:
    """A ragged tensor as one value, or each of its rows."""
    *levels, values = inputs
    counts = [len(each) - 1 for each in levels[1:]] + ([len(values)] if levels else [])
    for each, count in zip(levels, counts, strict=True):
        row_ids(each, count)
    whole = _Ragged(tuple(levels), values)
    if not node_of(op)["batched_input"]:
        return (variant(whole),)
    if not values.ndim:
        raise KernelError("the rows of a scalar")
    made = np.empty(whole.rows, np.object_)
    for row in range(whole.rows):
        made[row] = _row(whole, row)
    return (made,)


def _row(whole: _Ragged, row: int) -> _Ragged:
    """One of the rows, of a level less."""
    if not whole.splits:
        return _Ragged((), whole.values[row])
    first, end = whole.splits[0][row : row + 2].tolist()
    found = []
    for each in whole.splits[1:]:
        part = each[first : end + 1]
        found.append(part - part[0])
        first, end = int(part[0]), int(part[-1])
    return _Ragged(tuple(found), whole.values[first:end])


@flex_kernel("RaggedTensorFromVariant")
def from_variant(op: View, inputs: Inputs, state: State) -> Outputs:
    """The ragged tensor of several, with a level more for each dimension."""
    (encoded,), node, dtype = inputs, node_of(op), op.outputs[-1].dtype
    inner, outer = node["input_ragged_rank"], node["output_ragged_rank"]
    if inner == -1:
        inner = outer - encoded.ndim
    if inner < 0 or inner + encoded.ndim != outer:
        raise KernelError(f"{encoded.ndim} dimensions and {inner} levels, expected {outer} levels")
    parts, splits = _of(encoded), node.dtype("Tsplits")
    if any(len(each.splits) != inner or each.values.dtype != dtype for each in parts):
        raise KernelError(f"ragged tensors that are not of {inner} levels of {dtype}")
    if not encoded.ndim:
        return (*(each.astype(splits) for each in parts[0].splits), parts[0].values.copy())
    sizes = encoded.shape
    levels = [np.arange(prod(sizes[:i]) + 1) * sizes[i] for i in range(1, len(sizes))]
    levels.append(np.cumsum([0, *(each.rows for each in parts)]))
    for level in range(inner):
        lengths = [np.diff(each.splits[level]) for each in parts]
        levels.append(np.cumsum(np.concatenate([[0], *lengths]).astype(np.int64)))
    if len({each.values.shape[1:] for each in parts}) > 1 or not all(p.values.ndim for p in parts):
        raise KernelError("ragged tensors whose values have other shapes")
    values = np.concatenate([each.values for each in parts]) if parts else np.empty(0, dtype)
    return (*(each.astype(splits) for each in levels), values)


@flex_kernel("RaggedTensorToVariantGradient")
def to_variant_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """The values of all, one after another."""
    encoded, _, shape = inputs
    sizes, parts = tuple(shape.reshape(-1).tolist()), _of(encoded)
    total = sum(each.values.size for each in parts)
    if any(each.values.dtype != op.output.dtype for each in parts) or total != prod(sizes):
        raise KernelError(f"ragged tensors of {total} values, expected {shown(shape)}")
    flat = [np.empty(0, op.output.dtype), *(each.values.reshape(-1) for each in parts)]
    return (np.concatenate(flat).reshape(sizes),)
