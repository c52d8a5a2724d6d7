"""TensorFlow's matrix products of float32, as TFLite's own."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.layer_options import BatchMatMulOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting("MatMul", "BatchMatMul", "BatchMatMulV2")
def product(site: Site) -> bool:
    """BATCH_MATMUL."""
    if not site.is_of(TensorType.FLOAT32):
        return False
    node, single = site.node, site.node.operator.name == "MatMul"
    adjoints = ("transpose_a", "transpose_b") if single else ("adj_x", "adj_y")
    x, y = (node[name] for name in adjoints)
    options = BatchMatMulOptions(adj_x=x, adj_y=y)
    site.emit(Op.BATCH_MATMUL, site.inputs, site.outputs, options)
    return True
