"""Complex tensors in the graph: pairs of reals along a last dimension of 2, as DFT has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.values.view import TensorView

Array = npt.NDArray[Any]
_PARTS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
_COMPLEX = frozenset({TensorType.COMPLEX64, TensorType.COMPLEX128})


def is_complex(tensor: TensorView) -> bool:
    """Whether `tensor` has complex elements, which stand in the graph as pairs of reals."""
    return tensor.type in _COMPLEX


def part_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the graph for `dtype`: for complex numbers, that of their two parts."""
    return _PARTS.get(dtype, dtype)


def paired_shape(tensor: TensorView, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The shape in the graph of `tensor`, whose own shape is `shape`."""
    return (*shape, 2) if is_complex(tensor) else tuple(shape)


def paired(array: Array) -> Array:
    """`array` as the graph holds it: complex numbers as pairs of reals."""
    if array.dtype.kind != "c":
        return array
    return np.ascontiguousarray(array).view(_PARTS[array.dtype]).reshape(*array.shape, 2)
