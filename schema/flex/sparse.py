"""TensorFlow's operators on sparse tensors, as TFLite's own."""

from __future__ import annotations

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.options import SparseToDenseOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting("SparseToDense")
def sparse_to_dense(site: Site) -> bool:
    """SPARSE_TO_DENSE."""
    options = SparseToDenseOptions(validate_indices=site.node["validate_indices"])
    site.emit(Op.SPARSE_TO_DENSE, site.inputs, site.outputs, options)
    return True
