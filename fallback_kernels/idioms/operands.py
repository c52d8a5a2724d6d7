"""Types, quantization and fused activations of a kernel's operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import (
    ActivationFunctionType,
    KernelError,
    OperatorView,
    TensorType,
    TensorView,
)
from tflite_ort.schema.arithmetic.fixed_point import saturate
from tflite_ort.schema.values.semantics import activation_bounds, quantized_activation_bounds

Array = npt.NDArray[Any]

FLOATS = frozenset({TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16})


def refusal(op: OperatorView[Any]) -> KernelError:
    """The error for operand types that a kernel does not implement."""
    inputs = ", ".join("none" if t is None else t.type.name for t in op.inputs)
    outputs = ", ".join(t.type.name for t in op.outputs)
    return KernelError(f"{inputs} to {outputs} is not implemented")


def scale(op: OperatorView[Any], tensor: TensorView | None) -> np.float32:
    """The one scale of a quantized tensor, in float32, in which TFLite divides scales."""
    if tensor is None or tensor.quantization is None or tensor.quantization.per_channel:
        name = "none" if tensor is None else repr(tensor.name)
        raise KernelError(f"tensor {name} is not quantized by a single scale")
    return tensor.quantization.sole_scale


def zero_point(op: OperatorView[Any], tensor: TensorView) -> int:
    """The one zero point of a quantized tensor; it is 0 for int16 codes in TFLite."""
    scale(op, tensor)
    if tensor.quantization is None:
        return 0
    zero = tensor.quantization.scalar_zero_point
    if tensor.type is TensorType.INT16 and zero != 0:
        raise KernelError(f"zero point of int16 {tensor.name!r} is {zero}, expected 0")
    return zero


def offset(op: OperatorView[Any], tensor: TensorView) -> int:
    """The zero point of operators that take what the file says for int16 too, in 32 bits."""
    scale(op, tensor)
    zero = 0 if tensor.quantization is None else tensor.quantization.scalar_zero_point
    return int(np.int64(zero).astype(np.int32))


def centred(op: OperatorView[Any], tensor: TensorView, codes: Array) -> npt.NDArray[np.int32]:
    """Codes less their zero point."""
    return np.asarray(codes.astype(np.int32) - np.int32(zero_point(op, tensor)), np.int32)


def clamped_codes(
    op: OperatorView[Any],
    codes: Array,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> Array:
    """Output codes, zero point included, clipped to the type and the activation of the output."""
    output = op.output
    low, high = quantized_activation_bounds(
        activation, output.type, float(scale(op, output)), zero_point(op, output)
    )
    return saturate(np.clip(codes, low, high), output.dtype)


def clamped(values: Array, activation: ActivationFunctionType) -> Array:
    """Real numbers or plain integers after a fused activation."""
    bounds = activation_bounds(activation)
    if bounds == (None, None):
        return values
    low, high = (None if bound is None else values.dtype.type(bound) for bound in bounds)
    return np.asarray(np.clip(values, low, high), values.dtype)


def finite(values: Array) -> Array:
    """Floats held between the largest ones, as TFLite's own kernels hold them; integers as they
    are."""
    if values.dtype.kind != "f":
        return values
    largest = np.finfo(values.dtype).max
    return np.asarray(np.clip(values, -largest, largest))


def require_output(op: OperatorView[Any], unit: float, zero: int) -> None:
    """Refuses an output whose scale and zero point are not those that the operator prescribes."""
    found = (float(scale(op, op.output)), zero_point(op, op.output))
    if found != (unit, zero):
        raise KernelError(f"output is quantized by {found}, expected {(unit, zero)}")
