"""Maps from tensors to tensors, as a variant holds one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema import KernelError

Array = npt.NDArray[Any]
Key = tuple[str, tuple[int, ...], bytes]


@record(eq=False)
class TensorMap:
    """A map.

    Args:
        entries: the key and the value, by what tells the key from others.
    """

    entries: Mapping[Key, tuple[Array, Array]]


def variant(value: Any) -> Array:
    """A tensor that holds a map, or what else is one value."""
    made = np.empty((), np.object_)
    made[()] = value
    return made


def map_of(tensor: Array) -> TensorMap:
    """The map that a tensor holds.

    Raises:
        KernelError: it holds something else.
    """
    value: Any = tensor[()] if not tensor.ndim else None
    if not isinstance(value, TensorMap):
        raise KernelError("a variant that is no map")
    return value


def key_of(array: Array) -> Key:
    """What tells a key from others: its type, its shape and its elements."""
    if array.dtype.hasobject:
        texts = [bytes(text) for text in array.reshape(-1)]
        content = b"".join(len(text).to_bytes(8, "little") + text for text in texts)
    else:
        content = np.ascontiguousarray(array).tobytes()
    return array.dtype.str, array.shape, content
