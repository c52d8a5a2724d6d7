"""What can go wrong beside the errors of a model."""

from __future__ import annotations

from types import ModuleType

from tflite_ort.optional import optional_module
from tflite_ort.schema import BridgeError


class GenerationError(BridgeError, ValueError):
    """A bundle cannot generate, a prompt does not fit, or a package is missing."""


def needed(module: str, what: str) -> ModuleType:
    """A module of the extra ``llm``.

    Raises:
        GenerationError: it is not installed.
    """
    found = optional_module(module)
    if found is None:
        raise GenerationError(f"{what} needs {module}: pip install 'tflite-ort[llm]'")
    return found
