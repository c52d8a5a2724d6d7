"""Whether what a provider has compiled can be used here."""

from __future__ import annotations

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _ort

from tflite_ort.providers import messages
from tflite_ort.providers.provider import Provider
from tflite_ort.schema import DelegateError


def check_compatible(path: str, provider: Provider, errors: tuple[type[Exception], ...]) -> None:
    """Refuse what a provider has compiled for another version of itself or other hardware.

    Args:
        errors: what ONNX Runtime raises.

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
    except errors as error:
        raise messages.failure(f"could not read {path}", error) from error
    usable = _ort.OrtCompiledModelCompatibility
    if fits not in (usable.EP_SUPPORTED_OPTIMAL, usable.EP_NOT_APPLICABLE):
        raise DelegateError(f"{path} is not for this {provider.name}")
