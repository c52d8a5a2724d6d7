"""Operators whose subgraph says which function of two numbers they use, and where numbers go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import ReduceWindowFunction
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.stablehlo_options import (
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
)
from tflite_ort.schema.values.view import OperatorView, Shape

Indices = npt.NDArray[np.int64]

FUNCTIONS = {
    Op.ADD: ReduceWindowFunction.ADD,
    Op.MUL: ReduceWindowFunction.MUL,
    Op.MAXIMUM: ReduceWindowFunction.MAXIMUM,
    Op.MINIMUM: ReduceWindowFunction.MINIMUM,
    Op.LOGICAL_AND: ReduceWindowFunction.ALL,
    Op.LOGICAL_OR: ReduceWindowFunction.ANY,
    Op.STABLEHLO_ADD: ReduceWindowFunction.ADD,
    Op.STABLEHLO_MULTIPLY: ReduceWindowFunction.MUL,
    Op.STABLEHLO_MAXIMUM: ReduceWindowFunction.MAXIMUM,
    Op.STABLEHLO_MINIMUM: ReduceWindowFunction.MINIMUM,
    Op.STABLEHLO_AND: ReduceWindowFunction.ALL,
    Op.STABLEHLO_OR: ReduceWindowFunction.ANY,
}
_SCATTERED = frozenset(
    {
        *(Op.STABLEHLO_ADD, Op.STABLEHLO_MULTIPLY),
        *(Op.STABLEHLO_MAXIMUM, Op.STABLEHLO_MINIMUM),
    }
)


def _operators(op: OperatorView[Any]) -> list[Op]:
    (body,) = op.bodies
    return [inner.op for inner in (*body.operators, *body.folded)]


def window_function(op: OperatorView[StablehloReduceWindowOptions]) -> ReduceWindowFunction:
    """What STABLEHLO_REDUCE_WINDOW does with two numbers: its body's one operator."""
    inside = _operators(op)
    if len(inside) != 1 or inside[0] not in FUNCTIONS:
        names = [each.name for each in inside]
        raise ModelError(f"{op.label}: a window is not reduced by {names}, expected one function")
    return FUNCTIONS[inside[0]]


def scatter_function(op: OperatorView[StablehloScatterOptions]) -> Op | None:
    """What STABLEHLO_SCATTER does with the old and the new number; None: it takes the new one."""
    inside = _operators(op)
    if not inside:
        return None
    if len(inside) != 1 or inside[0] not in _SCATTERED:
        names = [each.name for each in inside]
        raise ModelError(f"{op.label}: numbers are not scattered by {names}")
    return inside[0]


# By axis: before, after and between its elements.
Edges = Sequence[tuple[int, int, int]]


@record
class WindowAttributes:
    """Attributes of STABLEHLO_REDUCE_WINDOW per axis; those that the file leaves out do nothing."""

    window: Shape
    strides: Shape
    dilations: Shape
    interior: Shape
    padding: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, options: StablehloReduceWindowOptions, rank: int) -> WindowAttributes:
        """What `options` say of an input of `rank`: ones and zeros where they are silent.

        Raises:
            ModelError: a list has another length, or a dilation is below 1.
        """
        ones = (1,) * rank
        spread, edges = options.base_dilations or ones, options.padding or (0,) * 2 * rank
        if len(spread) != rank or min(spread, default=1) < 1 or len(edges) != 2 * rank:
            raise ModelError(f"base dilations {spread} and padding {edges} of rank {rank}")
        return cls(
            options.window_dimensions or ones,
            options.window_strides or ones,
            options.window_dilations or ones,
            tuple(step - 1 for step in spread),
            tuple(zip(edges[::2], edges[1::2], strict=True)),
        )

    def padded(self, shape: Shape) -> Shape:
        """The shape that the windows go over."""
        return padded_sizes(shape, self.edges)

    @property
    def edges(self) -> Edges:
        """What goes before, after and between the elements."""
        return [(low, high, n) for (low, high), n in zip(self.padding, self.interior, strict=True)]


def padded_sizes(shape: Shape, edges: Edges) -> Shape:
    """`shape` with so many elements more before, after and between the others of each axis; one
    without any may be open."""
    rows = zip(shape, edges, strict=True)
    return tuple(
        n + (n - 1) * each + low + high if any((low, high, each)) else n
        for n, (low, high, each) in rows
    )


def scatter_places(
    indices: Indices, updates: Shape, operand: Shape, options: StablehloScatterOptions
) -> Indices:
    """[rank of the operand, *updates]: where each of the updates goes; it may be outside."""
    vector, windows = options.index_vector_dim, options.update_window_dims or ()
    inserted = options.inserted_window_dims or ()
    mapped = options.scatter_dims_to_operand_dims or ()
    if vector == indices.ndim:
        indices = indices[..., np.newaxis]
    starts = np.moveaxis(indices, vector, 0)
    axes = [axis for axis in range(len(updates)) if axis not in windows]
    kept = [axis for axis in range(len(operand)) if axis not in inserted]
    expected = (len(mapped), *(updates[axis] for axis in axes))
    once = len({*mapped}) == len(mapped)
    if starts.shape != expected or len(kept) != len(windows) or not once:
        raise ModelError(
            f"indices of shape {indices.shape} do not place updates {updates} in {operand}"
        )
    places = np.zeros((len(operand), *updates), np.int64)
    spread = [size if axis in axes else 1 for axis, size in enumerate(updates)]
    for axis, start in zip(mapped, starts, strict=True):
        places[axis] += start.reshape(spread)
    for axis, window in zip(kept, windows, strict=True):
        along = [-1 if i == window else 1 for i in range(len(updates))]
        places[axis] += np.arange(updates[window]).reshape(along)
    return places
