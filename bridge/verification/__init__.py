"""Verification: a model run in several runtimes, and where they differ."""

from __future__ import annotations

from tflite_ort.comparison.differences import Difference, Tolerance
from tflite_ort.verification.extraction import ExtractionError, extract
from tflite_ort.verification.report import Report
from tflite_ort.verification.results import (
    CalledOperator,
    OperatorResult,
    OutputResult,
    RuntimeResult,
    Scores,
    TensorResult,
    Values,
    Verdict,
)
from tflite_ort.verification.runtimes import Settings
from tflite_ort.verification.samples import Random
from tflite_ort.verification.verifying import VerificationError, verify

__all__ = [
    "CalledOperator",
    "Difference",
    "ExtractionError",
    "OperatorResult",
    "OutputResult",
    "Random",
    "Report",
    "RuntimeResult",
    "Scores",
    "Settings",
    "TensorResult",
    "Tolerance",
    "Values",
    "Verdict",
    "VerificationError",
    "extract",
    "verify",
]
