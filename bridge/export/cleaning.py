"""Graphs without what a reader would take out: constants that are computed, and needless nodes."""

from __future__ import annotations

from tflite_ort.batching.samples import BATCH
from tflite_ort.export.folding import fold_constants
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import without_needless_nodes
from tflite_ort.opmap.onnx_graph.writing.told_shapes import tell_shapes

# Of a shape that is a constant now, onnx infers more.
_ROUNDS = 4


def clean(model: ir.Model, *, as_session: bool = False) -> Known:
    """Hold what is computed of constants, and leave out needless nodes; returns what is known of
    the values that are left.

    What they make is the same, bit for bit, also where the first sizes of inputs differ that the
    file leaves open: their name is one, and nothing holds them to it.

    Args:
        as_session: reductions stay as `Interpreter` runs them.
    """
    graph = model.graph
    is_open = any(isinstance(size, str) for value in graph.inputs for size in value.shape or ())
    for _ in range(_ROUNDS):
        count, known = len(graph.nodes), inferred(model)
        fold_constants(model, known)
        if is_open:
            tell_shapes(graph, known, assumed=BATCH)
        without_needless_nodes(graph, known, reduced=not as_session)
        has_shapes = any(node.op_type == "Shape" for node in graph.nodes)
        if not is_open or len(graph.nodes) == count or not has_shapes:
            break
    return known
