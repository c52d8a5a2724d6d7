"""The execution providers that can be used here, and on what hardware."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tflite_ort.base.records import record
from tflite_ort.providers.names import TO_BE_HAD, said_name
from tflite_ort.providers.packages import package_library, package_providers, plugin_packages
from tflite_ort.providers.plugins import load_library
from tflite_ort.providers.provider import Device, Provider
from tflite_ort.providers.session import ORT_VERSION, available_providers, devices
from tflite_ort.providers.traits import TRAITS, traits_of
from tflite_ort.providers.trials import check_provider
from tflite_ort.schema import DelegateError


@record
class ProviderReport:
    """An execution provider.

    Args:
        source: ``"onnxruntime"``, or the package of a plug-in.
        devices: kind and vendor of its hardware, where it tells.
        problem: why it cannot be used; empty when it can.
    """

    name: str
    source: str
    version: str
    devices: Sequence[str]
    problem: str = ""

    @property
    def short(self) -> str:
        """What ``providers=`` takes for it."""
        return "" if self.name == "-" else said_name(self.name)

    @property
    def precisions(self) -> Sequence[str]:
        """The precisions of floats that a caller can choose."""
        return list(traits_of(self.name).precisions)


def missing_providers(reports: Sequence[ProviderReport]) -> list[tuple[str, str]]:
    """The providers that can be had and are not among `reports`, each with what installs it."""
    there = {each.name for each in reports}
    return [(said_name(name), TRAITS[name].install) for name in TO_BE_HAD if name not in there]


def provider_reports() -> list[ProviderReport]:
    """Every provider of the installed onnxruntime and of the packages ``onnxruntime-ep-*``."""
    found = devices()
    compiled_in = [
        ProviderReport(
            name, "onnxruntime", ORT_VERSION, _kinds(name, found), _problem(Provider(name))
        )
        for name in available_providers()
    ]
    return [*compiled_in, *(row for package in plugin_packages() for row in _of_package(package))]


def providers_on(kind: str) -> list[str]:
    """The providers that have a device of a kind, ``"GPU"`` or ``"NPU"``, on this machine.

    Plug-ins that are installed are loaded for it; one that cannot be loaded has none.
    """
    load_plugins()
    return list(dict.fromkeys(each.provider for each in devices() if each.kind == kind))


def load_plugins() -> None:
    """Load the plug-ins that are installed, but those that cannot be loaded."""
    for package in plugin_packages():
        with suppress(DelegateError):
            load_library(package_library(package))


def _of_package(package: str) -> list[ProviderReport]:
    said = ["-"]
    with suppress(DelegateError):
        said = package_providers(package) or said
    try:
        library = package_library(package)
        names = load_library(library)
        problem = "no device on this machine"
    except DelegateError as error:
        names, problem = [], str(error)
    if not names:
        return [ProviderReport(name, package, "-", (), problem) for name in said]
    found = [each for each in devices() if each.library == library]
    versions = {each.provider: each.version for each in found}
    return [
        ProviderReport(
            name, package, versions[name], _kinds(name, found), _problem(Provider(name, {}, True))
        )
        for name in names
    ]


def _kinds(name: str, found: Sequence[Device]) -> list[str]:
    row = traits_of(name)
    emulated = f"emulated {' '.join(row.kinds)} on "
    return [
        f"{emulated if each.kind in row.emulates else ''}{each.kind} {each.vendor}".strip()
        for each in found
        if each.provider == name
    ]


def _problem(provider: Provider) -> str:
    try:
        check_provider(provider)
    except DelegateError as error:
        return str(error)
    return ""
