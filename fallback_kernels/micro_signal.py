"""TFLite Micro's signal operators: from samples to the features that speech models take.

Integers of fixed width throughout, wrapped and rounded where TFLite Micro wraps and rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms import fixed_point_fft
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.signal_options import (
    DelayOptions,
    EnergyOptions,
    FourierOptions,
    FramerOptions,
    LogOptions,
    OverlapAddOptions,
    PcanOptions,
    SpectralSubtractionOptions,
    StackerOptions,
    WindowOptions,
)
from tflite_ort.schema.values.well_known_options import map_options

View = OperatorView[Any]
Int32 = npt.NDArray[np.int32]

_INT16 = np.iinfo(np.int16)
_LOG_TABLE = 128  # steps of the table of logarithms between powers of two
_SNR_BITS, _GAIN_BITS = 12, 6  # fractions of SignalPCAN's ratio and of its result


@custom_kernel("SignalWindow", versions=(1, 1))
def signalwindow(op: View, inputs: Inputs, state: State) -> Outputs:
    """input * weights >> shift, clamped to int16; the weights are repeated."""
    samples, weights = inputs
    shift = map_options(op, WindowOptions).shift
    frames = samples.reshape(-1, weights.size).astype(np.int32)
    product = (frames * weights >> shift).clip(_INT16.min, _INT16.max)
    return (product.astype(np.int16).reshape(samples.shape),)


@custom_kernel("SignalFftAutoScale", versions=(1, 1))
def signalfftautoscale(op: View, inputs: Inputs, state: State) -> Outputs:
    """(samples shifted up until the largest has no bit left, by how many bits)."""
    (samples,) = inputs
    bits = max(0, 15 - _bit_length(_largest(samples) % 2**32))
    shifted = samples.astype(np.int32) << bits
    return shifted.astype(np.int16), np.array(bits, np.int32)


def _largest(samples: Array) -> int:
    """The greatest magnitude, found sample by sample: that of -32768 wraps, after which anything
    is greater."""
    largest = 0
    for sample in samples.tolist():
        if sample > largest:
            largest = sample
        elif -sample > largest:
            largest = -sample if sample > _INT16.min else sample
    return largest


def _bit_length(value: int) -> int:
    """How many bits `value` has; TFLite Micro counts 32 of zero."""
    return value.bit_length() if value else 32


@custom_kernel("SignalRfft", versions=(1, 1))
def signalrfft(op: View, inputs: Inputs, state: State) -> Outputs:
    """[..., samples], filled with zeros, to [..., fft_length + 2]: real and imaginary parts."""
    (samples,), length = inputs, map_options(op, FourierOptions).fft_length
    if samples.dtype == np.float32:
        bins = np.fft.rfft(samples, length).astype(np.complex64)
        return (np.ascontiguousarray(bins).view(np.float32),)
    around = [(0, 0)] * (samples.ndim - 1) + [(0, length - samples.shape[-1])]
    return (fixed_point_fft.rfft(np.pad(samples, around)),)


@custom_kernel("SignalIrfft", versions=(1, 1))
def signalirfft(op: View, inputs: Inputs, state: State) -> Outputs:
    """[..., fft_length + 2] to [..., fft_length]; floats are divided by the length."""
    (parts,), length = inputs, map_options(op, FourierOptions).fft_length
    if parts.dtype == np.float32:
        bins = np.ascontiguousarray(parts).view(np.complex64)
        return (np.fft.irfft(bins, length).astype(np.float32),)
    return (fixed_point_fft.irfft(parts),)


@custom_kernel("SignalEnergy", versions=(1, 1))
def signalenergy(op: View, inputs: Inputs, state: State) -> Outputs:
    """Squared magnitudes of the bins asked for; 0 for the others, which TFLite Micro leaves."""
    options, parts = map_options(op, EnergyOptions), inputs[0].reshape(-1, 2).astype(np.int64)
    if not 0 <= options.start_index <= options.end_index <= len(parts):
        raise KernelError(
            f"bins {options.start_index} to {options.end_index} of a spectrum of {len(parts)}"
        )
    used = slice(options.start_index, options.end_index)
    energy = np.zeros(len(parts), np.uint32)
    energy[used] = (parts[used] ** 2).sum(axis=1)
    return (energy,)


@custom_kernel(
    "SignalFilterBank",
    versions=(1, 1),
)
def signalfilterbank(op: View, inputs: Inputs, state: State) -> Outputs:
    """Channel c: weights of band c + 1 and the rest of the weights of band c, times the energy."""
    energy, weights, unweights, *bands = inputs
    rising, falling = [], []
    for start, weight_start, width in zip(*(band.tolist() for band in bands), strict=True):
        used = energy[start : start + width].astype(np.uint64)
        which = slice(weight_start, weight_start + width)
        if min(start, weight_start) < 0 or not used.size == weights[which].size == max(0, width):
            raise KernelError(f"a band of {width} from {start}, weights from {weight_start}")
        rising.append(_dot(weights[which], used))
        falling.append(_dot(unweights[which], used))
    channels = op.output.shape[0]
    if len(rising) <= channels:
        raise KernelError(f"{len(rising)} bands for {channels} channels")
    sums = np.array(rising[1:], np.uint64) + np.array(falling[:-1], np.uint64)
    return (sums[:channels],)


def _dot(weights: Array, values: npt.NDArray[np.uint64]) -> np.uint64:
    return np.uint64((weights.astype(np.uint64) * values).sum(dtype=np.uint64))


@custom_kernel("SignalFilterBankSquareRoot", versions=(1, 1))
def signalfilterbanksquareroot(op: View, inputs: Inputs, state: State) -> Outputs:
    """round(sqrt(input)) >> scale_bits."""
    values, bits = inputs[0], int(inputs[1].reshape(-1)[0])
    if not 0 <= bits < 32:
        raise KernelError(f"scale_bits is {bits}, expected 0 to 31")
    roots = np.array([_root(value) for value in values.reshape(-1).tolist()], np.uint32)
    return (roots.reshape(values.shape) >> np.uint32(bits),)


def _root(value: int) -> int:
    """The nearest integer; roots of 32 bits do not round up to the 17th."""
    root = math.isqrt(value)
    most = 0xFFFF if value < 2**32 else 0xFFFFFFFF
    return root + (value - root * root > root and root != most)


@custom_kernel(
    "SignalFilterBankSpectralSubtraction",
    versions=(1, 1),
    state=lambda op: np.zeros(op.output.shape, np.uint32),
)
def signalfilterbankspectralsubtraction(op: View, inputs: Inputs, state: State) -> Outputs:
    """(input less the noise, the noise): that is a running mean of the input, kept as `state`."""
    options, (values,) = map_options(op, SpectralSubtractionOptions), inputs
    if values.shape != (options.num_channels,):
        raise KernelError(f"{values.shape[0]} channels, the options say {options.num_channels}")
    odd = np.arange(values.size) % 2 == 1
    share = np.where(odd, options.alternate_smoothing, options.smoothing).astype(np.uint64)
    rest = np.where(odd, options.alternate_one_minus_smoothing, options.one_minus_smoothing)
    smooth, bits = np.uint32(options.smoothing_bits), np.uint64(options.spectral_subtraction_bits)
    scaled = values << smooth
    mean = scaled.astype(np.uint64) * share + state.astype(np.uint64) * rest.astype(np.uint64)
    noise = (mean >> bits).astype(np.uint32)
    removed = np.minimum(noise, scaled)
    state[:] = removed if options.clamping else noise
    least = values.astype(np.uint64) * np.uint64(options.min_signal_remaining % 2**64) >> bits
    left = np.maximum((scaled - removed) >> smooth, least.astype(np.uint32))
    return left, state.copy()


@custom_kernel("SignalPCAN", versions=(1, 1))
def signalpcan(op: View, inputs: Inputs, state: State) -> Outputs:
    """The input's ratio to the noise, r, as r * r / 4 below 2 and r - 1 from there on."""
    values, noise, table = inputs
    shift = np.uint64(map_options(op, PcanOptions).snr_shift)
    gain = _interpolated(noise, table.astype(np.int32)).astype(np.uint64) & np.uint64(2**32 - 1)
    ratio = (values.astype(np.uint64) * gain >> shift).astype(np.uint32)
    square = ratio * ratio >> np.uint32(2 + 2 * _SNR_BITS - _GAIN_BITS)
    less_one = (ratio >> np.uint32(_SNR_BITS - _GAIN_BITS)) - np.uint32(1 << _GAIN_BITS)
    return (np.where(ratio < 2 << _SNR_BITS, square, less_one),)


