"""TFLite Micro's operators over streams: samples cut into frames and put together again.

A `state` is what an operator keeps of the invokes before, from allocation on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.signal_options import (
    DelayOptions,
    FramerOptions,
    OverlapAddOptions,
    StackerOptions,
)
from tflite_ort.schema.values.well_known_options import map_options

View = OperatorView[Any]


@record(frozen=False)
class Kept:
    """What came and was not used up, along the last axis; None before the first invoke."""

    samples: Array | None = None


def _kept(op: View) -> Kept:
    return Kept()


@custom_kernel("SignalFramer", versions=(1, 1), state=_kept)
def signalframer(op: View, inputs: Inputs, state: State) -> Outputs:
    """(frames [..., N, frame_size] of a stream [..., N * frame_step], whether all are there).

    A frame that is not there yet is zero; TFLite Micro leaves it as it was.
    """
    options, (samples,) = map_options(op, FramerOptions), inputs
    if state.samples is None:
        before = options.frame_size - options.frame_step if options.prefill else 0
        state.samples = np.zeros((*samples.shape[:-1], before), samples.dtype)
    frames = np.zeros(op.output.shape, samples.dtype)
    present = True
    for i, part in enumerate(np.split(samples, frames.shape[-2], axis=-1)):
        stream = np.concatenate([state.samples, part], axis=-1)
        if stream.shape[-1] >= options.frame_size:
            frames[..., i, :] = stream[..., : options.frame_size]
            stream = stream[..., options.frame_step :]
        else:
            present = False
        state.samples = stream
    return frames, np.array(present)


@custom_kernel("SignalStacker", versions=(1, 1), state=_kept)
def signalstacker(op: View, inputs: Inputs, state: State) -> Outputs:
    """(frames side by side, whether there were enough): before the first stand copies of it.

    A stack that is not there is zero; TFLite Micro leaves it as it was.
    """
    options, (frame,) = map_options(op, StackerOptions), inputs
    first = np.tile(frame, options.stacker_left_context)
    stream = np.concatenate([first if state.samples is None else state.samples, frame])
    stack = np.zeros(op.output.shape, frame.dtype)
    present = stream.size >= stack.size
    if present:
        stack[:] = stream[: stack.size]
        stream = stream[options.stacker_step * frame.size :]
    state.samples = stream
    return stack, np.array(present)


@custom_kernel("SignalDelay", versions=(1, 1), state=_kept)
def signaldelay(op: View, inputs: Inputs, state: State) -> Outputs:
    """The stream `delay_length` samples later, after as many zeros."""
    options, (samples,) = map_options(op, DelayOptions), inputs
    if options.delay_length < 0:
        raise KernelError(f"delay_length is {options.delay_length}, expected at least 0")
    if state.samples is None:
        state.samples = np.zeros((*samples.shape[:-1], options.delay_length), samples.dtype)
    stream = np.concatenate([state.samples, samples], axis=-1)
    state.samples = stream[..., samples.shape[-1] :]
    return (stream[..., : samples.shape[-1]],)


@custom_kernel("SignalOverlapAdd", versions=(1, 1), state=_kept)
def signaloverlapadd(op: View, inputs: Inputs, state: State) -> Outputs:
    """[..., frames, size] summed `frame_step` apart, [..., frames * frame_step]; int16 is clamped
    at each sum."""
    (frames,), step = inputs, map_options(op, OverlapAddOptions).frame_step
    size = frames.shape[-1]
    sums = np.zeros((*frames.shape[:-2], size), frames.dtype)
    sums = sums if state.samples is None else state.samples
    done = []
    for i in range(frames.shape[-2]):
        sums = _sum(sums, frames[..., i, :])
        done.append(sums[..., :step])
        sums = np.concatenate([sums[..., step:], np.zeros_like(done[-1])], axis=-1)
    state.samples = sums
    return (np.concatenate(done, axis=-1),)


def _sum(x: Array, y: Array) -> Array:
    if x.dtype == np.float32:
        return np.asarray(x + y)
    limits = np.iinfo(np.int16)
    return (x.astype(np.int32) + y).clip(limits.min, limits.max).astype(np.int16)
