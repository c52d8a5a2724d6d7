"""What the version of an operator means: known versions, required ones, runtimes, resolvers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.base.optional import late_names

if TYPE_CHECKING:
    from tflite_ort.versioning.disagreements import DISAGREEMENTS, Disagreement
    from tflite_ort.versioning.honesty import required_versions, update_versions, version_warnings
    from tflite_ort.versioning.known import KNOWN, KnownVersion, is_known, known_versions
    from tflite_ort.versioning.operator_signature import Signature, TensorSignature, signature
    from tflite_ort.versioning.registration import Registration
    from tflite_ort.versioning.resolver import MutableOpResolver, OpResolver
    from tflite_ort.versioning.rules import required_version
    from tflite_ort.versioning.runtime import declared_runtime, minimum_runtime, runtime_version

__getattr__ = late_names(
    __name__,
    {
        "DISAGREEMENTS": "tflite_ort.versioning.disagreements",
        "Disagreement": "tflite_ort.versioning.disagreements",
        "required_versions": "tflite_ort.versioning.honesty",
        "update_versions": "tflite_ort.versioning.honesty",
        "version_warnings": "tflite_ort.versioning.honesty",
        "KNOWN": "tflite_ort.versioning.known",
        "KnownVersion": "tflite_ort.versioning.known",
        "is_known": "tflite_ort.versioning.known",
        "known_versions": "tflite_ort.versioning.known",
        "Registration": "tflite_ort.versioning.registration",
        "MutableOpResolver": "tflite_ort.versioning.resolver",
        "OpResolver": "tflite_ort.versioning.resolver",
        "required_version": "tflite_ort.versioning.rules",
        "declared_runtime": "tflite_ort.versioning.runtime",
        "minimum_runtime": "tflite_ort.versioning.runtime",
        "runtime_version": "tflite_ort.versioning.runtime",
        "Signature": "tflite_ort.versioning.operator_signature",
        "TensorSignature": "tflite_ort.versioning.operator_signature",
        "signature": "tflite_ort.versioning.operator_signature",
    },
)

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
