"""Tasks on text, as ``mediapipe.tasks.python.text`` has them."""

from __future__ import annotations

from tflite_ort.tasks.containers import TextClassifierResult, TextEmbedderResult
from tflite_ort.tasks.text_tasks import (
    TextClassifier,
    TextClassifierOptions,
    TextEmbedder,
    TextEmbedderOptions,
)

__all__ = [
    "TextClassifier",
    "TextClassifierOptions",
    "TextClassifierResult",
    "TextEmbedder",
    "TextEmbedderOptions",
    "TextEmbedderResult",
]
