"""TensorFlow's audio operators that ONNX has nodes for."""

from __future__ import annotations

from tflite_ort.opmap.audio import audiospectrogram, mfcc
from tflite_ort.opmap.registry import flex_translator

flex_translator("AudioSpectrogram")(audiospectrogram)
flex_translator("Mfcc")(mfcc)
