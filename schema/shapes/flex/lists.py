"""Shape rules of lists that are tensors: [length, *element]."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule, listed
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import common, differ, is_known, multiple, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def _element(op: View) -> Shape | None:
    """The shape of an element that `op` is told; None where not even its rank is."""
    sizes = listed(op["element_shape"]) if op["element_shape"].rank else None
    if sizes is None:
        return None
    return tuple(unknown_size() if is_known(n) and n < 0 else n for n in sizes)


def _created(op: View, length: int) -> Shapes:
    element = _element(op)
    if element is None:
        element = tuple(unknown_size() for _ in range(op.output.rank - 1))
    return ((length, *element),)


@flex_rule("TensorListReserve")
def reserved(op: View) -> Shapes:
    """As many elements as asked for."""
    (length, *_) = listed(op["num_elements"]) or (unknown_size(),)
    return _created(op, length)


@flex_rule("EmptyTensorList")
def empty(op: View) -> Shapes:
    """No elements."""
    return _created(op, 0)


def _with_element(op: View, one: Shape, other: Shape) -> Shape:
    """The sizes of an element that two shapes of it have together, unknown ones of `one`."""
    if len(one) != len(other) or differ(one, other):
        raise ModelError(f"{op.label}: an element of {other} in a list of {one}")
    return tuple(common(a, b) for a, b in zip(one, other, strict=True))


@flex_rule("TensorListSetItem")
def with_item(op: View) -> Shapes:
    """As before; the item tells what is not known of an element."""
    whole = op["input_handle"].shape
    if node_of(op)["resize_if_index_out_of_bounds"]:
        whole = (unknown_size(), *whole[1:])
    return ((whole[0], *_with_element(op, op["item"].shape, whole[1:])),)


@flex_rule("TensorListPushBack")
def pushed(op: View) -> Shapes:
    """One element more."""
    whole = op["input_handle"].shape
    length = whole[0] + 1 if is_known(whole[0]) else unknown_size()
    return ((length, *_with_element(op, op["tensor"].shape, whole[1:])),)


@flex_rule("TensorListStack")
def stacked(op: View) -> Shapes:
    """The list itself."""
    whole, told = op["input_handle"].shape, _element(op)
    count = node_of(op)["num_elements"]
    length = count if count >= 0 and not is_known(whole[0]) else whole[0]
    if told is None:
        return ((length, *whole[1:]),)
    return ((length, *_with_element(op, whole[1:], told)),)


@flex_rule("TensorListFromTensor")
def from_tensor(op: View) -> Shapes:
    """The tensor itself."""
    return (op["tensor"].shape,)


def _scattered(op: View, least: int, element: Shape) -> Shapes:
    """As many elements as the indices ask for, and `least` of them."""
    places = op["indices"].data
    if places is None or not is_known(least):
        return ((unknown_size(), *element),)
    return ((max([least, *(int(place) + 1 for place in places)]), *element),)


@flex_rule("TensorListScatter", "TensorListScatterV2")
def scattered(op: View) -> Shapes:
    """As many elements as asked for, or as the indices tell."""
    counts = listed(op["num_elements"]) if op.name == "FlexTensorListScatterV2" else (-1,)
    (count,) = counts or (unknown_size(),)
    element = op["tensor"].shape[1:]
    if not is_known(count) or count >= 0:
        return ((count, *element),)
    return _scattered(op, 0, element)


@flex_rule("TensorListScatterIntoExistingList")
def scattered_into(op: View) -> Shapes:
    """As many elements as before, and as the indices tell."""
    whole = op["input_handle"].shape
    element = _with_element(op, op["tensor"].shape[1:], whole[1:])
    return _scattered(op, whole[0], element)


@flex_rule("TensorListConcat", "TensorListConcatV2")
def joined(op: View) -> Shapes:
    """All elements along the first dimension, and their first sizes."""
    length, *element = op["input_handle"].shape
    if not element:
        raise ModelError(f"{op.label}: elements that are scalars")
    whole = unknown_size()
    if is_known(length) and (is_known(element[0]) or length > 0):
        whole = multiple(element[0], length)
    return (whole, *element[1:]), (length,)


@flex_rule("TensorListSplit")
def split(op: View) -> Shapes:
    """One element for each length."""
    (count,), sizes = op["lengths"].shape, listed(op["lengths"])
    known = sizes is not None and len(sizes) > 0 and is_known(*sizes) and len(set(sizes)) == 1
    first = sizes[0] if known and sizes is not None else unknown_size()
    return ((count, first, *op["tensor"].shape[1:]),)


@flex_rule("EmptyTensorMap")
def empty_map(op: View) -> Shapes:
    """A map is a scalar."""
    return ((),)


@flex_rule("TensorListResize")
def resized(op: View) -> Shapes:
    """Another number of elements."""
    (length, *_) = listed(op["size"]) or (unknown_size(),)
    return ((length, *op["input_handle"].shape[1:]),)
