"""Run and export TensorFlow Lite models through ONNX Runtime.

>>> import tflite_ort
>>> interpreter = tflite_ort.Interpreter("model.tflite")          # doctest: +SKIP
>>> tflite_ort.export_onnx("model.tflite", "model.onnx")          # doctest: +SKIP
"""

from __future__ import annotations

from tflite_ort.batch import batch_shape, batched_model
from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.custom_interpreter import InterpreterWithCustomOps
from tflite_ort.export import export_onnx
from tflite_ort.install import Installed, install_as
from tflite_ort.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.prediction.predictor import Predictor
from tflite_ort.providers.delegates import (
    Delegate,
    ExecutionProviderDelegate,
    OpResolverType,
    load_delegate,
)
from tflite_ort.resolvers import BuiltinOpResolver, WellKnownOpResolver
from tflite_ort.schema import (
    AllocationError,
    BridgeError,
    BudgetExceeded,
    Budgets,
    CacheWarning,
    DelegateError,
    DelegateWarning,
    ExportError,
    InsufficientMemory,
    KernelError,
    MalformedBundle,
    MalformedModel,
    MissingDelegate,
    MissingEntry,
    ModelError,
    ResizeError,
    StateError,
    TensorError,
    TranslatorError,
    Unbatchable,
    UnknownOperator,
    UnreadableModel,
    UnresolvedOperator,
    UnsupportedSchema,
    UnsupportedVersion,
    Untranslatable,
    VersionError,
)
from tflite_ort.signatures import SignatureRunner
from tflite_ort.tuning.tuner import Tuning
from tflite_ort.verification import Report, extract, verify
from tflite_ort.versioning import MutableOpResolver, OpResolver, Registration

__all__ = [
    "AllocationError",
    "BridgeError",
    "BudgetExceeded",
    "Budgets",
    "BuiltinOpResolver",
    "Bundle",
    "CacheWarning",
    "Delegate",
    "DelegateError",
    "DelegateWarning",
    "ExecutionProviderDelegate",
    "ExportError",
    "Installed",
    "InsufficientMemory",
    "Interpreter",
    "InterpreterWithCustomOps",
    "KernelError",
    "MalformedBundle",
    "MalformedModel",
    "Metadata",
    "MissingDelegate",
    "MissingEntry",
    "ModelError",
    "MutableOpResolver",
    "OpResolver",
    "OpResolverType",
    "Predictor",
    "Registration",
    "Report",
    "ResizeError",
    "SignatureRunner",
    "StateError",
    "TensorError",
    "TranslatorError",
    "Tuning",
    "Unbatchable",
    "UnknownOperator",
    "UnreadableModel",
    "UnresolvedOperator",
    "UnsupportedSchema",
    "UnsupportedVersion",
    "Untranslatable",
    "VersionError",
    "WellKnownOpResolver",
    "batch_shape",
    "batched_model",
    "export_onnx",
    "extract",
    "install_as",
    "load_delegate",
    "open_bundle",
    "verify",
]
