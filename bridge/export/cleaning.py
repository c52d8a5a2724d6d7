"""Graphs without what a reader would take out: constants that are computed, and needless nodes."""

from __future__ import annotations

from tflite_ort.export.folding import fold_constants
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import without_needless_nodes


def clean(model: ir.Model) -> None:
    """Hold what is computed of constants, and leave out needless nodes.

    What they make is the same, bit for bit.
    """
    known = inferred(model)
    fold_constants(model, known)
    without_needless_nodes(model.graph, known)
