"""Output shapes from input shapes, for models whose inputs are resized."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema import shapes_convolution as shapes_convolution
from tflite_ort.schema import shapes_detection as shapes_detection
from tflite_ort.schema import shapes_elementwise as shapes_elementwise
from tflite_ort.schema import shapes_gather_scatter as shapes_gather_scatter
from tflite_ort.schema import shapes_image_resizing as shapes_image_resizing
from tflite_ort.schema import shapes_lookup as shapes_lookup
from tflite_ort.schema import shapes_random as shapes_random
from tflite_ort.schema import shapes_reduction as shapes_reduction
from tflite_ort.schema import shapes_reshaping as shapes_reshaping
from tflite_ort.schema import shapes_signal as shapes_signal
from tflite_ort.schema import shapes_slicing as shapes_slicing
from tflite_ort.schema import shapes_stablehlo as shapes_stablehlo
from tflite_ort.schema import shapes_tiling as shapes_tiling
from tflite_ort.schema.shape_rules import RULES, Shapes
from tflite_ort.schema.view import OperatorView


def output_shapes(op: OperatorView[Any]) -> Shapes | None:
    """One shape per output; None without a rule, or when the shapes depend on data."""
    found = RULES.get(op.op)
    return found(op) if found is not None else None
