"""The types that TFLite takes for an operator, by its tables of versions."""

from __future__ import annotations

from tflite_ort.command.operator_status import INPUTS, OUTPUTS, PLAIN, SHAPE
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.operators import data_input, data_types
from tflite_ort.versioning.operator_signature import Signature, TensorSignature
from tflite_ort.versioning.rules import required_version

_ANY = TensorType.RESOURCE  # which no rule names


def accepted_types(op: Op) -> frozenset[TensorType]:
    """The types of data that TFLite has a kernel for, as far as tables tell, and those that
    brought a version of their own."""
    declared = data_types(op)
    if declared is not None:
        return declared
    return frozenset(
        type for type in TensorType if _version_for_data(op, type) != _version_for_data(op, _ANY)
    )


def _version_for_data(op: Op, type: TensorType) -> int:
    other, data = TensorSignature(_ANY, SHAPE), TensorSignature(type, SHAPE)
    place = data_input(op)
    inputs = [data if i == place else other for i in range(INPUTS)]
    return required_version(Signature(op, tuple(inputs), (other,) * OUTPUTS, PLAIN))
