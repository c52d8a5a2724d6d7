"""What is known of the values of a graph: their element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tflite_ort.opmap.onnx_graph import ir

_D = ir.DataType
# Types whose elements take whole bytes.
_HELD = frozenset(_D) - {_D.STRING, _D.INT4, _D.UINT4}


class Typed(NamedTuple):
    """The element type of a value, and its shape as far as it is known."""

    dtype: ir.DataType
    shape: ir.Shape | None


def part_of_shape(shape: Sequence[Any], node: ir.Node) -> Sequence[Any]:
    """What the node Shape gives of the shape of its input."""
    first, end = (node.attributes.get(name) for name in ("start", "end"))
    return shape[first if isinstance(first, int) else None : end if isinstance(end, int) else None]


class Known:
    """Types and shapes by the `id` of a value; constants that are no inputs tell their own."""

    def __init__(self, types: Mapping[int, Typed]) -> None:
        self._types = dict(types)

    def type(self, value: ir.Value | None) -> ir.DataType | None:
        """The element type; None where it is not known."""
        if value is None or id(value) in self._types:
            return None if value is None else self._types[id(value)].dtype
        return value.dtype if value.const_value is None else value.const_value.dtype

    def shape(self, value: ir.Value | None) -> ir.Shape | None:
        """The shape, with names of sizes, and None for those that have none."""
        if value is None or id(value) in self._types:
            return None if value is None else self._types[id(value)].shape
        return value.shape if value.const_value is None else value.const_value.shape

    def sizes(self, value: ir.Value | None) -> list[int] | None:
        """The shape, where all of it is known."""
        shape = self.shape(value)
        known = [size for size in shape or () if isinstance(size, int)]
        return known if shape is not None and len(known) == len(shape) else None

    def nbytes(self, value: ir.Value) -> int | None:
        """How many bytes the elements take, where that is known."""
        if value.const_value is not None:
            return value.const_value.nbytes
        known, kind = self.sizes(value), self.type(value)
        if known is None or kind not in _HELD or kind is None:
            return None
        return math.prod(known) * kind.numpy().itemsize
