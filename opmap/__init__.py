"""TFLite operators as ONNX nodes: one translator per operator, grouped in families."""

from __future__ import annotations

from tflite_ort.opmap.graph import Domain, Graph, Layout, Target
from tflite_ort.opmap.graph.lowering import OPSET, PORTABLE, Lowered, lower
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
    "custom_translator",
    "lower",
    "translator",
]
