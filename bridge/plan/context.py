"""What all plans of one interpreter share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record, replace
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.opmap import Target
from tflite_ort.plan.steps import Kernels
from tflite_ort.providers.delegates import Delegate, named
from tflite_ort.providers.provider import DeviceMemory
from tflite_ort.providers.traits import traits_of
from tflite_ort.providers.trials import device_memory, exact_runs
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.state import State
from tflite_ort.tuning.session_target import session_target

with late:
    from tflite_ort.plan import profiling

if TYPE_CHECKING:
    from tflite_ort.plan.recording import Recorder
    from tflite_ort.tuning.tuner import Tuner


@record
class PlanContext:
    """What all plans of one interpreter share.

    Args:
        delegates: the first choice first; numpy kernels take what none of them does.
        resolver: the translators and kernels, ready for the model.
        num_threads: threads within an operator; 0 leaves it to ONNX Runtime.
        keep_all: every tensor that an operator makes can be read after an invoke.
        hybrid: how float activations meet integer weights, see `Target`.
        profile: notes the time of each operator; None: it is not measured.
        state: the values that last from one invoke to the next.
        meter: limits of what the model may ask for.
        continued: an invoke goes on after a session and may fail then, so the earlier values of
            variables have to be kept.
        strict: a delegate that fails, or leaves nodes to another provider, is an error.
        unusable: by backend, why it can run nothing; plans add what they find.
        recorder: collects the parts of the plans, to store them; None: they are not stored.
        scope: the place of a plan among those of called subgraphs.
        tuner: chooses lowerings by timing them; None: the cost model does.
    """

    delegates: Sequence[Delegate]
    resolver: BoundResolver
    num_threads: int = 0
    keep_all: bool = False
    hybrid: str = "float"
    profile: profiling.Profile | None = None
    state: State = field(default_factory=State)
    meter: Meter = field(default_factory=Meter)
    continued: bool = False
    strict: bool = False
    unusable: Mapping[str, str] = field(default_factory=dict)
    recorder: Recorder | None = None
    scope: str = ""
    tuner: Tuner | None = None

    @property
    def backends(self) -> dict[str, Delegate]:
        """The delegates by name, in order; the second of one name is ``"NAME #2"``."""
        return named(self.delegates)

    @property
    def kernels(self) -> Kernels:
        """What numpy steps need."""
        return Kernels(self.resolver.kernels, self.state, self.meter, self.profile)

    def device_memory(self, backend: str) -> DeviceMemory | None:
        """Where sessions of a backend hand tensors on; None for the host's memory."""
        provider = self.backends[backend].provider
        return None if traits_of(provider.name).host_memory else device_memory(provider)

    def target(self, delegate: Delegate) -> Target:
        """What graphs for `delegate` are made for, by the traits of its provider."""
        target = replace(
            session_target(delegate.name),
            hybrid=self.hybrid,
            result_bytes=self.meter.allowed("result_bytes"),
            exact_runs=exact_runs,
            no_floats=delegate.no_floats,
        )
        if self.tuner is None or not target.cpu_kernels:
            return target
        return replace(target, choose=self.tuner.chooser(target))
