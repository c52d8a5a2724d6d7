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
from tflite_ort.schema.values.operators import INPUTS, key_of
from tflite_ort.schema.values.view import OperatorView


def output_shapes(op: OperatorView[Any]) -> Shapes | None:
    """One shape per output; None without a rule, or when the shapes depend on data."""
    key = key_of(op)
    found = RULES.get(key)
    return None if found is None else found(INPUTS[key].named(op))


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
