"""The version an operator needs for what it does."""

from __future__ import annotations

from tflite_ort.schema import Op
from tflite_ort.versioning import rules_arrays, rules_layers
from tflite_ort.versioning.conditions import Rule
from tflite_ort.versioning.operator_signature import Signature

# An operator without a row needs version 1, whatever it does.
RULES: dict[Op, Rule] = {**rules_layers.RULES, **rules_arrays.RULES}


def required_version(signature: Signature) -> int:
    """The lowest version that has everything `signature` uses, by TFLite's own rules.

    In a few cases these give a version that no TFLite registers; see
    `tflite_ort.versioning.disagreements`.
    """
    rule = RULES.get(signature.op)
    return 1 if rule is None else rule(signature)
