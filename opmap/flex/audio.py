"""TensorFlow's audio operators that ONNX has nodes for."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap import audio
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView


@flex_translator("AudioSpectrogram")
def audiospectrogram(op: OperatorView[Any], g: Graph) -> None:
    """As the custom operator of TFLite."""
    audio.audiospectrogram(op, g)


@flex_translator("Mfcc")
def mfcc(op: OperatorView[Any], g: Graph) -> None:
    """As the custom operator of TFLite."""
    audio.mfcc(op, g)
