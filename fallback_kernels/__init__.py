"""TFLite operators in numpy: one kernel per operator, in the same families as the translators."""

from __future__ import annotations

from tflite_ort.fallback_kernels import (
    activation,
    comparison,
    convolution,
    detection,
    elementwise,
    gather_scatter,
    image_resizing,
    linear,
    lookup,
    normalization,
    pooling,
    quantization,
    random,
    reduction,
    reshaping,
    signal,
    slicing,
    stablehlo,
    tiling,
)
from tflite_ort.fallback_kernels.registry import Kernel, kernel

__all__ = [
    "Kernel",
    "activation",
    "comparison",
    "convolution",
    "detection",
    "elementwise",
    "gather_scatter",
    "image_resizing",
    "kernel",
    "linear",
    "lookup",
    "normalization",
    "pooling",
    "quantization",
    "random",
    "reduction",
    "reshaping",
    "signal",
    "slicing",
    "stablehlo",
    "tiling",
]
