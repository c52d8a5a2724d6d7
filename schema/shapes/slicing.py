"""Shape rules of the operators that cut regions or pick elements."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    listed,
    rule,
    shapes_of_one_type,
)
from tflite_ort.schema.values.semantics import strided_slice
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.slices import sliced_shape
from tflite_ort.schema.values.view import OperatorView


def slice_sizes(shape: Shape, begin: Shape, size: Shape) -> Shape:
    """SLICE's `size` with each -1 replaced by what is left after `begin`."""
    if not len(shape) == len(begin) == len(size):
        raise ModelError(f"begin {begin} and size {size} do not index shape {shape}")
    sizes = tuple(map(_rest, shape, begin, size))
    for row in zip(shape, begin, sizes, strict=True):
        beyond = is_known(*row) and row[1] + row[2] > row[0]
        if beyond or any(is_known(bound) and bound < 0 for bound in row):
            raise ModelError(f"begin {begin} with size {size} leaves shape {shape}")
    return sizes


def _rest(dim: int, first: int, length: int) -> int:
    """`length`, or what is left of `dim` after `first` where it is -1."""
    if not is_known(length) or length != -1:
        return length
    if is_known(dim, first):
        return dim - first
    return dim if is_known(first) and first == 0 else unknown_size()


@rule(Op.SLICE)
def slice_(op: OperatorView[Any]) -> Shapes | None:
    """The sizes of the slice; -1 takes the rest."""
    shape, places = op["input"].shape, [op[name] for name in ("begin", "size")]
    if any(differ(place.shape, (len(shape),)) for place in places):
        begin, size = (place.shape for place in places)
        raise ModelError(f"begin of shape {begin} and size of shape {size} for shape {shape}")
    return (slice_sizes(shape, *(listed(place) or unknown_shape(len(shape)) for place in places)),)


@rule(Op.STRIDED_SLICE)
def strided_slice_(op: OperatorView[Any]) -> Shapes | None:
    """The sizes of the slice that bounds, strides and masks say."""
    shape, places = op["input"].shape, [op[name] for name in ("begin", "end", "strides")]
    bounds = [listed(place) for place in places]
    if len({len(bound) for bound in bounds if bound is not None}) > 1:
        raise ModelError("begin, end and strides {}, {} and {}: not as many".format(*bounds))
    begin, end, strides = (bound or () for bound in bounds)
    if all(place.is_constant for place in places) and is_known(*shape):
        return (strided_slice(shape, begin, end, strides, op.options).shape,)
    if any(bound is None for bound in bounds):
        return None
    return (sliced_shape(shape, begin, end, strides, op.options),)


def check_update(shape: Shape, update: Shape, start: Shape) -> None:
    """An update has the rank of what it goes into, and no dimension is larger."""
    if differ(start, (len(shape),)) or len(update) != len(shape):
        raise ModelError(f"start of shape {start} and update {update} for shape {shape}")
    pairs = zip(update, shape, strict=True)
    if any(is_known(part, size) and part > size for part, size in pairs):
        raise ModelError(f"update {update} is larger than {shape}")


@rule(Op.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(op: OperatorView[Any]) -> Shapes | None:
    """The operand's shape."""
    shape = op["operand"].shape
    shapes_of_one_type([op["operand"], op["update"]])
    check_update(shape, op["update"].shape, op["start"].shape)
    return (shape,)
