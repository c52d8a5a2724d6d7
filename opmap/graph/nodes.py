"""The list of ONNX nodes under construction: nodes are appended and named, some with bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.onnx_graph.opsets import OPSET, Inputs, spelled
from tflite_ort.schema import Untranslatable
from tflite_ort.schema.values.sizes import is_known

_LARGEST = float(np.finfo(np.float32).max)  # that an attribute can be
Build = Callable[[Sequence[ir.Value]], Sequence[ir.Value]]


class Nodes:
    """Nodes in execution order, and the initializers that they use."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self.constants = Constants()
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._label = "boundary"
        self._depth = 0  # how many bodies the nodes are in
        self.opset = OPSET

    def op(
        self, op_type: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any
    ) -> ir.Value:
        """Append a node with one output."""
        return self._append(op_type, inputs, 1, domain, attributes)[0]

    def op_multi(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        domain: str = "",
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """Append a node with several outputs. Attributes that are None are left out. So are None
        inputs at the end: some providers would look for them."""
        return self._append(op_type, inputs, outputs, domain, attributes)

    def _append(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        domain: str,
        attributes: Mapping[str, Any],
    ) -> Sequence[ir.Value]:
        count = len(inputs)
        while count and inputs[count - 1] is None:
            count -= 1
        name = self._unique(f"{self._label}/{op_type}")
        results = [ir.Value(self._unique(f"{name}_out{i or ''}")) for i in range(outputs)]
        given = {}
        for key, value in attributes.items():
            if value is None:
                continue
            given[key] = value
            if not is_known(*value) if isinstance(value, (list, tuple)) else not is_known(value):
                raise Untranslatable("a shape depends on data")
            if isinstance(value, float) and _LARGEST < abs(value) < np.inf:
                raise Untranslatable(f"{value} is beyond what an attribute can be")
        taken: Inputs = inputs[:count]
        if self.opset != OPSET and not domain:
            taken, given = spelled(self.opset, op_type, taken, given)
        node = ir.Node(op_type, taken, results, domain=domain, attributes=given, name=name)
        self.nodes.append(node)
        return node.outputs

    def larger(self, a: ir.Value, *others: ir.Value) -> ir.Value:
        """The largest of 64-bit integers, without Max: ONNX Runtime's is wrong beyond 32 bits."""
        for b in others:
            a = self.op("Where", self.op("Greater", a, b), a, b)
        return a

    def smaller(self, a: ir.Value, *others: ir.Value) -> ir.Value:
        """The smallest of 64-bit integers, without Min, as `larger`."""
        for b in others:
            a = self.op("Where", self.op("Less", a, b), a, b)
        return a

    def finite(self, value: ir.Value) -> ir.Value:
        """Floats clipped to the largest finite ones. TFLite's own kernels clip results even without
        a fused activation; XNNPACK does not."""
        largest = np.finfo(np.float32).max
        return self.op("Clip", value, self.constant(-largest), self.constant(largest))

    def body(self, arguments: Sequence[ir.DataType], build: Build) -> ir.Graph:
        """The body of a Scan, a Loop or an If: the nodes that `build` adds.

        Args:
            arguments: their types, one for each.
            build: takes the arguments and returns the results, which must be new values.
        """
        inputs = [
            ir.Value(self._unique(f"{self._label}/argument"), dtype=type) for type in arguments
        ]
        outer, self.nodes = self.nodes, []
        self._depth += 1
        try:
            results = build(inputs)
            return ir.Graph(inputs, results, self.nodes, name=f"{self._label}/body")
        finally:
            self.nodes = outer
            self._depth -= 1

    def constant(self, array: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> ir.Value:
        """An initializer; small equal ones are shared."""
        return self.constants.shared(np.asarray(array, dtype=dtype))

    def ints(self, numbers: npt.ArrayLike) -> ir.Value:
        """An int64 initializer, for sizes, axes and indices; small equal ones are shared."""
        return self.constant(numbers, np.int64)

    def cast(self, value: ir.Value, to: ir.DataType | np.dtype[Any]) -> ir.Value:
        """`value` in another type."""
        type_ = ir.DataType.from_numpy(to) if isinstance(to, np.dtype) else to
        return self.op("Cast", value, to=type_)

    def _unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self._names:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate
