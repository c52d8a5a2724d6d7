"""TensorFlow's random numbers without seeds, as TFLite's own: they are others in every run.

With seeds TensorFlow's streams advance by other steps than TFLite's.
"""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.options import RandomOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
_DRAWN = {
    "RandomUniform": Op.RANDOM_UNIFORM,
    "RandomStandardNormal": Op.RANDOM_STANDARD_NORMAL,
    "Multinomial": Op.MULTINOMIAL,
}


@rewriting(*_DRAWN)
def unseeded(site: Site) -> bool:
    """The operator of `_DRAWN`."""
    name, node = site.node.operator.name, site.node
    drawn = site.inputs[0] if name == "Multinomial" else site.outputs[0]
    if node["seed"] or node["seed2"] or site.type(drawn) is not _T.FLOAT32:
        return False
    if name != "Multinomial" and not site.is_of(_T.INT32):
        return False
    site.emit(_DRAWN[name], site.inputs, site.outputs, RandomOptions(seed=0, seed2=0))
    return True
