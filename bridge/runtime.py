"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tflite_ort.custom_kernels import BoundResolver
from tflite_ort.delegates import Delegate
from tflite_ort.state import State


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the subgraphs of one interpreter share.

    Args:
        delegates: the first choice first; numpy kernels take what none of them does.
        num_threads: threads within an operator; 0 leaves it to ONNX Runtime.
        keep_all: every tensor that an operator makes can be read after an invoke.
    """

    delegates: Sequence[Delegate]
    resolver: BoundResolver
    num_threads: int = 0
    keep_all: bool = False
    state: State = field(default_factory=State)
