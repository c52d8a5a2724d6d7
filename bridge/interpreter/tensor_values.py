"""What a tensor can be set to, and how its value is given out, as ``tf.lite.Interpreter`` does.

A view of the interpreter's own memory is counted while somebody holds it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.schema import TensorError, TensorType
from tflite_ort.schema.file.element_types import (
    NUMPY_DTYPE,
    PACKED_BITS,
    named_types,
    shown_type,
    type_of,
)

with late:
    from tflite_ort.base import foreign_arrays
    from tflite_ort.schema.values import semantics

if TYPE_CHECKING:
    from tflite_ort.schema import Tensor

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_FLOAT8 = named_types("f8")
_PACKED_TYPES = frozenset(PACKED_BITS)
# Of these the dtype alone does not say whether a value fits.
_CHECKED = _PACKED_TYPES | {TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT}


def stored(value: npt.ArrayLike, tensor: Tensor, index: int, shape: Shape) -> Array:
    """`value` as what is kept for `tensor`, which has `shape` now.

    Raises:
        TensorError: the dtype or the shape is another.
    """
    if type(value) is np.ndarray and _fits(value, tensor, shape):
        return value
    try:
        array = native(np.asarray(foreign_arrays.host_array(value)))
    except ValueError as error:
        raise TensorError(f"Failed to convert value into readable tensor: {error}") from error
    _check_type(array.dtype, tensor, index)
    _check_shape(array, tensor, index, shape)
    if tensor.type is TensorType.STRING:
        return _strings(value)
    if tensor.type in _PACKED_TYPES:
        _check_range(array, tensor)
        return array.reshape(shape)
    return array.view(NUMPY_DTYPE[tensor.type])


def native(array: Array) -> Array:
    """The same values in the byte order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_plain(type: TensorType) -> bool:
    """Whether a value fits a tensor of this type if its dtype does, and is given out as it is."""
    return type not in _CHECKED and type not in _FLOAT8


def _fits(array: Array, tensor: Tensor, shape: Shape) -> bool:
    """Whether there is nothing to convert or to refuse, which is nearly always so."""
    same = array.dtype == NUMPY_DTYPE[tensor.type] and array.shape == shape
    return same and tensor.type not in _CHECKED


def given(array: Array, tensor: Tensor) -> Any:
    """A copy of what is kept for `tensor`; a numpy scalar of a tensor without dimensions."""
    copy = np.array(array, order="C")
    if tensor.type in _FLOAT8:
        copy = copy.view(shown_type(tensor.type))
    return copy if copy.ndim or tensor.type is TensorType.STRING else copy[()]


def _check_type(dtype: np.dtype[Any], tensor: Tensor, index: int) -> None:
    if tensor.type is TensorType.STRING:
        fits = dtype.kind in "SUO"
    elif tensor.type in _FLOAT8:
        fits = dtype in (np.int8, np.uint8, NUMPY_DTYPE[tensor.type])
    else:
        fits = dtype == NUMPY_DTYPE[tensor.type]
    if not fits:
        found = TensorType.STRING if dtype.kind in "SUO" else type_of(dtype)
        name = dtype.name if found is None else found.name
        raise TensorError(
            f"Cannot set tensor: Got value of type {name} but expected type {tensor.type.name} "
            f"for input {index}, name: {tensor.name}{_conversion(dtype, tensor)}"
        )


def _conversion(dtype: np.dtype[Any], tensor: Tensor) -> str:
    """How numbers of another type become those of `tensor`; empty where that is not plain."""
    found = tensor.quantization
    if dtype.kind not in "biuf" or NUMPY_DTYPE[tensor.type].kind not in "iuf":
        return ""
    if dtype.kind == "f" and found is not None and found.scale is not None:
        if found.scale.size > 1:
            return ""
        point = 0 if found.zero_point is None else int(found.zero_point[0])
        shift = f" {'-' if point < 0 else '+'} {abs(point)}" if point else ""
        return f"; a real number x is stored as round(x / {found.scale[0]:.9g}){shift}"
    return f"; convert it with astype(numpy.{NUMPY_DTYPE[tensor.type].name})"


def _check_shape(array: Array, tensor: Tensor, index: int, shape: Shape) -> None:
    if tensor.type in _PACKED_TYPES and array.size == np.prod(shape, dtype=int):
        return
    if array.shape == shape:
        return
    if array.ndim != len(shape):
        text = f"Got {array.ndim} but expected {len(shape)} for input {index}."
    else:
        pairs = enumerate(zip(array.shape, shape, strict=True))
        axis, (got, size) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        text = f"Got {got} but expected {size} for dimension {axis} of input {index}."
    whole = f"{tensor.name!r} takes {list(shape)}, the array has {list(array.shape)}"
    raise TensorError(
        f"Cannot set tensor: Dimension mismatch. {text} {whole}{_arrangement(array.shape, shape)}"
    )


def _arrangement(found: Shape, wanted: Shape) -> str:
    """How an array of another shape probably becomes one of the shape `wanted`; empty where there
    is no telling."""
    if (1, *found) == wanted:
        return "; array[None] adds the batch"
    if len(found) == len(wanted) > 2 and (found[0], *found[2:], found[1]) == wanted:
        return "; numpy.moveaxis(array, 1, -1) puts its channels last"
    if found[1:] == wanted[1:] and wanted[:1] == (1,):
        return f"; Interpreter(..., batch={found[0]}) takes a batch"
    return ""


def _check_range(array: Array, tensor: Tensor) -> None:
    lowest, highest = semantics.quantized_range(tensor.type)
    if array.size and (array.min() < lowest or array.max() > highest):
        raise TensorError(
            f"Cannot set tensor: Values for {tensor.type.name} input must be between {lowest} and "
            f"{highest}."
        )


def _strings(value: npt.ArrayLike) -> Array:
    """An array of text or bytes as one of bytes objects, text in UTF-8."""
    if not isinstance(value, np.ndarray):
        raise TensorError(
            f"Passed in value type is not a numpy array, got type {type(value).__name__}."
        )
    strings = np.empty(value.shape, np.object_)
    if value.ndim == 0 and value.dtype.kind == "S":
        strings[()] = value.tobytes()  # with the zeros at its end, as in LiteRT
        return strings
    each = strings.reshape(-1)
    for place, item in enumerate(np.asarray(value).reshape(-1)):
        if not isinstance(item, (str, bytes)):
            raise TensorError(f"Cannot set tensor: {item!r} is neither text nor bytes")
        each[place] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


class _Anchor:
    """What all views of one array have as their base: it lives as long as one of them does."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return dict(self._array.__array_interface__)


class LiveViews:
    """The views of an interpreter's arrays that were given out.

    Examples:
        >>> views, buffer = LiveViews(), np.zeros(3)
        >>> part = views.of(buffer)[1:]
        >>> bool(views)
        True
        >>> del part
        >>> bool(views)
        False

    Attributes:
        alive: not empty while one of them is held; to look here is faster than to ask the object.
    """

    __slots__ = ("alive",)

    def __init__(self) -> None:
        self.alive: set[weakref.ref[_Anchor]] = set()

    def of(self, array: Array) -> Array:
        """`array` under another name that is counted until it and its slices are gone."""
        anchor = _Anchor(array)
        self.alive.add(weakref.ref(anchor, self.alive.discard))
        return np.asarray(anchor).view(array.dtype)

    def __bool__(self) -> bool:
        return bool(self.alive)
