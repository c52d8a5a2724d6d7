"""Run and export TensorFlow Lite models through ONNX Runtime.

>>> import tflite_ort
>>> interpreter = tflite_ort.Interpreter("model.tflite")          # doctest: +SKIP
>>> tflite_ort.export_onnx("model.tflite", "model.onnx")          # doctest: +SKIP
"""

from __future__ import annotations

from tflite_ort.delegates import Delegate, ExecutionProviderDelegate
from tflite_ort.export import export_onnx
from tflite_ort.interpreter import Interpreter
from tflite_ort.resolvers import BuiltinOpResolver, WellKnownOpResolver
from tflite_ort.schema import (
    BridgeError,
    DelegateError,
    ExportError,
    KernelError,
    MalformedModel,
    ModelError,
    StateError,
    TensorError,
    UnknownOperator,
    UnresolvedOperator,
    UnsupportedSchema,
    UnsupportedVersion,
    Untranslatable,
    VersionError,
)
from tflite_ort.versioning import MutableOpResolver, OpResolver, Registration

__all__ = [
    "BridgeError",
    "BuiltinOpResolver",
    "Delegate",
    "DelegateError",
    "ExecutionProviderDelegate",
    "ExportError",
    "Interpreter",
    "KernelError",
    "MalformedModel",
    "ModelError",
    "MutableOpResolver",
    "OpResolver",
    "Registration",
    "StateError",
    "TensorError",
    "UnknownOperator",
    "UnresolvedOperator",
    "UnsupportedSchema",
    "UnsupportedVersion",
    "Untranslatable",
    "VersionError",
    "WellKnownOpResolver",
    "export_onnx",
]
