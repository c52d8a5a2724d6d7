"""TFLite operators in numpy: one kernel per operator, in the same families as the translators."""

from __future__ import annotations

from tflite_ort.fallback_kernels.registry import Kernel, custom_kernel, kernel

__all__ = [
    "Kernel",
    "custom_kernel",
    "kernel",
]
