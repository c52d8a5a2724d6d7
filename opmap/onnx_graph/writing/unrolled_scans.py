"""Scans step by step, for runtimes that have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# A Scan of more nodes in all its steps stays.
MOST_NODES = 4096


def unroll_scans(graph: ir.Graph, known: Known) -> None:
    """Write the steps of each Scan of a known length, unless they are very many.

    Args:
        known: of the values of the graph.
    """
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        steps = _steps(node, known)
        if steps is None:
            nodes.append(node)
        else:
            nodes += _Unrolled(graph, node, steps, names).nodes
    graph.nodes = ir.leading_to(graph.outputs, nodes)
    graph.drop_unread()


def _steps(node: ir.Node, known: Known) -> int | None:
    """How many steps a Scan has; None where that is not known, or it is to stay."""
    if node.op_type != "Scan" or node.domain:
        return None
    (body,), count = node.bodies, _number(node, "num_scan_inputs")
    axes = (node.attributes.get(f"scan_{side}_axes") for side in ("input", "output"))
    shape = known.shape(node.inputs[-1])
    steps = shape[0] if shape else None
    if any(isinstance(each, Sequence) and any(each) for each in axes) or not count:
        return None
    if not isinstance(steps, int) or not 0 < steps * len(body.nodes) <= MOST_NODES:
        return None
    return None if any(inner.bodies for inner in body.nodes) else steps


def _number(node: ir.Node, name: str) -> int:
    number = node.attributes.get(name, 0)
    return number if isinstance(number, int) else 0


class _Unrolled:
    """The nodes of one Scan.

    Attributes:
        nodes: in their order.
    """

    def __init__(self, graph: ir.Graph, node: ir.Node, steps: int, names: Names) -> None:
        self._added = AddedNodes(graph, node.name or node.op_type, names)
        self.nodes, (self._body,) = self._added.nodes, node.bodies
        # By value of the body that is a constant, what stands for it in all steps.
        self._lasting = {
            id(value): self._added.constant(value.const_value.array, name)
            for name, value in self._body.initializers.items()
            if value.const_value is not None
        }
        count = len(node.inputs) - _number(node, "num_scan_inputs")
        states, sequences = list(node.inputs[:count]), node.inputs[count:]
        backward = _directions(node, "input", len(sequences))
        rows = list[Sequence[ir.Value | None]]()
        for step in range(steps):
            places = [steps - 1 - step if back else step for back in backward]
            slices = [
                self._added.op("Gather", each, self._number(place), axis=0)
                for each, place in zip(sequences, places, strict=True)
            ]
            made = self._step([*states, *slices])
            states, results = made[:count], made[count:]
            rows.append(results)
        for state, output in zip(states, node.outputs[:count], strict=True):
            self._added.emit("Identity", [state], [output])
        ends = node.outputs[count:]
        for place, back in enumerate(_directions(node, "output", len(ends))):
            column = [row[place] for row in (reversed(rows) if back else rows)]
            first = self._added.ints([0], "axis")
            stacked = [self._added.op("Unsqueeze", each, first) for each in column]
            self._added.emit("Concat", stacked, [ends[place]], axis=0)

    def _step(self, given: Sequence[ir.Value | None]) -> list[ir.Value | None]:
        """What the body gives of these states and slices."""
        known = dict[int, ir.Value | None](self._lasting)
        known.update(zip(map(id, self._body.inputs), given, strict=True))
        for inner in self._body.nodes:
            inputs = [known.get(id(value), value) for value in inner.inputs]
            outputs = [self._added.value(f"{inner.op_type}_out") for _ in inner.outputs]
            known.update(zip(map(id, inner.outputs), outputs, strict=True))
            self._added.emit(inner.op_type, inputs, outputs, inner.domain, **inner.attributes)
        return [known.get(id(value), value) for value in self._body.outputs]

    def _number(self, number: int) -> ir.Value:
        return self._added.constant(np.array(number, np.int64), "step")


def _directions(node: ir.Node, side: str, count: int) -> list[bool]:
    """Which of the sequences of a side go from the last step to the first."""
    told = node.attributes.get(f"scan_{side}_directions")
    return [bool(each) for each in told] if isinstance(told, Sequence) else [False] * count
