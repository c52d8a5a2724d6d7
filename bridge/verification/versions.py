"""The versions of the packages that take part."""

from __future__ import annotations

import importlib.metadata

_PACKAGES = ("tflite-ort", "onnxruntime", "onnx", "numpy", "ai-edge-litert")


def package_versions() -> dict[str, str]:
    """By package, those that are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
