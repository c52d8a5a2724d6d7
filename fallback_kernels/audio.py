"""AudioSpectrogram and Mfcc: features of sounds, custom operators of TFLite's own resolver."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import OperatorView
from tflite_ort.schema.arithmetic.audio_features import (
    FLOOR,
    cosines,
    fft_length,
    hann,
    mel_weights,
    window_starts,
)
from tflite_ort.schema.values.well_known_options import (
    AudioSpectrogramOptions,
    MfccOptions,
    map_options,
)

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
