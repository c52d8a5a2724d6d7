"""TensorFlow's optimizers: each computes with what its variables hold."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.flex.variables import change
from tflite_ort.schema.values.optimizers import DENSE, SPARSE

_T = TensorType
_TYPES = (_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16)


@rewriting(*DENSE, *SPARSE, stays=True)
def step(site: Site) -> bool:
    """The operator on what the variables hold."""
    type = site.node.type("T")
    if type not in _TYPES:
        return False
    change(site, type)
    return True
