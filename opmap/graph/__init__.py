"""The ONNX graph under construction, and the forms in which a tensor stands in it."""

from __future__ import annotations

from tflite_ort.opmap.graph.forms import Domain, Layout, Target
from tflite_ort.opmap.graph.graph import Graph

__all__ = ["Domain", "Graph", "Layout", "Target"]
