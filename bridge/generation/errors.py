"""What can go wrong beside the errors of a model."""

from __future__ import annotations

from tflite_ort.base.optional import installed
from tflite_ort.schema import BridgeError


class GenerationError(BridgeError, ValueError):
    """A bundle cannot generate, a prompt does not fit, or a package is missing."""


def needed(module: str, what: str) -> None:
    """Sees that a module of the extra ``llm`` is there, and imports nothing.

    Raises:
        GenerationError: it is not installed.
    """
    if not installed(module):
        raise GenerationError(f"{what} needs {module}: pip install 'tflite-ort[llm]'")
