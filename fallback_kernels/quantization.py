"""Between real numbers and codes: QUANTIZE, DEQUANTIZE, FAKE_QUANT, CAST, DENSIFY."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.operands import refusal, scale
from tflite_ort.fallback_kernels.idioms.parts import in_parts
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    FakeQuantOptions,
    KernelError,
    Op,
    OperatorView,
    Quantization,
    TensorType,
    TensorView,
)
from tflite_ort.schema.arithmetic.fixed_point import rescale, round_half_away
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.values.semantics import fake_quant_range, quantized_range

Array = npt.NDArray[Any]
View = OperatorView[Any]

_T = TensorType
_FLOATS = frozenset({_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16})
_SMALL = frozenset(PACKED_BITS)
# No code of 16 bits less its zero point is as large.
_BEYOND = np.float32(2.0**18)
_REQUANTIZED = {
    _T.UINT8: (_T.UINT8, _T.INT8, _T.INT16),
    _T.INT8: (_T.UINT8, _T.INT8, _T.INT16),
    _T.INT16: (_T.INT8, _T.INT16, _T.INT32),
    _T.INT32: (_T.INT8, _T.INT16),
}


@kernel(Op.QUANTIZE, versions=(1, 6))
def quantize(op: View, inputs: Inputs, state: State) -> Outputs:
    """round(x / scale) + zero_point, halves away from zero; codes are rescaled by s_in / s_out."""
    (x,) = inputs
    input, output = op["input"], op.output
    if input.type is _T.FLOAT32:
        return (_quantized(op, x),)
    if output.type not in _REQUANTIZED.get(input.type, ()):
        raise refusal(op)
    units = float(scale(op, input)), float(scale(op, output))
    assert input.quantization is not None and output.quantization is not None
    zeros = input.quantization.scalar_zero_point, output.quantization.scalar_zero_point
    if input.type is output.type is _T.INT16 and any(zeros):
        raise KernelError(f"zero points of int16 codes are {zeros}, expected 0")
    centred = x.astype(np.int32) - np.int32(zeros[0])  # wraps, as TFLite's does
    codes = rescale(centred, units[0] / units[1]).astype(np.int64)
    low, high = quantized_range(output.type)
    return (np.clip(codes + zeros[1], low, high).astype(output.dtype),)


def _quantized(op: View, x: npt.NDArray[np.float32]) -> Array:
    quantization = op.output.quantization
    allowed = {_T.UINT8, _T.INT8, _T.INT16} | (_SMALL - {_T.INT2})
    if quantization is None or op.output.type not in allowed:
        raise refusal(op)
    unit, zero = _along(quantization, x.ndim)
    with np.errstate(over="ignore"):
        codes = round_half_away(np.clip(x / unit, -_BEYOND, _BEYOND))
    low, high = quantized_range(op.output.type)
    # NaN has no code; TFLite's default kernels give the highest one.
    codes = np.where(np.isnan(codes), np.inf, codes.astype(np.float64))
    return np.asarray(np.clip(codes + zero, low, high), op.output.dtype)


@kernel(Op.DEQUANTIZE, versions=(1, 9))
def dequantize(op: View, inputs: Inputs, state: State) -> Outputs:
    """scale * (x - zero_point) as float32; small floats are widened."""
    (x,) = inputs
    input = op["input"]
    if input.type in (_T.FLOAT16, _T.FLOAT8_E4M3FN, _T.FLOAT8_E5M2):
        return (x.astype(np.float32),)
    if input.type not in _SMALL | {_T.UINT8, _T.INT8, _T.INT16} or input.quantization is None:
        raise refusal(op)
    unit, zero = _along(input.quantization, x.ndim)
    if input.type is _T.INT16 and np.any(zero):
        raise KernelError(f"zero point of an int16 tensor is {zero}, expected 0")
    return ((x.astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * unit,)


def _along(
    quantization: Quantization, rank: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Scale and zero point in a shape that broadcasts along their axis."""
    if not quantization.per_channel:
        return quantization.scale[0], quantization.zero_point[0]
    shape = [1] * rank
    shape[quantization.axis] = -1
    return quantization.scale.reshape(shape), quantization.zero_point.reshape(shape)


@kernel(Op.FAKE_QUANT, versions=(1, 2))
def fake_quant(op: OperatorView[FakeQuantOptions], inputs: Inputs, state: State) -> Outputs:
    """The nearest of 2**num_bits numbers, halves up; the lowest one for NaN."""
    (x,) = inputs
    if x.dtype != np.float32:
        raise refusal(op)
    step, low, high = fake_quant_range(op.options)
    clipped = np.fmin(high, np.fmax(low, x)) - low
    return (round_half_away(clipped * (np.float32(1) / step)) * step + low,)


@kernel(Op.CAST, versions=(1, 9))
def cast(op: View, inputs: Inputs, state: State) -> Outputs:
    """The number as another type; quantization is ignored.

    A float to an integer type truncates and saturates, NaN becomes the highest value; between
    integer types the bits wrap; a complex number gives its real part.
    """
    (x,) = inputs
    source, target = op["input"], op.output
    small = {source.type, target.type} & _SMALL
    if small and _T.FLOAT32 not in (source.type, target.type):
        raise refusal(op)
    if _T.STRING in (source.type, target.type):
        raise refusal(op)
    if np.iscomplexobj(x) and not np.issubdtype(target.dtype, np.complexfloating):
        x = x.real
    if target.type in _SMALL or (
        source.type in _FLOATS | {_T.COMPLEX64} and np.issubdtype(target.dtype, np.integer)
    ):
        return (_truncated(x, target),)
    with np.errstate(over="ignore"):
        return (x.astype(target.dtype),)


def _truncated(x: Array, target: TensorView) -> Array:
    """Integers of floats, or within the range of a small type."""
    bounds = np.iinfo(target.dtype)
    low, high = bounds.min, bounds.max
    if target.type in _SMALL:
        low, high = quantized_range(target.type)

    def held(numbers: Array) -> Array:
        wide = numbers.astype(np.float64)
        below, inside = wide < low, wide < float(high) + 1
        integers = np.where(inside & ~below, wide, 0).astype(target.dtype)
        integers[below] = low
        integers[~inside] = high
        return integers

    return in_parts(held, x, dtype=target.dtype)


@kernel(Op.DENSIFY, versions=(1, 1))
def densify(op: View, inputs: Inputs, state: State) -> Outputs:
    """The constant itself: a view holds sparse constants as dense arrays."""
    if not op["input"].is_constant:
        raise KernelError("input is not a constant")
    return (inputs[0],)
