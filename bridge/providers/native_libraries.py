"""The libraries of the system that compiled-in providers need."""

from __future__ import annotations

import ctypes
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import onnxruntime

from tflite_ort.providers.names import short_name

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
