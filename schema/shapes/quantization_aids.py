"""Shape rules of the custom operators that aid quantization."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule, same_shape
from tflite_ort.schema.values.sizes import common, differ
from tflite_ort.schema.values.view import OperatorView

rule("aeq.hadamard_rotation")(same_shape)


@rule("NumericVerify")
def numericverify(op: OperatorView[Any]) -> Shapes:
    """Both inputs have one shape. TFLite reads beyond a smaller reference."""
    codes, reference = op["input"].shape, op["reference"].shape
    if differ(codes, reference):
        raise ModelError(f"{op.label}: shapes {codes} and {reference} differ")
    return (tuple(map(common, codes, reference)),)
