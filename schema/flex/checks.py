"""TensorFlow's operators that check, print or do nothing, as TFLite's own."""

from __future__ import annotations

from tflite_ort.schema.flex.movement import same_elements
from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting("DeepCopy")
def deep_copy(site: Site) -> bool:
    """RESHAPE to its own shape."""
    same_elements(site, site.inputs[0], site.outputs[0])
    return True
