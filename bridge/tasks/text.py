"""Tasks on text, as ``mediapipe.tasks.python.text`` has them."""

from __future__ import annotations

from tflite_ort.tasks.containers import (
    LanguageDetectorResult,
    TextClassifierResult,
    TextEmbedderResult,
)
from tflite_ort.tasks.text_tasks import (
    LanguageDetector,
    LanguageDetectorOptions,
    TextClassifier,
    TextClassifierOptions,
    TextEmbedder,
    TextEmbedderOptions,
)

__all__ = [
    "LanguageDetector",
    "LanguageDetectorOptions",
    "LanguageDetectorResult",
    "TextClassifier",
    "TextClassifierOptions",
    "TextClassifierResult",
    "TextEmbedder",
    "TextEmbedderOptions",
    "TextEmbedderResult",
]
