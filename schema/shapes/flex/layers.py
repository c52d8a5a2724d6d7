"""Shape rules of TensorFlow's layers of neural networks."""

from __future__ import annotations

from tflite_ort.schema.shapes.registry import flex_rule, same_shape

flex_rule("Softplus")(same_shape)
