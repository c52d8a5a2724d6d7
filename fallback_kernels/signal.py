"""RFFT2D, parts of complex numbers, and AudioSpectrogram and Mfcc of TFLite's own resolver."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import (
    Array,
    Inputs,
    Outputs,
    State,
    custom_kernel,
    kernel,
)
from tflite_ort.schema import KernelError, Op, OperatorView
from tflite_ort.schema.arithmetic.audio_features import (
    FLOOR,
    cosines,
    fft_length,
    hann,
    mel_weights,
    window_starts,
)
from tflite_ort.schema.shapes.signal import check_lengths
from tflite_ort.schema.values.well_known_options import (
    AudioSpectrogramOptions,
    MfccOptions,
    map_options,
)

# So many numbers are transformed at once: their doubles stay in the cache.
_TOGETHER = 1 << 15


@kernel(Op.RFFT2D, versions=(1, 1))
def rfft2d(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The transform of the last two dimensions, cut or filled with zeros to `fft_length`:
    float32 [..., H, W] to complex64 [..., height, width / 2 + 1], computed in float64."""
    x = inputs[0]
    if x.dtype != np.float32:
        raise KernelError(f"input is {x.dtype}, expected float32")
    lengths = check_lengths(x.ndim, inputs[1])
    height, width = lengths
    if height != 1 or x.shape[-2] != 1:
        return (np.fft.rfft2(x.astype(np.float64), lengths).astype(np.complex64),)
    result = np.empty((*x.shape[:-1], width // 2 + 1), np.complex64)
    rows, halves = x.reshape(-1, x.shape[-1]), result.reshape(-1, result.shape[-1])
    count = max(1, _TOGETHER // width)
    for start in range(0, len(rows), count):
        some = rows[start : start + count].astype(np.float64)
        halves[start : start + count] = np.fft.rfft(some, width)
    return (result,)


@kernel(Op.REAL, versions=(1, 1))
def real(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The real parts."""
    return (_complex(inputs[0]).real.copy(),)


@kernel(Op.IMAG, versions=(1, 1))
def imag(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The imaginary parts."""
    return (_complex(inputs[0]).imag.copy(),)


@kernel(Op.COMPLEX_ABS, versions=(1, 1))
def complex_abs(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The magnitudes."""
    return (np.asarray(np.abs(_complex(inputs[0]))),)


def _complex(x: Array) -> Array:
    if x.dtype.kind != "c":
        raise KernelError(f"input is {x.dtype}, expected complex numbers")
    return x


View = OperatorView[Any]


@custom_kernel("AudioSpectrogram", versions=(1, 1))
def audiospectrogram(op: View, inputs: Inputs, state: State) -> Outputs:
    """Samples [S, C] to [C, windows, bins]: magnitudes of Hann windows' spectra, or squares."""
    options, (samples,) = map_options(op, AudioSpectrogramOptions), inputs
    window = options.window_size
    starts = window_starts(len(samples), window, options.stride)
    windows = samples.T.astype(np.float64)[:, starts[:, None] + np.arange(window)] * hann(window)
    spectrum = np.fft.rfft(windows, fft_length(window))
    squares = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    return (squares if options.magnitude_squared else np.sqrt(squares),)


@custom_kernel("Mfcc", versions=(1, 1))
def mfcc(op: View, inputs: Inputs, state: State) -> Outputs:
    """The mel-frequency cepstral coefficients [C, W, N] of squared spectrograms [C, W, bins].

    They are the cosine transform of the logarithms of mel-spaced sums of magnitudes.
    """
    options, (squares, rate) = map_options(op, MfccOptions), inputs
    used, weights = mel_weights(options, squares.shape[2], int(rate.reshape(-1)[0]))
    sums = np.sqrt(squares[..., used.start : used.stop].astype(np.float64)) @ weights
    return ((np.log(np.maximum(sums, FLOOR)) @ cosines(options)).astype(np.float32),)
