"""Outputs that mean something: what stands around a network, as ONNX nodes before and after it."""

from __future__ import annotations

from tflite_ort.decode.decoding import decoded
from tflite_ort.decode.kinds import Kind, kind_of

__all__ = ["Kind", "decoded", "kind_of"]
