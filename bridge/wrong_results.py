"""What execution providers compute otherwise than TFLite; it is left to the next delegate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflite_ort.schema import MirrorPadMode, Op, OperatorView, TensorType

_View = OperatorView[Any]

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


def _openvino(op: _View) -> str | None:
    tensors = (*op.inputs, *op.outputs)
    types = {tensor.type for tensor in tensors if tensor is not None and not tensor.is_constant}
    if types & _WIDE:
        return "it keeps 31 bits of an integer and a sign"
    wrong, reason = _OPENVINO.get(op.op, (frozenset(), ""))
    return reason if types & wrong else None


def _odd_channels(op: _View) -> bool:
    """Multiples of 3 but not of 4 into multiples of 4, with windows of more than one cell."""
    filters = op.inputs[1]
    if filters is None or filters.dynamic:
        return True
    outputs, *window, channels = filters.shape
    return (
        channels > 3
        and channels % 3 == 0
        and channels % 4 != 0
        and outputs % 4 == 0
        and tuple(window) != (1, 1)
    )


def _without(position: int) -> Callable[[_View], bool]:
    """Whether an input is absent."""
    return lambda op: len(op.inputs) <= position or op.inputs[position] is None


def _always(op: _View) -> bool:
    return True


def _backwards(op: _View) -> bool:
    strides = op.inputs[3]
    return strides is None or strides.data is None or bool((strides.data < 0).any())


# By operator of WebGPU, where it is wrong, and why.
_WEBGPU: Mapping[Op, tuple[Callable[[_View], bool], str]] = {
    Op.CONV_2D: (_odd_channels, "it reads other channels of a multiple of 3"),
    Op.CONV_3D: (_without(2), "without a bias it ends the process"),
    Op.CONV_3D_TRANSPOSE: (_without(3), "without a bias it ends the process"),
    Op.COS: (_always, "it is off by 2e-4"),
    Op.MIRROR_PAD: (
        lambda op: op.options.mode is MirrorPadMode.SYMMETRIC,
        "its slices that go backwards start at the end",
    ),
    Op.SIN: (_always, "it is off by 2e-4"),
    Op.STRIDED_SLICE: (_backwards, "its slices that go backwards start at the end"),
    Op.TRANSPOSE_CONV: (_without(3), "without a bias it ends the process"),
}


def _webgpu(op: _View) -> str | None:
    wrong, reason = _WEBGPU.get(op.op, (None, ""))
    return reason if wrong is not None and wrong(op) else None


_PROVIDERS: Mapping[str, Callable[[_View], str | None]] = {
    "OpenVINOExecutionProvider": _openvino,
    "WebGpuExecutionProvider": _webgpu,
}


def wrong_result(provider: str, op: _View) -> str | None:
    """Why `provider` must not run `op`; None where it may."""
    find = _PROVIDERS.get(provider)
    reason = None if find is None else find(op)
    return None if reason is None else f"wrong in {provider}: {reason}"
