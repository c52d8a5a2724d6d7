"""Shape rules of TFLite Micro's signal operators that keep a state."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule, same_shape
from tflite_ort.schema.values.signal_options import (
    FramerOptions,
    OverlapAddOptions,
    StackerOptions,
)
from tflite_ort.schema.values.sizes import Shape
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import map_options

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
