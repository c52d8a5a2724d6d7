"""TensorFlow's operators on sparse tensors: indices [N, rank], values [N], and the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.reductions import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    combined_segments,
    counted,
    of_types,
)
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.crossing import (
    Column,
    column_of_sparse,
    crossed,
    hash_of,
    hashes_of,
    text_of,
)
from tflite_ort.fallback_kernels.idioms.scattering import combine_at
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.shapes.registry import shown, single
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_MOST_ELEMENTS = 1 << 28


def _checked(indices: Array, sizes: Array) -> Array:
    """Indices [N, rank] of an array of these sizes."""
    if indices.ndim != 2 or indices.shape[1] != sizes.size or (sizes < 0).any():
        raise KernelError(f"indices of shape {indices.shape} in sizes {shown(sizes)}")
    if indices.size and ((indices < 0) | (indices >= sizes.reshape(-1))).any():
        raise KernelError(f"indices {shown(indices)} in sizes {shown(sizes)}")
    return indices.astype(np.int64)


_SEGMENTS = ("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
_DIVIDED = tuple(
    f"SparseSegment{name}{more}" for name in ("Mean", "SqrtN") for more in ("", "WithNumSegments")
)


def _segments(op: View, inputs: Inputs, state: State) -> Outputs:
    data, indices, ids, *more = inputs
    if indices.size and not (indices.min() >= 0 and indices.max() < len(data)):
        raise KernelError(f"rows {shown(indices)} of {len(data)}")
    name = op.name.removeprefix("FlexSparse").removesuffix("WithNumSegments")
    count = single(more[0]) if more else None
    return (combined_segments(name, data[indices], ids, count),)


flex_kernel(*_SEGMENTS, state=of_types(FLOATS | INTEGERS))(_segments)
flex_kernel(*_DIVIDED, state=of_types(FLOATS))(_segments)


@flex_kernel("SparseTensorDenseMatMul")
def matmul(op: View, inputs: Inputs, state: State) -> Outputs:
    """The product of a sparse matrix and a matrix."""
    indices, values, sizes, other = inputs
    node = node_of(op)
    if values.dtype.itemsize == 2:
        raise KernelError(f"{values.dtype} is not computed here")
    indices = _checked(indices, sizes)
    if indices.shape[1] != 2 or other.ndim != 2:
        raise KernelError(f"sizes {shown(sizes)} by {other.shape}")
    other = other.conj().T if node["adjoint_b"] else other
    if node["adjoint_a"]:
        indices, sizes, values = indices[:, ::-1], sizes[::-1], values.conj()
    if int(sizes[1]) != len(other):
        raise KernelError(f"sizes {shown(sizes)} by {other.shape}")
    result = np.zeros((int(sizes[0]), other.shape[1]), values.dtype)
    combine_at(np.add, result, indices[:, 0], values[:, None] * other[indices[:, 1]])
    return (result,)


@flex_kernel("SparseReshape")
def sparse_reshape(op: View, inputs: Inputs, state: State) -> Outputs:
    """Indices of the same elements in other sizes, of which one may be -1."""
    indices, sizes, wanted = inputs
    total, new = prod(sizes.tolist()), wanted.copy()
    others = prod(size for size in wanted.tolist() if size >= 0)
    if (wanted < 0).sum() > 1 or (wanted < -1).any():
        raise KernelError(f"sizes {shown(wanted)}")
    if (wanted < 0).any():
        new[wanted < 0] = total // others if others else 0
    if prod(new.tolist()) != total:
        raise KernelError(f"{total} elements in sizes {shown(wanted)}")
    places = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(sizes.tolist()):
        places = places * size + _checked(indices, sizes)[:, axis]
    result = np.empty((len(indices), new.size), np.int64)
    for axis in range(new.size - 1, -1, -1):
        places, result[:, axis] = np.divmod(places, max(int(new[axis]), 1))
    return result, new


@flex_kernel("SparseReorder")
def sparse_reorder(op: View, inputs: Inputs, state: State) -> Outputs:
    """The elements in row-major order."""
    indices, values, sizes = inputs
    order = np.lexsort(_checked(indices, sizes).T[::-1])
    return indices[order], values[order]


@flex_kernel("SparseFillEmptyRows")
def fill_empty_rows(op: View, inputs: Inputs, state: State) -> Outputs:
    """A default value in each row without values; which rows those are; where each value went."""
    indices, values, sizes, default = inputs
    indices, rows = _checked(indices, sizes), int(sizes[0])
    empty = np.ones(rows, np.bool_)
    empty[indices[:, 0]] = False
    (places,) = np.nonzero(empty)
    added = np.zeros((places.size, indices.shape[1]), np.int64)
    added[:, 0] = places
    whole = np.concatenate([indices, added])
    order = np.argsort(whole[:, 0], kind="stable")
    more = np.concatenate([values, np.full(places.size, default.reshape(()), values.dtype)])
    back = np.argsort(order, kind="stable")[: len(indices)]
    return whole[order], more[order], empty, back.astype(np.int64)


@flex_kernel("SparseReduceSum", state=of_types(FLOATS | INTEGERS | COMPLEX))
def reduce_sum(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sums along axes."""
    indices, values, sizes, axes = inputs
    indices, rank = _checked(indices, sizes), sizes.size
    if ((axes < -rank) | (axes >= rank)).any():
        raise KernelError(f"axes {shown(axes)} of {rank} dimensions")
    summed = {int(axis) % rank for axis in axes.reshape(-1)}
    kept = [axis for axis in range(rank) if axis not in summed]
    wanted = [int(size) for size in sizes[kept]]
    if prod(wanted) > _MOST_ELEMENTS:
        raise KernelError(f"sums of {prod(wanted)} elements")
    result = np.zeros(wanted, values.dtype)
    rows = np.zeros(len(indices), np.int64)
    for axis in kept:
        rows = rows * int(sizes[axis]) + indices[:, axis]
    combine_at(np.add, result, rows, values)
    if node_of(op)["keep_dims"]:
        result = np.expand_dims(result, tuple(sorted(summed)))
    return (result,)


