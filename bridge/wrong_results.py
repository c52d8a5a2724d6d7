"""What execution providers compute otherwise than TFLite; it is left to the next delegate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tflite_ort.schema import Op, OperatorView, TensorType

_WIDE = frozenset({TensorType.INT64, TensorType.UINT32, TensorType.UINT64})

# By operator of OpenVINO, the types of tensors with which it is wrong, and why.
_OPENVINO: Mapping[Op, tuple[frozenset[TensorType], str]] = {
    Op.BITCAST: (frozenset(TensorType), "it moves bits in integers of 32 bits"),
    Op.MEAN: (frozenset({TensorType.INT32}), "it sums integers as floats"),
    Op.NEG: (frozenset({TensorType.INT8}), "its negative of -128 is 127"),
    Op.REDUCE_MAX: (frozenset({TensorType.INT32}), "it compares integers as floats"),
    Op.REDUCE_MIN: (frozenset({TensorType.INT32}), "it compares integers as floats"),
    Op.TOPK_V2: (frozenset(TensorType), "equal values are not in the order of their positions"),
}


def wrong_result(provider: str, op: OperatorView[Any]) -> str | None:
    """Why `provider` must not run `op`; None where it may."""
    if provider != "OpenVINOExecutionProvider":
        return None
    tensors = (*op.inputs, *op.outputs)
    types = {tensor.type for tensor in tensors if tensor is not None and not tensor.is_constant}
    if types & _WIDE:
        return f"wrong in {provider}: it keeps 31 bits of an integer and a sign"
    wrong, reason = _OPENVINO.get(op.op, (frozenset(), ""))
    return f"wrong in {provider}: {reason}" if types & wrong else None
