"""TensorFlow's audio operators that ONNX has nodes for."""

from __future__ import annotations

from tflite_ort.opmap import signal
from tflite_ort.opmap.registry import flex_translator

# Custom operators of TFLite too.
flex_translator("AudioSpectrogram")(signal.audiospectrogram)
flex_translator("Mfcc")(signal.mfcc)
