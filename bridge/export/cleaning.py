"""Graphs without what a reader would take out: constants that are computed, and needless nodes."""

from __future__ import annotations

from tflite_ort.export.folding import fold_constants
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import without_needless_nodes
from tflite_ort.opmap.onnx_graph.writing.told_shapes import tell_shapes

# Of a shape that is a constant now, onnx infers more.
_ROUNDS = 4


def clean(model: ir.Model) -> None:
    """Hold what is computed of constants, and leave out needless nodes.

    What they make is the same, bit for bit.
    """
    for _ in range(_ROUNDS):
        count, known = len(model.graph.nodes), inferred(model)
        fold_constants(model, known)
        tell_shapes(model.graph, known)
        without_needless_nodes(model.graph, known)
        kinds = {node.op_type for node in model.graph.nodes}
        if len(model.graph.nodes) == count or "Shape" not in kinds:
            return
