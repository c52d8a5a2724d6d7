"""TFLite operators as ONNX nodes: one translator per operator, grouped in families."""

from __future__ import annotations

from tflite_ort.opmap import (
    activation,
    comparison,
    convolution,
    detection,
    detection_postprocess,
    elementwise,
    flex,
    gather_scatter,
    image_resizing,
    linear,
    lookup,
    mediapipe,
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
from tflite_ort.opmap.forms import Domain, Layout, Target
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.lowering import OPSET, PORTABLE, Lowered, lower
from tflite_ort.opmap.registry import Translator, custom_translator, translator

__all__ = [
    "OPSET",
    "PORTABLE",
    "Domain",
    "Graph",
    "Layout",
    "Lowered",
    "Target",
    "Translator",
    "activation",
    "comparison",
    "convolution",
    "custom_translator",
    "detection",
    "detection_postprocess",
    "elementwise",
    "flex",
    "gather_scatter",
    "image_resizing",
    "linear",
    "lookup",
    "lower",
    "mediapipe",
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
    "translator",
]
