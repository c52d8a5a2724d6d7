"""Nodes that give the shape of a value, or another shape to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tflite_ort.opmap.graph.forms import Domain, Form, Layout
from tflite_ort.opmap.graph.quantized_nodes import QuantizedNodes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.sizes import is_known, known_product, may_differ


class ShapedNodes(QuantizedNodes):
    """Nodes, with the forms of every tensor so far, in which its sizes are found.

    Args:
        weight_type: the type that carries 8-bit weights.
    """

    def __init__(self, weight_type: TensorType) -> None:
        super().__init__(weight_type)
        self._forms: dict[int, dict[Form, ir.Value]] = {}
        self._sized: Sequence[TensorView] = ()
        self._sizes: dict[int, ir.Value] = {}

    def shape(self, sizes: Sequence[int]) -> ir.Value:
        """`sizes` as int64 [n]: a constant, the shape of an input, or a Concat of `size` values."""
        if is_known(*sizes):
            return self.ints(sizes)
        for tensor in self._sized:
            whole = self._forms.get(tensor.index, {}).get((Layout.LAST, Domain.REAL))
            if whole is not None and not may_differ(tensor.shape, sizes):
                return self.op("Shape", whole)
        parts: list[ir.Value] = []
        for run in (list(run) for _, run in groupby(sizes, is_known)):
            parts += [self.ints(run)] if is_known(*run) else map(self.size, run)
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, size: int) -> ir.Value:
        """`size` as int64 [1]: a constant, or a dimension of an input of the operator.

        Raises:
            Untranslatable: no input has it as a dimension.
        """
        if is_known(size):
            return self.ints([size])
        for tensor in self._sized:
            axis = next((i for i, n in enumerate(tensor.shape) if n is size), None)
            if axis is not None:
                if id(size) not in self._sizes:
                    self._sizes[id(size)] = self._dimension(tensor, axis)
                return self._sizes[id(size)]
        raise Untranslatable("a shape depends on data")

    def _dimension(self, tensor: TensorView, axis: int) -> ir.Value:
        values = {layout: value for (layout, _), value in self._forms[tensor.index].items()}
        if values.keys() == {Layout.ROWS}:
            values = {Layout.LAST: self.reshape(values[Layout.ROWS], tensor.shape)}
        layout = next(layout for layout in values if layout is not Layout.ROWS)
        value, place = values[layout], layout.axis(axis, tensor.rank)
        return self.op("Shape", value, start=place, end=place + 1)

    def reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Reshape; sizes of 0 are allowed, and one unknown size is inferred."""
        value = ir.before_reshapes(value)  # of two in a row the second is enough
        if value.shape is not None and is_known(*shape) and tuple(value.shape) == tuple(shape):
            return value
        if not one_is_inferred(shape) and (not is_known(*shape) or 0 in shape):
            return self.op("Reshape", value, self.shape(shape), allowzero=1)
        target = [size if is_known(size) else -1 for size in shape]
        return self.op("Reshape", value, self.ints(target))


def one_is_inferred(shape: Sequence[int]) -> bool:
    """Whether `shape` has one unknown size, which Reshape infers from a -1."""
    return sum(not is_known(size) for size in shape) == 1 and known_product(shape) > 0
