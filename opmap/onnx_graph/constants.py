"""The initializers of the graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Untranslatable
from tflite_ort.schema.values import semantics

Array = npt.NDArray[Any]
_SHARED_ELEMENTS = 64
# Of the name of an initializer; what it stands for is seen where it is read.
_NAME_LENGTH = 48

# Large matrices in another order: numpy writes a transposed one element by element, each from a
# line of memory of its own.
_LARGE = 1 << 20  # bytes; below, what is read stays in the caches of the processor
_ROWS = 64  # of the source at a time, whose lines the caches hold
_WORD = 8  # bytes that are moved at once


def in_order(array: Array) -> Array:
    """`array` in C order; a large transposed matrix about ten times as fast as by numpy."""
    if array.ndim != 2 or array.flags.c_contiguous or not array.flags.f_contiguous:
        return np.asarray(array, order="C")
    count = _WORD // array.itemsize if array.dtype.kind in "iuf" else 0
    if array.nbytes < _LARGE or count < 2 or array.shape[0] % count:
        return np.asarray(array, order="C")
    return _transposed(array.T, count)


def _transposed(source: Array, count: int) -> Array:
    """The transpose of a matrix in C order.

    Some rows at a time: words of `count` elements are put in order, then the elements in them.
    """
    height, width = source.shape
    result = np.empty((width, height), source.dtype)
    lines = result.reshape(width // count, count, height)
    words = np.empty((width // count, _ROWS), np.uint64)  # once: fresh memory costs more than this
    for start in range(0, height, _ROWS):
        rows = source[start : start + _ROWS]
        part = words[:, : len(rows)]
        part[...] = rows.view(np.uint64).T
        elements = words.view(source.dtype).reshape(width // count, _ROWS, count)
        lines[:, :, start : start + _ROWS] = elements[:, : len(rows)].transpose(0, 2, 1)
    return result


class Constants:
    """Initializers by name; the arrays are not copied."""

    def __init__(self) -> None:
        self.values: list[ir.Value] = []
        self._shared: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._names: dict[str, int] = {}
        self._once: dict[str, ir.Value] = {}
        self._laid: dict[tuple[int, Hashable], tuple[object, ir.Value]] = {}
        self._parts: dict[tuple[int, Hashable], tuple[object, Array]] = {}

    def once(self, array: Array, name: str) -> ir.Value:
        """The initializer called `name`, which is added once and then shared."""
        if name not in self._once:
            self._once[name] = self.add(array, name)
        return self._once[name]

    def laid(
        self, source: object, layout: Hashable, make: Callable[[], Array], name: str
    ) -> ir.Value:
        """The initializer of a constant in a layout: one for all operators that read it so.

        Args:
            source: the constant; it is the same object for each of them.
            layout: what `make` does to it.
        """
        key = id(source), layout
        if key not in self._laid:  # the constant is held, so that no other takes its id
            self._laid[key] = source, self.add(make(), name)
        return self._laid[key][1]

    def part(self, source: object, places: Hashable, make: Callable[[], Array]) -> Array:
        """A part of a constant: the same array for all operators that read it, so that their
        initializer is one.

        Args:
            source: the constant; it is the same object for each of them.
            places: which part `make` gives.
        """
        key = id(source), places
        if key not in self._parts:
            self._parts[key] = source, make()
        return self._parts[key][1]

    def add(self, array: Array, name: str) -> ir.Value:
        """A new initializer called `name`, or `name` and a number if that is taken."""
        if array.dtype == np.object_:
            if not all(isinstance(word, (bytes, str)) for word in array.reshape(-1)):
                raise Untranslatable("numbers in place of text")
            words = [
                word if isinstance(word, bytes) else word.encode() for word in array.reshape(-1)
            ]
            array = np.array(words, np.object_).reshape(array.shape)
            return self._added(ir.Tensor(array), name)
        return self._added(ir.Tensor(in_order(array)), name)

    def packed(self, source: object, codes: Array, order: Sequence[int], name: str) -> ir.Value:
        """As `laid`, for 4-bit codes transposed to `order`: an INT4 of ONNX, with two codes in a
        byte."""
        key = id(source), ("packed", *order)
        if key not in self._laid:
            moved = in_order(np.transpose(codes, order))
            tensor = ir.Tensor(semantics.pack(moved, 4), ir.DataType.INT4, moved.shape)
            self._laid[key] = source, self._added(tensor, name)
        return self._laid[key][1]

    def _added(self, tensor: ir.Tensor, name: str) -> ir.Value:
        if len(name) > _NAME_LENGTH:
            name = _short(name)
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        unique = f"const/{name}" if count == 0 else f"const/{name}#{count}"
        value = ir.Value(unique, dtype=tensor.dtype, shape=tensor.shape, const_value=tensor)
        self.values.append(value)
        return value

    def shared(self, array: Array) -> ir.Value:
        """An initializer that equals `array`; small equal arrays share one."""
        if array.size > _SHARED_ELEMENTS or array.dtype == np.object_:
            return self.add(array, "value")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self.add(array, "value")
        return self._shared[key]


def _short(name: str) -> str:
    """The end of a long name: converters write whole paths, and an initializer is named often."""
    return name.rpartition("/")[2][-_NAME_LENGTH:]
