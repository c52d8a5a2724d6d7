"""Containers and processors, as ``mediapipe.tasks.components`` has them."""

from __future__ import annotations

from tflite_ort.tasks import containers, processors

__all__ = ["containers", "processors"]
