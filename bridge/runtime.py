"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tflite_ort.custom_kernels import BoundResolver
from tflite_ort.delegates import Delegate
from tflite_ort.opmap import Target
from tflite_ort.profiling import Profile
from tflite_ort.session import exact_weight_type
from tflite_ort.state import State


def check_hybrid(hybrid: str) -> None:
    """Refuse what no `Target` is made for."""
    if hybrid not in ("float", "dynamic"):
        raise ValueError(f"hybrid must be 'float' or 'dynamic', got {hybrid!r}")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the subgraphs of one interpreter share.

    Args:
        delegates: the first choice first; numpy kernels take what none of them does.
        num_threads: threads within an operator; 0 leaves it to ONNX Runtime.
        keep_all: every tensor that an operator makes can be read after an invoke.
        hybrid: how float activations meet integer weights, see `Target`.
        profile: where the time of each operator is noted, if it is.
    """

    delegates: Sequence[Delegate]
    resolver: BoundResolver
    num_threads: int = 0
    keep_all: bool = False
    hybrid: str = "float"
    profile: Profile | None = None
    state: State = field(default_factory=State)

    def target(self, delegate: Delegate) -> Target:
        """What graphs for `delegate` are made for: on the CPU, what is fastest on this machine."""
        if delegate.name != "CPUExecutionProvider":
            return Target(hybrid=self.hybrid, fallback=True)
        return Target(
            exact_weight_type(),
            ort_cpu=True,
            hybrid=self.hybrid,
            carried_boundary=True,
            fallback=True,
        )
