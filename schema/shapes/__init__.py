"""Output shapes from input shapes, for models whose inputs are resized: a rule per operator."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes import (
    activation,
    audio,
    comparison,
    convolution,
    detection,
    detection_postprocess,
    elementwise,
    flex,
    flex_text,
    gather_scatter,
    image_resizing,
    linear,
    lookup,
    mediapipe,
    micro_signal,
    micro_streams,
    normalization,
    pooling,
    quantization,
    quantization_aids,
    random,
    recurrent,
    reduction,
    reshaping,
    signal,
    slicing,
    stablehlo,
    state,
    tiling,
)
from tflite_ort.schema.shapes.registry import RULES, Shapes
from tflite_ort.schema.values.view import OperatorView


def output_shapes(op: OperatorView[Any]) -> Shapes | None:
    """One shape per output; None without a rule, or when the shapes depend on data."""
    found = RULES.get(op.op if op.custom_code is None else op.custom_code)
    return found(op) if found is not None else None


__all__ = [
    "activation",
    "audio",
    "comparison",
    "convolution",
    "detection",
    "detection_postprocess",
    "elementwise",
    "flex",
    "flex_text",
    "gather_scatter",
    "image_resizing",
    "linear",
    "lookup",
    "mediapipe",
    "micro_signal",
    "micro_streams",
    "normalization",
    "output_shapes",
    "pooling",
    "quantization",
    "quantization_aids",
    "random",
    "recurrent",
    "reduction",
    "reshaping",
    "signal",
    "slicing",
    "stablehlo",
    "state",
    "tiling",
]
