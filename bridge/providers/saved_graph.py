"""Graphs that sessions write to disk, and whether what a provider compiled still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _ort

from tflite_ort.providers.provider import Provider
from tflite_ort.providers.session import ORT_ERRORS, said
from tflite_ort.providers.settings import configure
from tflite_ort.providers.stored_graph import (
    COMPILED,
    MAPPED,
    MAPPED_BYTES,
    PACKED,
    SMALL,
    SMALL_BYTES,
    SavedGraph,
)
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema import DelegateError

if TYPE_CHECKING:
    import pathlib

# Smaller initializers of a graph that is saved stay in it.
_INLINE_BYTES = 1024


def check_compatible(path: str, provider: Provider) -> None:
    """Refuse what a provider has compiled for another version of itself or other hardware.

    Raises:
        DelegateError: it cannot run here, or not as fast as what is compiled anew.
    """
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == provider.name]
    if not devices or not hasattr(_ort, "get_compatibility_info_from_model"):
        return  # compiled in, or a release that does not tell
    try:
        compiled_for = _ort.get_compatibility_info_from_model(path, provider.name)
        if not compiled_for:
            return
        fits = _ort.get_model_compatibility_for_ep_devices(devices, compiled_for)
    except ORT_ERRORS as error:
        raise DelegateError(f"ONNX Runtime could not read {path}: {said(error)}") from error
    usable = _ort.OrtCompiledModelCompatibility
    if fits not in (usable.EP_SUPPORTED_OPTIMAL, usable.EP_NOT_APPLICABLE):
        raise DelegateError(f"{path} is not for this {provider.name}")


def save_to(
    path: pathlib.Path,
    options: onnxruntime.SessionOptions,
    provider: Provider,
    graph: int,
    weights: int,
) -> SavedGraph:
    """Have a session write what it can be made of again; what that will be.

    Args:
        graph: its bytes.
        weights: bytes of those that are handed over beside the graph.
    """
    beside = path.with_name(f"{path.name}.weights")
    if not traits_of(provider.name).takes_all_nodes:
        configure(options, "ep.context_", enable="1", file_path=str(path), embed_mode="1")
        return SavedGraph(COMPILED, [path])
    options.optimized_model_filepath = str(path)
    if graph <= SMALL_BYTES and not weights:
        configure(options, "session.", save_model_format="ONNX")
        return SavedGraph(SMALL, [path])
    if weights <= MAPPED_BYTES:
        configure(options, "session.", save_model_format="ORT")
        return SavedGraph(PACKED, [path])
    configure(options, "session.", save_model_format="ONNX")
    external = "session.optimized_model_external_initializers_"
    configure(options, external, file_name=beside.name, min_size_in_bytes=str(_INLINE_BYTES))
    return SavedGraph(MAPPED, [path, beside])
