"""What a plan is made of, collected while it is made, to be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.stored import tensor_row
from tflite_ort.providers.session import Session
from tflite_ort.records import field, record
from tflite_ort.schema import TensorView

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]


@record(frozen=False)
class Recorder:
    """Collects the plans of a subgraph and of those that it calls.

    Args:
        stage: the folder for the files of sessions.
        token: the beginning of their names.
        content: the bytes of the model; weights that a session reads there are not copied.

    Attributes:
        scopes: by place of a plan, its backends and reasons by operator and the rows of its
            sessions. The place of the first plan is empty.
        tensors: by scope and index, those at the boundary of a session.
        blobs: the files.
        spoiled: why it cannot be stored; empty where it can.
    """

    stage: Path
    token: str
    content: Array
    scopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    blobs: list[Path] = field(default_factory=list)
    spoiled: str = ""
    _count: int = 0

    def spoil(self, reason: str) -> None:
        """Note that this plan cannot be stored."""
        self.spoiled = self.spoiled or reason

    def file(self) -> Path:
        """A path for the next file of a session."""
        self._count += 1
        return self.stage / f"{self.token}.{self._count}"

    def begin(self, scope: str, backends: Mapping[int, str], reasons: Mapping[int, str]) -> None:
        """Start to record a plan, instead of an attempt to make it that has failed."""
        why = {index: reason for index, reason in reasons.items() if reason}
        self.scopes[scope] = {
            "backends": dict(backends),
            "reasons": why,
            "steps": [],
            "tensors": {},
        }

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
        files = [self._blob(path) for path in session.saved.files]
        weights = [self._weights(*each) for each in session.in_place.items()]
        return [session.saved.kind, files, list(session.inputs), list(session.outputs), weights]

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