def _interpolated(x: npt.NDArray[np.uint32], table: Int32) -> npt.NDArray[np.int16]:
    """A function of `x` by a table: its first three values, then four entries for each power of
    two, of which three are a polynomial's and one is unused."""
    bits = np.array([_bit_length(value) for value in x.tolist()], np.int32)
    at = np.maximum(4 * bits - 6, 0)
    if at.max(initial=0) + 2 >= table.size:
        raise KernelError(f"the table has {table.size} values, {at.max() + 3} are needed")
    left, right = np.maximum(11 - bits, 0), np.maximum(bits - 11, 0)
    share = (x.astype(np.int64) << left >> right & 0x3FF).astype(np.int32)
    curve = (table[at + 2] * share >> 5) + (table[at + 1] << 5)
    value = (curve * share + (1 << 14) >> 15) + table[at]
    return np.where(x <= 2, table[np.minimum(x, 2)], value).astype(np.int16)


@custom_kernel("SignalFilterBankLog", versions=(1, 1))
def signalfilterbanklog(op: View, inputs: Inputs, state: State) -> Outputs:
    """output_scale * log(input << input_correction_bits), 0 for 0 and 1; at most 32767."""
    options = map_options(op, LogOptions)
    scaled = inputs[0] << np.uint32(options.input_correction_bits)
    logs = np.array([_log(value, options.output_scale) for value in scaled.tolist()])
    return (np.where(scaled > 1, np.minimum(logs, _INT16.max), 0).astype(np.int16),)


def _log(value: int, scale: int) -> int:
    """scale * log(value) in 16 bits of fraction: the logarithm to the base 2 from a table."""
    whole = max(value, 1).bit_length() - 1
    fraction = ((value - (1 << whole)) << 16 >> whole) if whole else 0
    step, within = divmod(fraction, 2**16 // _LOG_TABLE)
    near, far = int(LOG_TABLE[step]), int(LOG_TABLE[step + 1])
    log2 = (whole << 16) + fraction + near + ((far - near) * within >> 16)
    natural = (log2 * round(math.log(2) * 2**16) + 2**15) >> 16
    return ((scale * natural + 2**15) % 2**32) >> 16


def _log_table() -> npt.NDArray[np.int64]:
    """log2(1 + x) - x in 16 bits of fraction, at the ends of the steps from 0 to 1."""
    x = np.arange(_LOG_TABLE + 1) / _LOG_TABLE
    return np.rint((np.log2(1 + x) - x) * 2**16).astype(np.int64)


LOG_TABLE = _log_table()


# Streams -----------------------------------------------------------------------------------------


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
