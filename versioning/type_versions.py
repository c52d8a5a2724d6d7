"""At which version of an operator TFLite's rules put an element type."""

from __future__ import annotations

from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.operators import data_input, data_types
from tflite_ort.versioning.known import known_versions
from tflite_ort.versioning.operator_signature import Signature, TensorSignature
from tflite_ort.versioning.rules import required_version

_SHAPE = (1, 1, 1, 1)
_INPUTS, _OUTPUTS = 5, 2
_ANY = TensorType.RESOURCE  # which no rule names
_PLAIN = {"dilation_w_factor": 1, "dilation_h_factor": 1}  # options that are not 0


def first_version(op: Op, type: TensorType) -> int:
    """The version that an operator needs all of whose tensors are of `type`; a later one may be
    needed for what else it does."""
    tensors = (TensorSignature(type, _SHAPE, quantized=quantized) for quantized in (False, True))
    required = (
        required_version(Signature(op, (tensor,) * _INPUTS, (tensor,) * _OUTPUTS, _PLAIN))
        for tensor in tensors
    )
    return min(*required, known_versions(op)[-1])


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
    other, data = TensorSignature(_ANY, _SHAPE), TensorSignature(type, _SHAPE)
    place = data_input(op)
    inputs = [data if i == place else other for i in range(_INPUTS)]
    return required_version(Signature(op, tuple(inputs), (other,) * _OUTPUTS, _PLAIN))
