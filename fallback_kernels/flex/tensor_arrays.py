"""TensorFlow 1's arrays of tensors: lists take their place."""

from __future__ import annotations

from tflite_ort.fallback_kernels.flex.rest import refuse_rest

refuse_rest("tensor_arrays")
