"""Shape rules of TFLite Micro's signal operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule, same_shape
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

rule("SignalWindow", "SignalPCAN", "SignalFilterBankSquareRoot", "SignalFilterBankLog")(same_shape)


@rule("SignalFftAutoScale")
def fft_auto_scale(op: OperatorView[Any]) -> Shapes:
    """The input's shape, and one shift."""
    return samples(op), ()


@rule("SignalRfft")
def rfft(op: OperatorView[Any]) -> Shapes:
    """[..., samples] to [..., fft_length + 2]: real and imaginary parts side by side."""
    shape, length = samples(op), _fft_length(op)
    if shape[-1] > length:
        raise ModelError(f"{op.label}: {shape[-1]} samples for a transform of {length}")
    return ((*shape[:-1], length + 2),)


@rule("SignalIrfft")
def irfft(op: OperatorView[Any]) -> Shapes:
    """[..., fft_length + 2] to [..., fft_length]."""
    shape, length = samples(op), _fft_length(op)
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
    return ((samples(op)[0] // 2,),)


@rule("SignalFilterBank")
def filter_bank(op: OperatorView[Any]) -> Shapes:
    """One number for each channel."""
    return ((map_options(op, FilterBankOptions).num_channels,),)


@rule("SignalFilterBankSpectralSubtraction")
def spectral_subtraction(op: OperatorView[Any]) -> Shapes:
    """The input's shape, twice: what is left, and the noise."""
    return (samples(op),) * 2


rule("SignalDelay")(same_shape)


@rule("SignalFramer")
def framer(op: OperatorView[Any]) -> Shapes:
    """[..., frames * step] to [..., frames, size], and whether all frames were there."""
    options, shape = map_options(op, FramerOptions), samples(op)
    size, step = options.frame_size, options.frame_step
    if step < 1 or size < step or shape[-1] % step or shape[-1] < step:
        raise ModelError(f"{op.label}: {shape[-1]} samples in frames of {size} every {step}")
    return (*shape[:-1], shape[-1] // step, size), ()


@rule("SignalStacker")
def stacker(op: OperatorView[Any]) -> Shapes:
    """Frames [channels] to a stack of them, and whether there were enough."""
    options, shape = map_options(op, StackerOptions), samples(op)
    channels, step = options.num_channels, options.stacker_step
    if shape != (channels,) or not 1 <= step <= options.frames:
        raise ModelError(f"{op.label}: {shape} for {channels} channels every {step} frames")
    return (channels * options.frames,), ()


@rule("SignalOverlapAdd")
def overlap_add(op: OperatorView[Any]) -> Shapes:
    """[..., frames, size] to [..., frames * step]."""
    shape = samples(op, least=2)
    step = map_options(op, OverlapAddOptions).frame_step
    if not 1 <= step <= shape[-1]:
        raise ModelError(f"{op.label}: frames of {shape[-1]} every {step}")
    return ((*shape[:-2], shape[-2] * step),)


def samples(op: OperatorView[Any], least: int = 1) -> Shape:
    """The shape of the input, which has at least `least` dimensions."""
    shape = op["input"].shape
    if len(shape) < least:
        raise ModelError(f"{op.label}: input has rank {len(shape)}, expected at least {least}")
    return shape
