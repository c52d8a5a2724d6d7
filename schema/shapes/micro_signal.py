"""Shape rules of TFLite Micro's signal operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, of_type, required, rule
from tflite_ort.schema.values.signal_options import (
    FilterBankOptions,
    FourierOptions,
    FramerOptions,
    OverlapAddOptions,
    StackerOptions,
)
from tflite_ort.schema.values.sizes import Shape
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import map_options

_TRANSFORMED = (TensorType.INT16, TensorType.INT32, TensorType.FLOAT32)


def _samples(op: OperatorView[Any], *types: TensorType, least: int = 1) -> Shape:
    shape = of_type(op, 0, *types).shape
    if len(shape) < least:
        raise ModelError(f"{op.label}: input has rank {len(shape)}, expected at least {least}")
    return shape


@rule(
    *("SignalWindow", "SignalDelay", "SignalPCAN"),
    *("SignalFilterBankSquareRoot", "SignalFilterBankLog"),
)
def unchanged(op: OperatorView[Any]) -> Shapes:
    return (required(op, 0).shape,)


@rule("SignalFftAutoScale")
def fft_auto_scale(op: OperatorView[Any]) -> Shapes:
    return _samples(op, TensorType.INT16), ()


@rule("SignalRfft")
def rfft(op: OperatorView[Any]) -> Shapes:
    """[..., samples] to [..., fft_length + 2]: real and imaginary parts side by side."""
    shape, length = _samples(op, *_TRANSFORMED), _fft_length(op)
    if shape[-1] > length:
        raise ModelError(f"{op.label}: {shape[-1]} samples for a transform of {length}")
    return ((*shape[:-1], length + 2),)


@rule("SignalIrfft")
def irfft(op: OperatorView[Any]) -> Shapes:
    """[..., fft_length + 2] to [..., fft_length]."""
    shape, length = _samples(op, *_TRANSFORMED), _fft_length(op)
    if shape[-1] != length + 2:
        raise ModelError(f"{op.label}: {shape[-1]} parts for a transform of {length}")
    return ((*shape[:-1], length),)


def _fft_length(op: OperatorView[Any]) -> int:
    """An even number whose half is a product of 2, 3 and 5."""
    length = rest = map_options(op, FourierOptions).fft_length
    if length >= 4 and length % 2 == 0:
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
    if rest != 1:
        raise ModelError(f"{op.label}: fft_length is {length}, expected 2 times 2s, 3s and 5s")
    return length


@rule("SignalEnergy")
def energy(op: OperatorView[Any]) -> Shapes:
    """Half as many as there are real and imaginary parts."""
    return ((_samples(op, TensorType.INT16)[0] // 2,),)


@rule("SignalFilterBank")
def filter_bank(op: OperatorView[Any]) -> Shapes:
    return ((map_options(op, FilterBankOptions).num_channels,),)


@rule("SignalFilterBankSpectralSubtraction")
def spectral_subtraction(op: OperatorView[Any]) -> Shapes:
    return (_samples(op, TensorType.UINT32),) * 2


@rule("SignalFramer")
def framer(op: OperatorView[Any]) -> Shapes:
    """[..., frames * step] to [..., frames, size], and whether all frames were there."""
    options, shape = map_options(op, FramerOptions), _samples(op, TensorType.INT16)
    size, step = options.frame_size, options.frame_step
    if step < 1 or size < step or shape[-1] % step or shape[-1] < step:
        raise ModelError(f"{op.label}: {shape[-1]} samples in frames of {size} every {step}")
    return (*shape[:-1], shape[-1] // step, size), ()


@rule("SignalStacker")
def stacker(op: OperatorView[Any]) -> Shapes:
    """Frames [channels] to a stack of them, and whether there were enough."""
    options, shape = map_options(op, StackerOptions), _samples(op, TensorType.INT16)
    channels, step = options.num_channels, options.stacker_step
    if shape != (channels,) or not 1 <= step <= options.frames:
        raise ModelError(f"{op.label}: {shape} for {channels} channels every {step} frames")
    return (channels * options.frames,), ()


@rule("SignalOverlapAdd")
def overlap_add(op: OperatorView[Any]) -> Shapes:
    """[..., frames, size] to [..., frames * step]."""
    shape = _samples(op, TensorType.INT16, TensorType.FLOAT32, least=2)
    step = map_options(op, OverlapAddOptions).frame_step
    if not 1 <= step <= shape[-1]:
        raise ModelError(f"{op.label}: frames of {shape[-1]} every {step}")
    return ((*shape[:-2], shape[-2] * step),)
