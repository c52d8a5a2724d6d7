"""Where each operator of a plan runs and why, found as the plan is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tflite_ort.base.records import record, replace
from tflite_ort.plan.partition import NUMPY, Partition
from tflite_ort.plan.placements import Placement
from tflite_ort.providers.delegates import Delegate
from tflite_ort.schema import Op, OperatorView, Specialized
from tflite_ort.specialize.called_subgraphs import CALLERS


@record
class Report:
    """What is known of a plan when its steps are made; its rows are made when somebody asks.

    Args:
        reasons: by operator, why earlier delegates do not have it.
        parts: the partitions in the order in which they run.
        backends: the delegates by name.
        providers: by operator, the execution providers that ONNX Runtime gave its nodes to.
        called: the operators whose kernels call subgraphs, with the rows of these subgraphs.
    """

    graph: Specialized
    reasons: Mapping[int, str]
    parts: Sequence[Partition]
    backends: Mapping[str, Delegate]
    providers: Mapping[int, str]
    called: Sequence[tuple[OperatorView[Any], Sequence[Placement]]]

    def placements(self) -> tuple[Placement, ...]:
        """A row for each operator, by subgraph and index."""
        rows = [_because(op, row) for op, inner in self.called for row in inner]
        rows += [_row(op, "constant") for op in self.graph.folded]
        for number, part in enumerate(self.parts):
            rows_of = self._in_numpy if part.backend == NUMPY else self._in_ort
            rows += rows_of(part, number)
        return tuple(sorted(rows, key=lambda row: (row.subgraph, row.index)))

    def _in_numpy(self, part: Partition, number: int) -> Iterator[Placement]:
        for op in part.operators:
            reason = self.reasons.get(op.index, "")
            if op.op is Op.CALL_ONCE:
                reason = "it runs once, which is not worth a session"
            yield _row(op, "numpy", "", number, reason)

    def _in_ort(self, part: Partition, number: int) -> Iterator[Placement]:
        delegate = self.backends[part.backend]
        name, precision = delegate.name, delegate.computes_in
        for op in part.operators:
            used = self.providers.get(op.index, name)  # no session where all is handed on
            reason = self.reasons.get(op.index, "")
            if not reason and used != name:
                reason = f"{name} has no node for a part of it"
            for row in (_row(op, "ort", name, number, reason), *_inside(op, name, number)):
                yield replace(row, provider=used, precision=precision)


def _because(op: OperatorView[Any], row: Placement) -> Placement:
    """`row` of a subgraph that `op` calls."""
    once = op.op is Op.CALL_ONCE and row.runs_on == "numpy"
    return replace(row, reason=f"{op.label} runs it once") if once else row


def _inside(op: OperatorView[Any], delegate: str, partition: int) -> list[Placement]:
    """The operators of the subgraphs that are translated with `op`, which calls them."""
    rows = []
    for body in op.bodies if op.op in CALLERS else ():
        rows += [_row(inner, "constant") for inner in body.folded]
        for inner in body.operators:
            rows.append(_row(inner, "ort", delegate, partition))
            rows += _inside(inner, delegate, partition)
    return rows


def _row(op: OperatorView[Any], runs_on: str, *details: Any) -> Placement:
    row = Placement(op.index, op.name, op.version, runs_on, *details)
    return replace(row, subgraph=op.subgraph)
