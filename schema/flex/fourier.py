"""Parts of complex numbers, as TFLite's own operators."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
_PARTS = {"Real": Op.REAL, "Imag": Op.IMAG, "ComplexAbs": Op.COMPLEX_ABS}
_PART_TYPES = {_T.COMPLEX64: _T.FLOAT32, _T.COMPLEX128: _T.FLOAT64}


@rewriting(*_PARTS)
def part(site: Site) -> bool:
    """The operator of `_PARTS`; a magnitude of COMPLEX_ABS is one of 32 bits."""
    name, type = site.node.operator.name, site.type(site.inputs[0])
    if site.type(site.outputs[0]) is not _PART_TYPES[type]:
        return False
    if name == "ComplexAbs" and type is not _T.COMPLEX64:
        return False
    site.emit(_PARTS[name], site.inputs, site.outputs)
    return True


@rewriting("ConjugateTranspose")
def conjugate_transpose(site: Site) -> bool:
    """TRANSPOSE of what is not complex."""
    if site.is_of(*_PART_TYPES):
        return False
    site.emit(Op.TRANSPOSE, site.inputs, site.outputs)
    return True
