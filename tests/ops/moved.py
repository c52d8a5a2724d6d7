"""Rows of one operator over every type: what only moves data has to be exact with all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.one_op import Case, T
from tflite_ort.schema import Op, TensorType

Shape = tuple[int, ...]

FLOAT32, INT32, INT64 = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64
BOOL, UINT8, INT8, INT16 = TensorType.BOOL, TensorType.UINT8, TensorType.INT8, TensorType.INT16

TYPES = (FLOAT32, INT32, INT64, BOOL, UINT8, INT8, INT16)

_ZERO_POINTS = {UINT8: 121, INT8: -7, INT16: 0}


def tensor(shape: tuple[int, ...], type: TensorType = FLOAT32) -> T:
    """A tensor to be computed or fed; the 8 and 16-bit types are quantised."""
    if type not in _ZERO_POINTS:
        return T(shape, type)
    return T(shape, type, scale=0.043, zero_point=_ZERO_POINTS[type])


def ints(*values: Any, dtype: Any = np.int32) -> T:
    return T.constant(np.array(values, dtype))


def moves(
    name: str,
    op: Op,
    shapes: Sequence[Shape],
    results: Sequence[Shape],
    options: Any = None,
    *,
    before: Sequence[T] = (),
    after: Sequence[T] = (),
    types: Sequence[TensorType] = TYPES,
    version: int = 1,
) -> list[Case]:
    """One row per type; constants stand before or after the tensors that are moved."""
    return [
        Case(
            f"{name}-{type.name}",
            op,
            [*before, *(tensor(shape, type) for shape in shapes), *after],
            [tensor(shape, type) for shape in results],
            options,
            version=version,
            quanta=0,
            rtol=0,
        )
        for type in types
    ]
