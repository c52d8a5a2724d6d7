"""In which form an ONNX graph has a TFLite tensor: its layout, and its codes or real numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import badness, difference, real_values
from tflite_ort.opmap.graph.forms import Layout
from tflite_ort.opmap.onnx_graph.writing.short_names import tensor_labels
from tflite_ort.schema import TensorView
from tflite_ort.schema.values.complex_pairs import paired
from tflite_ort.schema.values.view import Quantization

Array = npt.NDArray[Any]

# What this library's exports add to names, see `opmap.graph.forms.form_suffix`.
_SUFFIX = re.compile(r"(/nchw)?(/real)?(/file)?$")
# What tf2onnx adds: numbers of nodes that it puts in, and of a node's outputs.
_NUMBERS = re.compile(r"(__\d+)?(:\d+)?$")
_TOP_BIT = np.uint8(128)
# Other tools move transposes; of so many axes all orders are tried.
_PERMUTED = 5


@dataclass(frozen=True)
class ValueForm:
    """How a value of an ONNX graph stands for a tensor.

    Args:
        permutation: from the tensor's axes to the value's; None where the elements stand in the
            same order.
        shape: the value's; the tensor's shape permuted, or another one of as many elements.
        dtype: the value's.
        moved: it has codes as uint8 that the tensor has as int8.
        quantization: where the value has the real numbers that codes of the tensor stand for.
        complex_parts: it has pairs of reals.
        integers: the tensor's type, where the value has integers of another size.
    """

    permutation: tuple[int, ...] | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    moved: bool = False
    quantization: Quantization | None = None
    complex_parts: bool = False
    integers: np.dtype[Any] | None = None

    def to_tensor(self, value: Array, shape: tuple[int, ...]) -> Array:
        """`value` in the layout of its tensor, which has `shape`; real numbers stay real."""
        array = value
        if self.complex_parts:
            kind = np.complex64 if value.dtype == np.float32 else np.complex128
            array = np.ascontiguousarray(value).view(kind)[..., 0]
        if self.permutation is not None and array.ndim == len(self.permutation):
            array = np.transpose(array, np.argsort(self.permutation))
        elif array.size == np.prod(shape, dtype=int):
            array = array.reshape(shape)
        if self.integers is not None:
            narrow = array.astype(self.integers)
            return narrow if np.array_equal(narrow, array) else array
        return np.bitwise_xor(array, _TOP_BIT).view(np.int8) if self.moved else array

    def to_value(self, tensor: Array) -> Array:
        """A tensor's values as the ONNX graph takes them."""
        array = paired(tensor) if self.complex_parts else tensor
        if self.moved:
            array = np.bitwise_xor(np.ascontiguousarray(array).view(np.uint8), _TOP_BIT)
        if self.quantization is not None:
            array = real_values(array, self.quantization)
        if self.permutation is not None:
            array = np.transpose(array, self.permutation)
        elif array.size == np.prod(self.shape, dtype=int):
            array = array.reshape(self.shape)
        if array.dtype.kind in "OSU":
            return _texts(array)
        return np.asarray(array.astype(self.dtype), order="C")


class TensorNames:
    """Which tensors a value of an ONNX graph may stand for, by its name: the same name, one or a
    label as this library's exports have it, or one without the numbers that tf2onnx adds."""

    def __init__(self, tensors: Sequence[TensorView]) -> None:
        self._tensors = tensors
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._cut: dict[str, list[int]] = defaultdict(list)
        labels = tensor_labels(each.name for each in tensors)
        self._labels: dict[str, list[int]] = defaultdict(list)
        for each in tensors:
            if each.name:
                self._exact[each.name].append(each.index)
                self._labels[labels[each.name]].append(each.index)
                self._cut[_NUMBERS.sub("", each.name)].append(each.index)

    def of(self, name: str) -> list[int]:
        """Indices; none where nothing has the name."""
        plain = _SUFFIX.sub("", name)
        label, mark, index = plain.rpartition("#")
        if mark and index.isdecimal() and int(index) < len(self._tensors):
            tensor = self._tensors[int(index)]
            if (tensor.name or "tensor") == label or tensor.index in self._labels.get(label, ()):
                return [tensor.index]
        found = self._exact.get(name) or self._exact.get(plain) or self._labels.get(plain)
        return found or self._cut.get(_NUMBERS.sub("", name)) or []


