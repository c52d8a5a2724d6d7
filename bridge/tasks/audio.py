"""Tasks on sound, as ``mediapipe.tasks.python.audio`` has them."""

from __future__ import annotations

from tflite_ort.tasks.classifiers import AudioClassifier, AudioClassifierOptions
from tflite_ort.tasks.containers import AudioClassifierResult, AudioEmbedderResult
from tflite_ort.tasks.embedders import AudioEmbedder, AudioEmbedderOptions
from tflite_ort.tasks.options import AudioRunningMode as RunningMode

__all__ = [
    "AudioClassifier",
    "AudioClassifierOptions",
    "AudioClassifierResult",
    "AudioEmbedder",
    "AudioEmbedderOptions",
    "AudioEmbedderResult",
    "RunningMode",
]
