"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.opmap import Target
from tflite_ort.plan.profiling import Profile
from tflite_ort.providers.delegates import Delegate
from tflite_ort.providers.session import CPU, DeviceMemory
from tflite_ort.providers.trials import device_memory, exact_weight_type
from tflite_ort.schema.file.budgets import DEFAULT, Budgets
from tflite_ort.state import State

# Providers that take no quantised weights but signed ones.
_SIGNED_WEIGHTS = (
    "NvTensorRTRTXExecutionProvider",
    "QNNExecutionProvider",
    "TensorrtExecutionProvider",
)
# It computes in 8 bits with signed weights alone, and adds pairs of products in 16 bits where the
# CPU cannot do better; with unsigned ones it computes in floats.
_LIKE_THE_CPU = "OpenVINOExecutionProvider"


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
        budgets: limits of what the model may ask for.
        continued: a session is not all that an invoke runs: what comes after it may fail.
        strict: a delegate that fails, or leaves nodes to another provider, is an error.
        failed: runners that could not be made ready, and why; found as sessions are made.
        memories: by runner, see `device_memory`.
    """

    delegates: Sequence[Delegate]
    resolver: BoundResolver
    num_threads: int = 0
    keep_all: bool = False
    hybrid: str = "float"
    profile: Profile | None = None
    state: State = field(default_factory=State)
    budgets: Budgets = DEFAULT
    continued: bool = False
    strict: bool = False
    failed: dict[str, str] = field(default_factory=dict)
    memories: dict[str, DeviceMemory | None] = field(default_factory=dict)

    @property
    def runners(self) -> dict[str, Delegate]:
        """The delegates under names of which there is one each."""
        named: dict[str, Delegate] = {}
        for delegate in self.delegates:
            same = sum(delegate.name == each.name for each in named.values())
            named[f"{delegate.name} #{same + 1}" if same else delegate.name] = delegate
        return named

    def device_memory(self, runner: str) -> DeviceMemory | None:
        """Where sessions of this runner hand tensors on, other than the host's memory."""
        if runner not in self.memories:
            provider = self.runners[runner].provider
            self.memories[runner] = None if provider.name == CPU else device_memory(provider)
        return self.memories[runner]

    def target(self, delegate: Delegate) -> Target:
        """What graphs for `delegate` are made for: on the CPU, what is fastest on this machine."""
        if delegate.name in _SIGNED_WEIGHTS:
            return Target("int8", hybrid=self.hybrid, fallback=True)
        if delegate.name == _LIKE_THE_CPU:
            weights = exact_weight_type()
            return Target(weights, openvino=True, hybrid=self.hybrid, fallback=True)
        if delegate.name != CPU:
            return Target(hybrid=self.hybrid, fallback=True)
        return Target(
            exact_weight_type(),
            ort_cpu=True,
            hybrid=self.hybrid,
            carried_boundary=True,
            fallback=True,
        )
