"""Tensors as rows: all dimensions but the last one as a single one, as matrix products take them.

A chain of FULLY_CONNECTED and of operators on single elements keeps its rows, so that no Reshape
stands before and after each product.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.base.records import replace
from tflite_ort.schema import Op, TensorView
from tflite_ort.schema.values.sizes import (
    is_known,
    is_one,
    known_product,
    may_differ,
    one_is_inferred,
)

# They give a tensor another shape and keep its elements in order.
RESHAPES = frozenset({Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS})


def has_rows(tensor: TensorView) -> bool:
    """Whether a tensor of rank 3 or more can become rows, and rows the tensor again."""
    shape, quantization = tensor.shape, tensor.quantization
    if tensor.rank < 3 or not is_known(shape[-1]) or tensor.is_variable:
        return False
    if quantization is not None and quantization.per_channel:
        return False
    known = is_known(*shape) and 0 not in shape
    return known or one_is_inferred(shape)


def row_shape(tensor: TensorView) -> tuple[int, int]:
    """The shape of the rows of `tensor`, -1 for a number of rows that is not known."""
    lead = tensor.shape[:-1]
    return (known_product(lead) if is_known(*lead) else -1), tensor.shape[-1]


def rows_agree(tensors: Sequence[TensorView]) -> bool:
    """Whether operands broadcast as rows too. All computed ones have the same rows; a constant has
    these rows, or is a single row."""
    computed = [tensor for tensor in tensors if not tensor.is_constant]
    others = [tensor for tensor in tensors if tensor.is_constant and not is_vector(tensor)]
    shapes = [_without_ones(tensor) for tensor in (*computed, *others)]
    if any(may_differ(shape, shapes[0]) for shape in shapes):
        return False
    if not all(tensor.rank == 2 or has_rows(tensor) for tensor in (*computed, *others)):
        return False
    wide = shapes[0][-1:]
    vectors = (tensor for tensor in tensors if tensor.is_constant and is_vector(tensor))
    return all(tensor.shape[-1:] in ((), (1,), wide) for tensor in vectors)


def is_vector(tensor: TensorView) -> bool:
    """Whether `tensor` has one row."""
    quantization = tensor.quantization
    if quantization is not None and quantization.per_channel:
        return False
    return is_known(*tensor.shape) and known_product(tensor.shape[:-1]) == 1


def as_vector(tensor: TensorView) -> TensorView:
    """A constant of one row, without dimensions in front."""
    assert tensor.data is not None
    shape = tensor.shape[-1:]
    return replace(tensor, shape=shape, constant=tensor.data.reshape(shape))


def as_rows(tensor: TensorView) -> TensorView:
    """A constant as rows."""
    assert tensor.data is not None
    shape = row_shape(tensor)
    return replace(tensor, shape=shape, constant=tensor.data.reshape(shape))


def _without_ones(tensor: TensorView) -> tuple[int, ...]:
    """The shape without sizes of 1 in front of its last two."""
    shape = tensor.shape
    while len(shape) > 2 and is_one(shape[0]):
        shape = shape[1:]
    return shape
