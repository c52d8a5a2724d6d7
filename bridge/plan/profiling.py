"""Where the time of an invoke goes: by TFLite operator, and by the ONNX nodes it became."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.providers.session import Session
from tflite_ort.schema import OperatorView

# What ONNX Runtime adds to the name of what a convolution makes, as the name of a convolution in
# blocks of channels.
_IN_BLOCKS = "_nchwc"
# Of nodes that no operator asked for, such as those that ONNX Runtime adds to change a layout.
_NO_OPERATOR = "(ONNX Runtime)"


def _seconds() -> defaultdict[str, float]:
    return defaultdict(float)


@record
class OperatorTime:
    """Seconds that one TFLite operator took, in all invokes together.

    Args:
        operator: such as ``CONV_2D_12``; ``boundary`` for what is done where data enters and
            leaves a graph.
        nodes: by operator of the optimised ONNX graph, or ``numpy``.
        provider: ONNX Runtime's execution provider; empty in numpy.
    """

    operator: str
    nodes: dict[str, float]
    provider: str

    @property
    def seconds(self) -> float:
        """The time of all nodes together."""
        return sum(self.nodes.values())


@record
class Profile:
    """Collects the times of sessions and kernels.

    Args:
        folder: for the sessions' files.
    """

    folder: Path
    sessions: list[tuple[Session, dict[str, str]]] = field(default_factory=list)
    kernels: defaultdict[str, float] = field(default_factory=_seconds)

    def add(self, session: Session, makers: dict[str, str]) -> None:
        """Collect the times of a session.

        Args:
            makers: by value, the name of the node of its graph that makes it.
        """
        self.sessions.append((session, makers))

    @property
    def prefix(self) -> str:
        """The beginning of the next session's file name, to which ONNX Runtime adds the second."""
        return str(self.folder / f"session{len(self.sessions)}")

    def timed(self, step: Callable[..., None]) -> Callable[..., None]:
        """`step`, which runs the operator that is its first argument, with its time noted."""

        def run(op: OperatorView[Any], *arguments: Any) -> None:
            started = time.perf_counter()
            step(op, *arguments)
            self.kernels[op.label] += time.perf_counter() - started

        return run

    def times(self) -> Sequence[OperatorTime]:
        """The operators that took time, the longest first; ends the profiling."""
        rows: dict[tuple[str, str], OperatorTime] = {}
        for session, makers in self.sessions:
            for node in node_times(session.end_profiling()):
                name = makers.get(node.name.removesuffix(_IN_BLOCKS), node.name)
                operator = name.partition("/")[0] if "/" in name else _NO_OPERATOR
                key = (operator, node.provider)
                row = rows.setdefault(key, OperatorTime(operator, _seconds(), node.provider))
                row.nodes[node.op_type] += node.seconds
        kernels = [
            OperatorTime(label, {"numpy": seconds}, "") for label, seconds in self.kernels.items()
        ]
        return sorted([*rows.values(), *kernels], key=lambda row: -row.seconds)


_KERNEL_TIME = "_kernel_time"  # how the profile marks the run of a node


@record
class NodeTime:
    """One run of a node of the optimised graph: its name, operator, provider and seconds."""

    name: str
    op_type: str
    provider: str
    seconds: float


def node_times(profile: str) -> list[NodeTime]:
    """What each run of each node took, by a profile in JSON."""
    events = json.loads(Path(profile).read_text(encoding="utf-8"))
    return [
        NodeTime(
            event["name"].removesuffix(_KERNEL_TIME),
            event["args"]["op_name"],
            event["args"]["provider"],
            event["dur"] / 1e6,
        )
        for event in events
        if event["cat"] == "Node" and event["name"].endswith(_KERNEL_TIME)
    ]
