"""The devices of this machine that a model could run on, besides the cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnxruntime

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.providers.available import load_plugins
from tflite_ort.providers.names import providers_of_kind, said_name
from tflite_ort.providers.session import ORT_ERRORS, available_providers, devices
from tflite_ort.providers.traits import TRAITS, traits_of
from tflite_ort.providers.trials import identity
from tflite_ort.schema import MissingDelegate


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
        if each.kind not in traits_of(each.provider).emulates
    ]
    names = {each.provider for each in devices()}
    told += [Candidate(name) for name in available_providers() if name not in names]
    order = device_order()
    here = {each: None for each in told if _here(each.provider)}  # two of a kind are one
    return sorted(here, key=lambda each: _rank(each, order))


def first_on(kind: str) -> Candidate:
    """The first provider that has a device of a kind, ``"GPU"`` or ``"NPU"``, in the order in which
    ONNX Runtime would take them.

    Raises:
        MissingDelegate: none has; the message says what to install.
    """
    load_plugins()
    told = {each.provider for each in devices() if each.kind == kind}
    for each in candidates():
        for_kind = each.provider in told or kind in traits_of(each.provider).kinds
        if each.device == kind or (not each.device and for_kind):
            return each
    hint = _had(kind)
    raise MissingDelegate(f"no execution provider that is installed has a device {kind}{hint}")


def _had(kind: str) -> str:
    """``; ...``: what has devices of a kind, or computes as one would."""
    emulators = [
        said_name(each.provider)
        for each in devices()
        if each.kind in (row := traits_of(each.provider)).emulates and kind in row.kinds
    ]
    says = f"; {', '.join(emulators)} has an emulator here, by its own name" if emulators else ""
    lines = (f"{said_name(name)}: {TRAITS[name].install}" for name in providers_of_kind(kind))
    return f"{says}; to install one for a {kind}: {'; '.join(lines)}"


def _rank(candidate: Candidate, order: Sequence[tuple[str, str]]) -> int:
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


def device_order() -> list[tuple[str, str]]:
    """Provider and kind of each device, the first choice of ONNX Runtime's selection first; empty
    where this release selects none. Nothing is made ready on a device by that."""
    options = onnxruntime.SessionOptions()
    if not hasattr(options, "set_provider_selection_policy_delegate"):
        return []
    found: list[tuple[str, str]] = []

    def select(devices: Sequence[Any], *_: Any) -> list[Any]:
        found.extend((each.ep_name, each.device.type.name) for each in devices)
        return list(devices[-1:])  # the last one is ONNX Runtime's own

    options.set_provider_selection_policy_delegate(select)
    try:
        onnxruntime.InferenceSession(serialized(identity()), options)
    except ORT_ERRORS:
        return found
    return found
