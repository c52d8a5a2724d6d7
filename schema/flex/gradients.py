"""TensorFlow's gradients, as TFLite's own operators."""

from __future__ import annotations

from tflite_ort.schema.flex.movement import same_elements
from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting("PreventGradient", "StopGradient")
def stopped(site: Site) -> bool:
    """The tensor itself."""
    same_elements(site, site.inputs[0], site.outputs[0])
    return True
