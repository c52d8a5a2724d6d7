"""SLICE and STRIDED_SLICE with constant bounds, as one thing."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.values.slices import StridedSlice, strided_slice
from tflite_ort.schema.values.view import OperatorView


def constant_slice(op: OperatorView[Any]) -> StridedSlice | None:
    """What a SLICE or STRIDED_SLICE cuts out of its first input; None if a bound is computed."""
    input, *bounds = op.inputs
    arrays = [
        each.data.reshape(-1) for each in bounds if each is not None and each.data is not None
    ]
    if input is None or len(arrays) != (2 if op.op is Op.SLICE else 3):
        return None
    if op.op is Op.STRIDED_SLICE:
        begin, end, strides = arrays
        return strided_slice(input.shape, begin, end, strides, op.options)
    starts, shape = tuple(arrays[0].tolist()), op.output.shape
    ends = tuple(first + size for first, size in zip(starts, shape, strict=True))
    return StridedSlice(starts, ends, (1,) * len(starts), (), (), shape)
