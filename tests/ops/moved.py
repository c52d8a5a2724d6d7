"""Rows of one operator over every type. Operators that only move data have to be exact."""

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
    """A tensor without data. The types of 8 and 16 bits are quantised."""
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
    """One row for each type. `before` and `after` are constants around the tensors that move."""
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