def _columns(op: View, inputs: Inputs) -> tuple[list[Column], int]:
    """The features that are crossed, and the number of rows."""
    parts = node_of(op).parts(node_of(op).operator.inputs, inputs)
    dense, sizes = parts.get("dense_inputs", ()), parts.get("shapes", ())
    rows = {int(each[0]) if each.shape == (2,) else -1 for each in sizes}
    rows |= {len(each) if each.ndim == 2 else -1 for each in dense}
    if len(rows) != 1 or min(rows) < 0:
        raise KernelError("columns that are no matrices of one number of rows")
    count = rows.pop()
    sparse = zip(parts.get("indices", ()), parts.get("values", ()), strict=True)
    columns = [column_of_sparse(indices, values, count) for indices, values in sparse]
    return [*columns, *(each.tolist() for each in dense)], count


@flex_kernel("SparseCross")
def sparse_cross(op: View, inputs: Inputs, state: State) -> Outputs:
    """Crosses as texts with _X_ between the features, or as hashes."""
    node, (columns, rows) = node_of(op), _columns(op, inputs)
    if node["hashed_output"]:
        start, buckets = node["hash_key"] % 2**64, node["num_buckets"]
        made = crossed(columns, rows, lambda v: hash_of([start, *hashes_of(v)], buckets))
        return made[0], np.array(made[1], np.int64), made[2]
    if any(not isinstance(each, bytes) for column in columns for row in column for each in row):
        raise KernelError("features that are no texts, joined as texts")
    return _texts(*crossed(columns, rows, lambda v: text_of(v, b"_X_")))


@flex_kernel("SparseCrossHashed")
def sparse_cross_hashed(op: View, inputs: Inputs, state: State) -> Outputs:
    """Crosses as hashes; of texts with a key, if asked for."""
    (columns, rows), (buckets, strong, salt) = _columns(op, inputs), inputs[-3:]
    if salt.shape != (2,) or buckets.size != 1 or strong.size != 1:
        raise KernelError(f"a salt of {salt.shape}")
    key = [int(each) % 2**64 for each in salt] if strong.item() else None
    count = int(buckets.item())
    made = crossed(columns, rows, lambda features: hash_of(hashes_of(features, key), count))
    return made[0], np.array(made[1], np.int64), made[2]


@flex_kernel("SparseCrossV2")
def sparse_cross_texts(op: View, inputs: Inputs, state: State) -> Outputs:
    """Crosses as texts."""
    (columns, rows), between = _columns(op, inputs), bytes(inputs[-1].reshape(-1)[0])
    return _texts(*crossed(columns, rows, lambda v: text_of(v, between)))


def _texts(indices: Array, values: Sequence[Any], sizes: Array) -> Outputs:
    made = np.empty(len(values), np.object_)
    made[:] = values
    return indices, made, sizes


def _adds(op: View) -> None:
    """Refuses types of values, which are the second input, that are not added here."""
    if op["a_values"].type not in FLOATS | INTEGERS | COMPLEX:
        raise ModelError(f"{op.label}: {op['a_values'].type.name} is not added here")


