"""The times of nodes in a profile that ONNX Runtime has written."""

from __future__ import annotations

import json
from pathlib import Path

from tflite_ort.base.records import record

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