def possible_forms(
    value: Array, name: str, tensor: TensorView, reference: Array
) -> Iterator[ValueForm]:
    """The forms in which `value` may stand for `tensor`, whose right value is `reference`."""
    shape, dtype = reference.shape, value.dtype
    kind = _domain(value, tensor, reference)
    if kind is None:
        return
    parts = reference.dtype.kind == "c" and value.dtype.kind == "f"
    found = value.shape[:-1] if parts else value.shape
    nchw, exact = "/nchw" in name[len(_SUFFIX.sub("", name)) :], False
    if found == shape and not nchw:
        exact = True
        yield ValueForm(None, value.shape, dtype, complex_parts=parts, **kind)
    permutation = Layout.FIRST.permutation(len(shape))
    if len(shape) > 2 and not parts and found == Layout.FIRST.shape(shape):
        exact = True
        yield ValueForm(permutation, value.shape, dtype, **kind)
    if not exact and value.size == reference.size and not parts:
        yield ValueForm(None, value.shape, dtype, **kind)
        for order in _orders(shape, found):
            yield ValueForm(order, value.shape, dtype, **kind)


def _orders(shape: tuple[int, ...], found: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The permutations of axes that make `found` of `shape`, of not too many axes."""
    if len(shape) <= _PERMUTED and sorted(shape) == sorted(found):
        for order in permutations(range(len(shape))):
            if tuple(shape[axis] for axis in order) == found:
                yield order


def best_form(value: Array, name: str, tensor: TensorView, reference: Array) -> ValueForm | None:
    """The form in which `value` is nearest to what it should be; None where there is none."""
    quantization = tensor.quantization if tensor.is_quantized else None
    best: tuple[tuple[bool, float], ValueForm] | None = None
    for form in possible_forms(value, name, tensor, reference):
        apart = difference(form.to_tensor(value, reference.shape), reference, quantization)
        if best is None or badness(apart) < best[0]:
            best = badness(apart), form
    return None if best is None else best[1]


def misfit_form(value: Array, name: str, tensor: TensorView, reference: Array) -> ValueForm | None:
    """The form that `value`, whose sizes are wrong, should have: the layout with more sizes right;
    None where rank or type are wrong too."""
    kind = _domain(value, tensor, reference)
    if kind is None or value.ndim != reference.ndim:
        return None
    permuted = Layout.FIRST.shape(reference.shape)
    fits = [sum(map(int.__eq__, value.shape, each)) for each in (reference.shape, permuted)]
    if value.ndim > 2 and ("/nchw" in name[len(_SUFFIX.sub("", name)) :] or fits[1] > fits[0]):
        return ValueForm(Layout.FIRST.permutation(value.ndim), permuted, value.dtype, **kind)
    return ValueForm(None, reference.shape, value.dtype, **kind)


def _domain(value: Array, tensor: TensorView, reference: Array) -> dict[str, Any] | None:
    """What of a form says how elements stand for elements; None where they cannot."""
    if value.dtype == reference.dtype:
        return {}
    if value.dtype.kind in "OSU" and reference.dtype.kind in "OSU":
        return {}
    if tensor.is_quantized and value.dtype.kind == "f":
        return {"quantization": tensor.quantization}
    if tensor.is_quantized and value.dtype == np.uint8 and reference.dtype == np.int8:
        return {"moved": True}
    if value.dtype.kind in "fV" and reference.dtype.kind in "fcV":
        return {}
    whole = value.dtype.kind in "iu" and reference.dtype.kind in "iu"
    return {"integers": reference.dtype} if whole else None


def declared_form(
    array: Array, sizes: Sequence[int], dtype: np.dtype[Any], tensor: TensorView
) -> ValueForm:
    """The form of an input that a file declares with these sizes (-1: any), to be fed `array`."""
    real = tensor.is_quantized and dtype.kind == "f"
    kind: dict[str, Any] = {"quantization": tensor.quantization if real else None}
    kind["moved"] = dtype == np.uint8 and array.dtype == np.int8
    kind["complex_parts"] = array.dtype.kind == "c" and dtype.kind == "f"
    if kind["complex_parts"]:
        return ValueForm(None, (*array.shape, 2), dtype, **kind)
    permuted = Layout.FIRST.shape(array.shape)
    if not _fits(array.shape, sizes) and array.ndim > 2 and _fits(permuted, sizes):
        permutation = Layout.FIRST.permutation(array.ndim)
        return ValueForm(permutation, permuted, dtype, **kind)
    known = all(size >= 0 for size in sizes) and np.prod(sizes, dtype=int) == array.size
    shape = array.shape if _fits(array.shape, sizes) or not known else tuple(sizes)
    return ValueForm(None, shape, dtype, **kind)


def _fits(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    pairs = zip(shape, sizes, strict=False)
    return len(shape) == len(sizes) and all(size in (-1, n) for n, size in pairs)


def _texts(array: Array) -> Array:
    """Strings as ONNX Runtime takes them: text."""
    words = [
        w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in array.reshape(-1)
    ]
    texts = np.empty(len(words), object)
    texts[:] = words
    return texts.reshape(array.shape)
