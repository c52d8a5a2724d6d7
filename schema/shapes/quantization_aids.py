"""Shape rules of the custom operators that aid quantisation."""

from __future__ import annotations

from tflite_ort.schema.shapes.registry import rule, same_shape

rule("NumericVerify", "aeq.hadamard_rotation")(same_shape)
