"""The devices of this machine that a model could run on, besides the cores."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.base.records import record
from tflite_ort.providers.available import load_plugins
from tflite_ort.providers.delegates import ExecutionProviderDelegate
from tflite_ort.providers.selection import device_order
from tflite_ort.providers.session import available_providers, devices
from tflite_ort.providers.traits import FULL_PRECISION, ON_GPUS, traits_of
from tflite_ort.schema import DelegateError


@record
class Candidate:
    """An execution provider on a device.

    Args:
        library: of a plug-in; empty for a provider that is compiled into onnxruntime.
        device: ``"CPU"``, ``"GPU"`` or ``"NPU"``; empty where the provider does not tell.
        about: vendor of the device and version of the provider, where they are known.
    """

    provider: str
    library: str = ""
    device: str = ""
    about: str = ""

    def __str__(self) -> str:
        return f"{self.provider} on {self.device}" if self.device else self.provider

    @property
    def delegate(self) -> ExecutionProviderDelegate:
        """What an interpreter is given to use it."""
        return self.in_precision(FULL_PRECISION)

    def in_precision(self, precision: str) -> ExecutionProviderDelegate:
        """As `delegate`, for floats in a precision."""
        return ExecutionProviderDelegate(
            self.provider, {}, library=self.library, device=self.device, precision=precision
        )


def candidates() -> list[Candidate]:
    """The providers and devices besides ONNX Runtime's own for the CPU, in the order in which ONNX
    Runtime would take them; those that it does not know the devices of come last. Plug-ins that are
    installed are loaded for it."""
    load_plugins()
    told = [
        Candidate(
            *(each.provider, each.library, each.kind if each.library else ""),
            f"{each.vendor} {each.version}".strip(),
        )
        for each in devices()
    ]
    names = {each.provider for each in told}
    told += [Candidate(name) for name in available_providers() if name not in names]
    order = device_order()
    here = {each: None for each in told if _here(each.provider)}  # two of a kind are one
    return sorted(here, key=lambda each: _place(each, order))


def first_gpu() -> ExecutionProviderDelegate:
    """The first provider that has a GPU, in the order in which ONNX Runtime would take them.

    Raises:
        DelegateError: none has.
    """
    load_plugins()
    told = {each.provider for each in devices() if each.kind == "GPU"} | ON_GPUS
    for each in candidates():
        if each.device == "GPU" or (not each.device and each.provider in told):
            return each.delegate
    raise DelegateError("no execution provider that is installed has a GPU")


def _place(candidate: Candidate, order: Sequence[tuple[str, str]]) -> int:
    """Where a candidate stands in an order of providers and kinds of devices."""
    places = (
        place
        for place, (provider, kind) in enumerate(order)
        if provider == candidate.provider and candidate.device in ("", kind)
    )
    return next(places, len(order))


def _here(provider: str) -> bool:
    traits = traits_of(provider)
    return not (traits.takes_all_nodes or traits.elsewhere)
