"""Memory for the inputs and outputs of a `CompiledModel`, as LiteRT 2 has it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import BridgeError, TensorType
from tflite_ort.schema.file.element_types import type_of

Array = npt.NDArray[Any]

# What any buffer is written and read as, its bytes taken as they are: the types of LiteRT's class.
_PLAIN = frozenset(
    {
        *(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16),
        *(TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2),
        *(TensorType.INT32, TensorType.INT8, TensorType.UINT8, TensorType.BOOL),
    }
)


class TensorBufferError(BridgeError, RuntimeError):
    """More elements are read or written than a buffer has."""


class TensorBuffer:
    """Elements in the memory of the host.

    A buffer that a model made is that model's own memory, so that a run copies nothing.

    Args:
        array: C-contiguous; read and written in place.
    """

    def __init__(self, array: Array) -> None:
        self._array: Array | None = array

    @classmethod
    def create_from_host_memory(cls, data_array: Array) -> TensorBuffer:
        """A buffer over an array, which is not copied.

        Raises:
            ValueError: it is no C-contiguous array, or of a type that no buffer has.
        """
        return cls(cls._normalize_numpy_array(data_array, zero_copy=True)[0])

    @property
    def array(self) -> Array:
        """The elements themselves, not copied.

        Raises:
            ValueError: the buffer is destroyed.
        """
        if self._array is None:
            raise ValueError("TensorBuffer has been destroyed")
        return self._array

    # LiteRT hands out the address of its own object under this name.
    capsule = array

    def write(self, data_array: Array) -> None:
        """Copy an array into the first bytes.

        As in LiteRT, elements of another type are not converted: their bytes are taken as they are.
        Types that LiteRT does not take, such as int64 and float64, are refused unless the buffer
        has the type itself.

        Raises:
            ValueError: it is no array, or of a type that is refused.
            RuntimeError: it has more bytes than the buffer.
        """
        data, _ = self._normalize_numpy_array(data_array, zero_copy=False)
        own = self.array
        if data.dtype == own.dtype and data.size == own.size:
            own[...] = data.reshape(own.shape)
            return
        self._check_taken(data.dtype)
        here = plain_bytes(own)
        if data.nbytes > here.size:
            raise TensorBufferError(
                "WriteTensorBuffer: source buffer is larger than the tensor buffer"
            )
        here[: data.nbytes] = plain_bytes(data)

    def read(self, num_elements: int, output_dtype: npt.DTypeLike) -> Array:
        """A copy of the first bytes as elements of a type, as `write` takes them.

        Raises:
            ValueError: the type is refused.
            RuntimeError: there are fewer.
        """
        _, dtype = self._normalize_dtype(output_dtype)
        own = self.array
        if dtype == own.dtype and num_elements == own.size:
            return own.flatten()
        self._check_taken(dtype)
        here, result = plain_bytes(own), np.empty(num_elements, dtype)
        if result.nbytes > here.size:
            raise TensorBufferError(
                "ReadTensorToBuffer: destination buffer is larger than the tensor buffer"
            )
        plain_bytes(result)[...] = here[: result.nbytes]
        return result

    def get_tensor_details(self) -> dict[str, Any]:
        """``dtype`` as text, and ``shape`` as a list."""
        return {"dtype": self.array.dtype.name, "shape": list(self.array.shape)}

    def destroy(self) -> None:
        """Let go of the memory; the buffer cannot be used any more."""
        self._array = None

    def _check_taken(self, dtype: np.dtype[Any]) -> None:
        own = self.array.dtype
        if not taken_as(own, dtype):
            raise ValueError(
                f"Unsupported dtype: {dtype}; the buffer has {own}: convert with astype('{own}')"
            )

    @classmethod
    def _normalize_dtype(cls, dtype: npt.DTypeLike) -> tuple[str, np.dtype[Any]]:
        """The name of a type, and the type. Tools of LiteRT read it of its own class."""
        try:
            found: np.dtype[Any] = np.dtype(dtype)
        except TypeError as error:
            raise ValueError(f"Unsupported dtype: {dtype}") from error
        name = _name_of(found)
        if name is None:
            raise ValueError(f"Unsupported dtype: {dtype}")
        return name, found

    @classmethod
    def _normalize_numpy_array(cls, data_array: Any, *, zero_copy: bool) -> tuple[Array, str]:
        """A contiguous array and the name of its type; also read by tools of LiteRT."""
        if not isinstance(data_array, np.ndarray):
            raise ValueError("data_array must be a NumPy array")
        name, _ = cls._normalize_dtype(data_array.dtype)
        if zero_copy and not data_array.flags.c_contiguous:
            raise ValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        return data_array if zero_copy else np.ascontiguousarray(data_array), name


@lru_cache(maxsize=64)
def _name_of(dtype: np.dtype[Any]) -> str | None:
    """The name of a type, which numpy puts together at each look; None for one that no buffer has:
    another byte order is another type."""
    return None if dtype.hasobject or type_of(dtype) is None else dtype.name


def taken_as(own: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether memory of elements of one type is taken as elements of another type: of those that
    LiteRT's class has not, only of its own."""
    return own == other or type_of(other) in _PLAIN


def plain_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of a C-contiguous array, in its memory."""
    return array.reshape(-1).view(np.uint8)
