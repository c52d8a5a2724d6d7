"""Output shapes from input shapes, for models whose inputs are resized: a rule per operator."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes import (
    convolution,
    detection,
    elementwise,
    flex,
    gather_scatter,
    image_resizing,
    lookup,
    micro_signal,
    random,
    recurrent,
    reduction,
    reshaping,
    signal,
    slicing,
    stablehlo,
    state,
    tiling,
    well_known,
)
from tflite_ort.schema.shapes.registry import RULES, Shapes
from tflite_ort.schema.values.view import OperatorView


def output_shapes(op: OperatorView[Any]) -> Shapes | None:
    """One shape per output; None without a rule, or when the shapes depend on data."""
    found = RULES.get(op.op if op.custom_code is None else op.custom_code)
    return found(op) if found is not None else None


__all__ = [
    "convolution",
    "detection",
    "elementwise",
    "flex",
    "gather_scatter",
    "image_resizing",
    "lookup",
    "micro_signal",
    "output_shapes",
    "random",
    "recurrent",
    "reduction",
    "reshaping",
    "signal",
    "slicing",
    "stablehlo",
    "state",
    "tiling",
    "well_known",
]
