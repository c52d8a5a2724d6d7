"""Shape rules of the reductions."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, reduced, rule, same_shape
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import is_known, quotient, unknown_shape
from tflite_ort.schema.values.view import OperatorView

rule(Op.CUMSUM)(same_shape)

Windows = list[tuple[int, int, int, int]]


@rule(
    Op.MEAN,
    Op.SUM,
    Op.REDUCE_PROD,
    Op.REDUCE_MAX,
    Op.REDUCE_MIN,
    Op.REDUCE_ANY,
    Op.REDUCE_ALL,
)
def reduce(op: OperatorView[Any]) -> Shapes | None:
    """Computed axes are taken to be different ones; the sizes of the rest are not known."""
    shape, listed = op["input"].shape, op["axes"].data
    if listed is None and op.options.keep_dims:
        return (unknown_shape(len(shape)),)
    if listed is None:
        count = quotient(op["axes"].shape)
        return (unknown_shape(max(len(shape) - count, 0)),) if is_known(count) else None
    return reduced(shape, normalized_axes(listed, len(shape)), op.options.keep_dims)


@rule(Op.ARG_MAX, Op.ARG_MIN)
def arg_extremum(op: OperatorView[Any]) -> Shapes | None:
    """The input's shape without the axis."""
    shape, where = op["input"].shape, op["axis"].data
    if where is None:
        return (unknown_shape(len(shape) - 1),)
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    return (shape[:axis] + shape[axis + 1 :],)


def reduced_windows(shape: Shape, window: Shape, strides: Shape, dilations: Shape) -> Windows:
    """(count, window, stride, dilation) of each axis of REDUCE_WINDOW; no window beyond the end."""
    if not len(shape) == len(window) == len(strides) == len(dilations):
        raise ModelError(f"window {window}, strides {strides}, dilations {dilations} of {shape}")
    if min((1, *window, *strides, *dilations)) < 1:
        raise ModelError(f"window {window}, strides {strides}, dilations {dilations}: below 1")
    rows = zip(shape, window, strides, dilations, strict=True)
    return [(_windows(*row), *row[1:]) for row in rows]


def _windows(size: int, kernel: int, stride: int, dilation: int) -> int:
    """How many windows there are along an axis, which may be open if each element is one."""
    if kernel == stride == 1:
        return size
    return max(0, (size - (kernel - 1) * dilation - 1) // stride + 1)


@rule(Op.REDUCE_WINDOW)
def reduce_window(op: OperatorView[Any]) -> Shapes | None:
    """How many windows there are along each axis."""
    listed = [op[name].data for name in ("window", "strides", "dilations")]
    if any(array is not None and array.ndim != 1 for array in listed):
        raise ModelError("window, strides and dilations have to be lists")
    values = [tuple(array.tolist()) for array in listed if array is not None]
    if len(values) < len(listed):
        raise ModelError("window, strides and dilations have to be constants")
    window, strides, dilations = values
    rows = reduced_windows(op["input"].shape, window, strides, dilations)
    return (tuple(count for count, *_ in rows),)
