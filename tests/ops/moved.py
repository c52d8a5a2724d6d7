"""Tensors of every type that data movement is tried with."""

from __future__ import annotations

from tests.one_op import T
from tflite_ort.schema import TensorType

FLOAT32, INT32, INT64 = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64
BOOL, UINT8, INT8, INT16 = TensorType.BOOL, TensorType.UINT8, TensorType.INT8, TensorType.INT16

TYPES = (FLOAT32, INT32, INT64, BOOL, UINT8, INT8, INT16)

_ZERO_POINTS = {UINT8: 121, INT8: -7, INT16: 0}


def tensor(shape: tuple[int, ...], type: TensorType = FLOAT32) -> T:
    """A tensor to be computed or fed; the 8 and 16-bit types are quantised."""
    if type not in _ZERO_POINTS:
        return T(shape, type)
    return T(shape, type, scale=0.043, zero_point=_ZERO_POINTS[type])
