"""What a plan is made of, collected while it is made, to be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base import files
from tflite_ort.base.records import field, record
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.operator_rows import Constants, OperatorRows, Unstorable
from tflite_ort.plan.stored_rows import RESULTS, tensor_row
from tflite_ort.providers.session import Session
from tflite_ort.schema import OperatorView, Specialized, TensorView
from tflite_ort.schema.file.budgets import Meter

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]
T = TypeVar("T")
R = TypeVar("R")

# What a session is made of, in the row of its step.
_MADE_OF = ("graph", "backend", "alone")


@record(frozen=False)
class Recorder:
    """Collects the plans of a subgraph and of those that it calls.

    Args:
        stage: the folder for the files of sessions.
        token: the beginning of their names.
        content: the bytes of the model; weights that a session reads there are not copied.

    Attributes:
        scopes: by place of a plan, what `stored` and `stored_operators` read. That of the first
            plan is empty.
        blobs: the files.
        shared: sessions that other interpreters may have, with the numbers of their files.
        spoiled: why it cannot be stored; empty where it can.
    """

    stage: Path
    token: str
    content: Array
    scopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    blobs: list[Path] = field(default_factory=list)
    shared: list[tuple[Session, Sequence[int]]] = field(default_factory=list)
    spoiled: str = ""
    _count: int = 0
    _rows: dict[str, OperatorRows] = field(default_factory=dict)
    _computed: bytearray = field(default_factory=bytearray)

    def spoil(self, reason: str) -> None:
        """Note that this plan cannot be stored."""
        self.spoiled = self.spoiled or reason

    def file(self) -> Path:
        """A path for the next file of a session."""
        self._count += 1
        return self.stage / f"{self.token}.{self._count}"

    def begin(self, scope: str, backends: Mapping[int, str]) -> None:
        """Start to record a plan, instead of an attempt to make it that has failed."""
        self.scopes[scope] = {"backends": dict(backends), "steps": [], "kernels": {}, "tensors": {}}
        self._rows[scope] = OperatorRows(Constants(self.content, self._computed))

    def add_kernels(self, scope: str, operators: Sequence[OperatorView[Any]]) -> None:
        """Record the next step of a plan, which numpy runs."""
        kept, row = self.scopes[scope], self._rows[scope].operator
        kept["kernels"][len(kept["steps"])] = self._storable(row, operators)
        kept["steps"].append(None)

    def share(self, session: Session) -> None:
        """Let other interpreters have the session that was recorded last, once it is stored."""
        if session.saved is not None:
            count = len(session.saved.files)
            self.shared.append((session, range(len(self.blobs) - count, len(self.blobs))))

    def end(
        self,
        scope: str,
        graph: Specialized,
        memory: Memory,
        meter: Meter,
        passed: tuple[Sequence[TensorView], Sequence[TensorView]],
    ) -> None:
        """Record what a plan has beside its steps.

        Args:
            passed: what an operator that calls it gives and takes.
        """
        kept, rows = self.scopes[scope], self._rows[scope]
        shown = (*memory.variables, *memory.arrays)
        tensors = kept.pop("tensors") | {i: tensor_row(graph.tensors[i]) for i in shown}
        kept["plan"] = {
            "tensors": list(tensors.values()),
            "variables": [[index, list(graph.variables[index])] for index in memory.variables],
            "arrays": list(memory.arrays),
            "steps": kept.pop("steps"),
        }
        kept["passed"] = [self._storable(rows.tensor, each) for each in passed if scope]
        kept["views"] = rows.tensors
        kept["free"] = meter.allowed(RESULTS) - getattr(meter.budgets, RESULTS)

    def called(self) -> list[dict[str, Any]]:
        """The rows to store for the sessions in plans of called subgraphs."""
        plans = [kept["plan"] for scope, kept in self.scopes.items() if scope]
        sessions = [step for plan in plans for step in plan["steps"] if step and step["graph"]]
        return [{name: step[name] for name in _MADE_OF} for step in sessions]

    def computed(self) -> int | None:
        """The file of the constants that are not in the model; None without any."""
        if not self._computed:
            return None
        path = self.file()
        files.write_bytes(path, memoryview(self._computed))
        return self._blob(path)

    def _storable(self, row: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """The rows of `things`, if they all have one."""
        try:
            return [row(each) for each in things]
        except Unstorable as error:
            self.spoil(str(error))
            return []

    def add(
        self,
        scope: str,
        session: Session | None,
        inputs: Sequence[BoundaryTensor],
        outputs: Sequence[BoundaryTensor],
        passed: Sequence[tuple[TensorView, TensorView]],
        **facts: Any,
    ) -> None:
        """Record the next session of a plan."""
        kept = self.scopes[scope]
        graph = None if session is None else self._graph(session)
        if any(x.place is not None for x in (*inputs, *outputs)):
            self.spoil("tensors stay in the memory of a device")
        crossing = [*(x.tensor for x in (*inputs, *outputs)), *(t for pair in passed for t in pair)]
        for tensor in crossing:
            kept["tensors"][tensor.index] = tensor_row(tensor)
        kept["steps"].append(
            {
                "graph": graph,
                "inputs": [_row(x) for x in inputs],
                "outputs": [_row(x) for x in outputs],
                "passed": [[source.index, target.index] for source, target in passed],
                **facts,
            }
        )

    def _graph(self, session: Session) -> list[Any] | None:
        """What `session` can be made of again."""
        if session.saved is None:
            self.spoil("a session could not be saved")
            return None
        blobs = [self._blob(path) for path in session.saved.files]
        weights = [self._weights(*each) for each in session.in_place.items()]
        names = list(session.inputs), list(session.outputs)
        return [session.saved.kind, blobs, *names, weights, session.masked]

    def _blob(self, path: Path) -> int:
        self.blobs.append(path)
        return len(self.blobs) - 1

    def _weights(self, name: str, array: Array) -> list[Any]:
        """Weights that a session reads where they are: in the model, or in a file of their own."""
        start = array.ctypes.data - self.content.ctypes.data
        facts = [name, array.dtype.str, list(array.shape)]
        if 0 <= start <= self.content.size - array.nbytes:
            return [*facts, None, start]
        path = self.file()
        np.ascontiguousarray(array).tofile(path)
        return [*facts, self._blob(path), 0]


def _row(crossing: BoundaryTensor) -> list[Any]:
    whole, window = crossing.whole, crossing.window
    place: list[Any] = [] if whole is None else [list(whole.shape), whole.start]
    if window is not None:
        place = [[window.width, window.steps]]
    return [crossing.tensor.index, crossing.dtype.str, *place]
