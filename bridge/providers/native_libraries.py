"""What providers need of this machine: libraries of the system, and the hardware that a compiled
graph is for."""

from __future__ import annotations

import ctypes
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _ort

from tflite_ort.providers import messages
from tflite_ort.providers.names import short_name
from tflite_ort.providers.provider import Provider
from tflite_ort.schema import DelegateError

_FOLDER = Path(onnxruntime.__file__).parent / "capi"
_ABSENT = "cannot open shared object file"


@cache
def load_nvidia_libraries() -> None:
    """Load the libraries of CUDA and cuDNN from the packages ``nvidia-*``, once.

    ONNX Runtime itself finds only those that the system or PyTorch has loaded. It prints which are
    missing; this is left out, since `missing_library` says so of a provider that cannot do without.
    """
    preload = getattr(onnxruntime, "preload_dlls", None)
    if preload is not None:
        with redirect_stdout(StringIO()):
            preload()


def missing_library(provider: str) -> str:
    """What the system says of a library that a compiled-in provider needs and that is not there;
    empty where none is missing, or where the system is not Linux."""
    library = _FOLDER / f"libonnxruntime_providers_{short_name(provider)}.so"
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        message = str(error)
        return message if _ABSENT in message and library.exists() else ""
    return ""


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
