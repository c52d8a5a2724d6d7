"""What an exported file has no nodes for: TensorFlow's prints and assertions, and what makes their
texts."""

from __future__ import annotations

from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.schema import OperatorView, Specialized

# They have no results; see `opmap/flex/checks.py`.
_WITHOUT_RESULT = frozenset({"FlexAssert", "FlexPrintV2"})


def without_prints(graph: Specialized) -> Specialized:
    """A subgraph and those that it calls without prints, assertions, and what only they read."""
    operators = [_within(op) for op in graph.operators]
    idle = {op.index for op in operators if op.name in _WITHOUT_RESULT}
    if idle:
        wanted = set(graph.outputs)
        read = {t.index for op in operators if op.index in idle for t in op.present_inputs()}
        for op in reversed(operators):
            made = {out.index for out in op.outputs}
            only_read = bool(made) and made <= read and made.isdisjoint(wanted)
            if only_read and not op.bodies and not op.variables():
                idle.add(op.index)
                read.update(tensor.index for tensor in op.present_inputs())
            elif op.index not in idle:
                wanted.update(tensor.index for tensor in op.present_inputs())
    elif all(one is other for one, other in zip(operators, graph.operators, strict=True)):
        return graph
    return replace(graph, operators=[op for op in operators if op.index not in idle])


def _within(op: OperatorView[Any]) -> OperatorView[Any]:
    bodies = tuple(map(without_prints, op.bodies))
    same = all(one is other for one, other in zip(bodies, op.bodies, strict=True))
    return op if same else replace(op, bodies=bodies)
