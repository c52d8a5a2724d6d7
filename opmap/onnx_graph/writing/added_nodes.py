"""Nodes that stand for another one in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

Array = npt.NDArray[Any]


class AddedNodes:
    """Nodes that stand for one, named after it.

    Args:
        label: what all names begin with.

    Attributes:
        nodes: in their order.
    """

    def __init__(self, graph: ir.Graph, label: str, names: Names) -> None:
        self.nodes = list[ir.Node]()
        self._graph, self._label, self._names = graph, label, names
        self._constants = dict[tuple[str, bytes], ir.Value]()

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """The output of a new node."""
        made = ir.Value(self._names.free(f"{self._label}/{op_type}_out"))
        self.emit(op_type, inputs, [made], **attributes)
        return made

    def emit(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[ir.Value],
        domain: str = "",
        **attributes: Any,
    ) -> None:
        """A new node that makes these values."""
        name = self._names.free(f"{self._label}/{op_type}")
        made = ir.Node(op_type, inputs, outputs, domain=domain, attributes=attributes, name=name)
        self.nodes.append(made)

    def value(self, what: str) -> ir.Value:
        """One that no node makes yet."""
        return ir.Value(self._names.free(f"{self._label}/{what}"))

    def constant(self, array: Array, what: str) -> ir.Value:
        """An initializer; equal ones are one."""
        key = f"{array.dtype}{array.shape}", array.tobytes()
        if key not in self._constants:
            name = self._names.free(f"{self._label}/{what}")
            self._constants[key] = self._graph.add_initializer(name, array)
        return self._constants[key]

    def ints(self, numbers: Sequence[int], what: str) -> ir.Value:
        """A list of 64-bit integers."""
        return self.constant(np.array(numbers, np.int64), what)
