"""ONNX nodes that are added to a model, written as calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late

with late:  # what a model is can be told without it
    from onnx import helper, numpy_helper

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]
# A value: its name, or a constant.
Value = str | float | int | Array | np.generic
Size = int | str


class Nodes:
    """Nodes for the end or the beginning of a graph.

    Numbers in place of a value become constants: floats float32, integers int64.

    Args:
        prefix: of all names.
    """

    def __init__(self, prefix: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self._prefix, self._count = prefix, 0

    def op(self, kind: str, *inputs: Value | None, **attributes: Any) -> str:
        """The only output of a new node; None for an input that is left out."""
        return self.ops(kind, *inputs, outputs=1, **attributes)[0]

    def ops(self, kind: str, *inputs: Value | None, outputs: int, **attributes: Any) -> list[str]:
        """The outputs of a new node."""
        names = ["" if each is None else self._name_of(each) for each in inputs]
        made = [self._new(kind) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, made, name=made[0], **attributes))
        return made

    def add(self, a: Value, b: Value) -> str:
        """a + b."""
        return self.op("Add", a, b)

    def sub(self, a: Value, b: Value) -> str:
        """a - b."""
        return self.op("Sub", a, b)

    def mul(self, a: Value, b: Value) -> str:
        """a * b."""
        return self.op("Mul", a, b)

    def div(self, a: Value, b: Value) -> str:
        """a / b."""
        return self.op("Div", a, b)

    def cast(self, value: Value, dtype: npt.DTypeLike) -> str:
        """`value` in another type."""
        return self.op("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, value: Value, *shape: int) -> str:
        """`value` in another shape; -1 is what is left, 0 the same size."""
        return self.op("Reshape", value, np.array(shape, np.int64))

    def part(self, value: Value, start: int, end: int, axis: int = 0) -> str:
        """The elements from `start` to `end` along an axis."""
        ends = (np.array([number], np.int64) for number in (start, end, axis))
        return self.op("Slice", value, *ends)

    def pick(self, value: Value, *indices: int, axis: int = 0) -> str:
        """The elements at `indices` along an axis; of one index without that axis."""
        index: Any = np.array(indices if len(indices) > 1 else indices[0], np.int64)
        return self.op("Gather", value, index, axis=axis)

    def join(self, *values: Value, axis: int = 0) -> str:
        """The values one after the other."""
        return self.op("Concat", *values, axis=axis)

    def matrix(self, rows: Sequence[Sequence[Value]]) -> str:
        """Scalars as a matrix."""
        flat = [self.reshape(each, 1) for row in rows for each in row]
        return self.reshape(self.join(*flat), len(rows), len(rows[0]))

    def input(
        self, name: str, dtype: npt.DTypeLike, shape: Sequence[Size] | None, default: Any = None
    ) -> str:
        """A new input; one with a default need not be given.

        Args:
            shape: None for any.
        """
        self.inputs.append(described(name, dtype, shape))
        if default is not None:
            array = np.asarray(default, dtype).reshape([int(size) for size in shape or ()])
            self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def named(self, name: str, value: Value) -> str:
        """`value` under a name of its own."""
        self.nodes.append(helper.make_node("Identity", [self._name_of(value)], [name], name=name))
        return name

    def _name_of(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        array = np.asarray(value, _dtype(value))
        name = self._new("constant")
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}/{kind}_{self._count}"


def _dtype(value: Value) -> npt.DTypeLike:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype
    return np.int64 if isinstance(value, int) else np.float32


def described(name: str, dtype: npt.DTypeLike, shape: Sequence[Size] | None) -> onnx.ValueInfoProto:
    """An input or output as a graph declares it; without a shape it may have any."""
    return helper.make_tensor_value_info(
        name,
        helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
        None if shape is None else list(shape),
    )