@flex_kernel("SparseAdd", state=_adds)
def sparse_add(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sum of two, without what is nearer to 0 than the threshold."""
    a_indices, a, a_sizes, b_indices, b, b_sizes, threshold = inputs
    if not np.array_equal(a_sizes, b_sizes):
        raise KernelError(f"sizes {shown(a_sizes)} and {shown(b_sizes)}")
    whole = np.concatenate([_checked(a_indices, a_sizes), _checked(b_indices, b_sizes)])
    places, back = np.unique(whole, axis=0, return_inverse=True)
    sums = np.zeros(len(places), a.dtype)
    np.add.at(sums, back.reshape(-1), np.concatenate([a, b]))
    kept = np.abs(sums) >= threshold.reshape(()) if threshold.any() else np.ones(len(sums), bool)
    return places[kept], sums[kept], a_sizes.copy()


@flex_kernel("SparseSlice")
def sparse_slice(op: View, inputs: Inputs, state: State) -> Outputs:
    """The elements from `start`, as many as `size` says and there are."""
    indices, values, sizes, start, size = inputs
    _checked(indices, sizes)
    if (start < 0).any() or (size < 0).any():
        raise KernelError(f"{shown(size)} elements from {shown(start)}")
    inside = ((indices >= start) & (indices < start + size)).all(axis=1)
    left = np.maximum(np.minimum(size, sizes - start), 0)
    return indices[inside] - start, values[inside], left.astype(np.int64)


@flex_kernel("SparseBincount")
def sparse_bincount(op: View, inputs: Inputs, state: State) -> Outputs:
    """How often each number is there, in each row of a matrix."""
    indices, values, sizes, size, weights = inputs
    binary = bool(node_of(op)["binary_output"])
    if sizes.size == 1:
        rows = np.zeros(values.size, np.int64), 1
        return (counted(rows, values, single(size), weights, binary)[0],)
    rows = _checked(indices, sizes)[:, 0], int(sizes[0])
    return (counted(rows, values, single(size), weights, binary),)


@flex_kernel("SparseSoftmaxCrossEntropyWithLogits", state=of_types(FLOATS))
def cross_entropy(op: View, inputs: Inputs, state: State) -> Outputs:
    """The loss of each row, and its gradient."""
    logits, labels = inputs
    if labels.size and not (labels.min() >= 0 and labels.max() < logits.shape[1]):
        raise KernelError(f"labels {shown(labels)} of {logits.shape[1]}")
    rows = np.arange(len(logits))
    lower = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(lower)
    total = powers.sum(axis=1, keepdims=True)
    gradient = powers / total
    gradient[rows, labels] -= 1
    return np.log(total[:, 0]) - lower[rows, labels], gradient


_SETS = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}
Groups = Mapping[tuple[int, ...], set[Any]]


def _dense_groups(array: Array) -> Groups:
    if array.ndim < 2:
        raise KernelError(f"sets of shape {array.shape}")
    return {place: set(array[place].tolist()) for place in np.ndindex(array.shape[:-1])}


def _sparse_groups(indices: Array, values: Array, sizes: Array) -> Groups:
    found: dict[tuple[int, ...], set[Any]] = {}
    for place, value in zip(_checked(indices, sizes).tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place[:-1]), set()).add(value)
    return found


def _set_operation(op: View, one: Groups, other: Groups, sizes: Sequence[int]) -> Outputs:
    """A sparse tensor of the sets of all groups, each in ascending order."""
    name = node_of(op)["set_operation"]
    name = name.decode() if isinstance(name, bytes) else name
    if name not in _SETS:
        raise KernelError(f"set operation {name!r}, expected one of {', '.join(_SETS)}")
    indices: list[tuple[int, ...]] = []
    values: list[Any] = []
    longest = 0
    for place in sorted(one.keys() | other.keys()):
        found = sorted(_SETS[name](one.get(place, set()), other.get(place, set())))
        longest = max(longest, len(found))
        indices += [(*place, number) for number in range(len(found))]
        values += found
    array = np.empty(len(values), op.outputs[1].dtype)
    array[:] = values
    shape = np.array([*sizes, longest], np.int64)
    return np.array(indices, np.int64).reshape(-1, shape.size), array, shape


@flex_kernel("DenseToDenseSetOperation")
def dense_sets(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sets of the last axes."""
    one, other = inputs
    if one.shape[:-1] != other.shape[:-1]:
        raise KernelError(f"sets of shapes {one.shape} and {other.shape}")
    return _set_operation(op, _dense_groups(one), _dense_groups(other), one.shape[:-1])


@flex_kernel("DenseToSparseSetOperation")
def dense_and_sparse_sets(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sets of the last axes."""
    one, *other = inputs
    if list(one.shape[:-1]) != other[2].tolist()[:-1]:
        raise KernelError(f"sets of shapes {one.shape} and {shown(other[2])}")
    return _set_operation(op, _dense_groups(one), _sparse_groups(*other), one.shape[:-1])


@flex_kernel("SparseToSparseSetOperation")
def sparse_sets(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sets of the last axes."""
    one, other = inputs[:3], inputs[3:]
    sizes = one[2].tolist()[:-1]
    if sizes != other[2].tolist()[:-1]:
        raise KernelError(f"sets of shapes {shown(one[2])} and {shown(other[2])}")
    return _set_operation(op, _sparse_groups(*one), _sparse_groups(*other), sizes)


refuse_rest("sparse")
