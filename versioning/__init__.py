"""What the version of an operator means: known versions, required ones, runtimes, resolvers."""

from __future__ import annotations

from tflite_ort.versioning.disagreements import DISAGREEMENTS, Disagreement
from tflite_ort.versioning.honesty import required_versions, update_versions, version_warnings
from tflite_ort.versioning.known import KNOWN, KnownVersion, is_known, known_versions
from tflite_ort.versioning.registration import Registration
from tflite_ort.versioning.resolver import MutableOpResolver, OpResolver
from tflite_ort.versioning.rules import required_version
from tflite_ort.versioning.runtime import declared_runtime, minimum_runtime, runtime_version
from tflite_ort.versioning.signature import Signature, TensorSignature, signature

__all__ = [
    "DISAGREEMENTS",
    "KNOWN",
    "Disagreement",
    "KnownVersion",
    "MutableOpResolver",
    "OpResolver",
    "Registration",
    "Signature",
    "TensorSignature",
    "declared_runtime",
    "is_known",
    "known_versions",
    "minimum_runtime",
    "required_version",
    "required_versions",
    "runtime_version",
    "signature",
    "update_versions",
    "version_warnings",
]
