"""Lists that are tensors: [length, *element]. An element that was not set is zero.

Sizes of an element that nothing tells before the first is set are 0 until then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.maps import TensorMap, variant
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]


def _not_constant(op: View) -> None:
    """The state of what is made anew at each run: the first size of an element decides."""


@flex_kernel("TensorListReserve", "EmptyTensorList", state=_not_constant)
def created(op: View, inputs: Inputs, state: State) -> Outputs:
    """Zeros, as many as asked for."""
    _, number, *likes = inputs
    length = 0 if op.name == "FlexEmptyTensorList" else int(number.item())
    if length < 0:
        raise KernelError(f"a list of {length} elements")
    element = [_size(op, size, likes) for size in op.output.shape[1:]]
    return (_zeros((length, *element), op.output.dtype),)


def _size(op: View, size: int, likes: list[Array]) -> int:
    """A size of an element: that of a tensor that has it, else 0."""
    if is_known(size):
        return size
    views = op.present_inputs()[2:]
    for view, array in zip(views, likes, strict=True):
        for axis, other in enumerate(view.shape):
            if other is size:
                return int(array.shape[axis])
    return 0


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.full(shape, b"", dtype) if dtype.hasobject else np.zeros(shape, dtype)


def _fitting(whole: Array, element: tuple[int, ...]) -> Array:
    """A list that takes such elements."""
    if whole.shape[1:] == element:
        return whole
    open_ones = all(a in (0, b) for a, b in zip(whole.shape[1:], element, strict=False))
    if len(element) != whole.ndim - 1 or not open_ones:
        raise KernelError(f"an element of {element} in a list of {whole.shape[1:]}")
    return _zeros((len(whole), *element), whole.dtype)


@flex_kernel("TensorListSetItem")
def with_item(op: View, inputs: Inputs, state: State) -> Outputs:
    """The list with another element at one place."""
    whole, index, item = inputs
    place, whole = int(index.item()), _fitting(whole, item.shape)
    if place >= len(whole) and node_of(op)["resize_if_index_out_of_bounds"]:
        more = _zeros((place + 1 - len(whole), *item.shape), whole.dtype)
        whole = np.concatenate([whole, more])
    if not 0 <= place < len(whole):
        raise KernelError(f"element {place} of a list of {len(whole)}")
    result = whole.copy()
    result[place, ...] = item  # texts as such, not as arrays
    return (result,)


@flex_kernel("TensorListPushBack")
def pushed(op: View, inputs: Inputs, state: State) -> Outputs:
    """The list with one element more."""
    whole, item = inputs
    return (np.concatenate([_fitting(whole, item.shape), item[None]]),)


@flex_kernel("TensorListStack")
def stacked(op: View, inputs: Inputs, state: State) -> Outputs:
    """All elements."""
    whole, told = inputs[0], inputs[1].reshape(-1)
    count = node_of(op)["num_elements"]
    if count not in (-1, len(whole)):
        raise KernelError(f"a list of {len(whole)} elements, expected {count}")
    if inputs[1].ndim and len(told) == whole.ndim - 1 and 0 in whole.shape[1:]:
        element = tuple(b if b >= 0 else a for a, b in zip(whole.shape[1:], told, strict=True))
        return (_fitting(whole, tuple(map(int, element))).copy(),)
    return (whole.copy(),)


@flex_kernel("TensorListFromTensor")
def from_tensor(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor, whose rows are the elements."""
    return (inputs[0].copy(),)


@flex_kernel("TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList")
def scattered(op: View, inputs: Inputs, state: State) -> Outputs:
    """Rows of a tensor as elements at some places of a list, which is as long as they need."""
    into = op.name == "FlexTensorListScatterIntoExistingList"
    rows, places = inputs[1:3] if into else inputs[:2]
    if places.ndim != 1 or len(places) != len(rows[:]):
        raise KernelError(f"{places.shape} places of {rows.shape} elements")
    length = int(inputs[3].item()) if op.name == "FlexTensorListScatterV2" else -1
    whole = inputs[0] if into else _zeros((max(length, 0), *rows.shape[1:]), rows.dtype)
    if (places < 0).any() or (0 <= length <= places.max(initial=-1)):
        raise KernelError(f"elements {places.tolist()} of a list of {len(whole)}")
    whole = _fitting(whole, rows.shape[1:])
    more = max(int(places.max(initial=-1)) + 1 - len(whole), 0)
    result = np.concatenate([whole, _zeros((more, *whole.shape[1:]), whole.dtype)])
    result[places] = rows
    return (result,)


@flex_kernel("TensorListConcat", "TensorListConcatV2")
def joined(op: View, inputs: Inputs, state: State) -> Outputs:
    """The elements along their first dimension, and its sizes."""
    whole = inputs[0]
    if whole.ndim < 2:
        raise KernelError("elements that are scalars")
    lengths = np.full(len(whole), whole.shape[1], np.int64)
    return whole.reshape(whole.shape[0] * whole.shape[1], *whole.shape[2:]).copy(), lengths


@flex_kernel("TensorListSplit")
def split(op: View, inputs: Inputs, state: State) -> Outputs:
    """Parts of a tensor along its first dimension; they have to have one size here."""
    whole, lengths = inputs[0], inputs[2]
    if lengths.ndim != 1 or not whole.ndim or lengths.sum() != len(whole) or (lengths < 0).any():
        raise KernelError(f"parts of {lengths.tolist()} of a tensor of {whole.shape}")
    if len(set(lengths.tolist())) != 1:
        raise KernelError(f"a list of elements of sizes {lengths.tolist()}, which differ")
    return (whole.reshape(len(lengths), -1, *whole.shape[1:]).copy(),)


@flex_kernel("TensorListResize")
def resized(op: View, inputs: Inputs, state: State) -> Outputs:
    """The first elements, or zeros after all."""
    whole, size = inputs[0], int(inputs[1].item())
    if size < 0:
        raise KernelError(f"a list of {size} elements")
    more = _zeros((max(size - len(whole), 0), *whole.shape[1:]), whole.dtype)
    return (np.concatenate([whole[:size], more]),)


@flex_kernel("EmptyTensorMap", state=_not_constant)
def empty_map(op: View, inputs: Inputs, state: State) -> Outputs:
    """A map without entries; see `maps.py`."""
    return (variant(TensorMap({})),)


refuse_rest("lists")
