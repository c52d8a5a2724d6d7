"""TensorFlow's hash tables."""

from __future__ import annotations

from tflite_ort.fallback_kernels.flex.rest import refuse_rest

refuse_rest("tables")
