"""The arithmetic of AudioSpectrogram and Mfcc, which translators and kernels share; float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.well_known_options import MfccOptions

Floats = npt.NDArray[np.float64]

FLOOR = 1e-12  # of a filter's sum, before its logarithm


def fft_length(window: int) -> int:
    """The power of two that holds a window."""
    return 1 << (window - 1).bit_length()


def hann(window: int) -> Floats:
    """Periodic: the first is 0, the one after the last would be."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)


def window_starts(samples: int, window: int, stride: int) -> npt.NDArray[np.int64]:
    """Where the windows begin that fit whole into `samples`."""
    return np.arange(0, max(0, samples - window + 1), stride)


def mel_weights(options: MfccOptions, bins: int, sample_rate: int) -> tuple[range, Floats]:
    """The bins between the frequency limits, never the first one, and their weights [bins,
    channels]: triangles between centres evenly spaced in mel.

    A bin adds its share to the channel whose centre is next below, the rest to the one above. The
    other bins are not read: they may hold anything.
    """
    channels = options.filterbank_channel_count
    lowest, highest = float(options.lower_frequency_limit), float(options.upper_frequency_limit)
    if channels < 1 or sample_rate < 1 or bins < 2 or not 0 <= lowest < highest:
        raise ModelError(
            f"{channels} filters from {lowest} to {highest} Hz of {bins} bins at {sample_rate} Hz"
        )
    spacing = (_mel(highest) - _mel(lowest)) / (channels + 1)
    edges = _mel(lowest) + spacing * np.arange(channels + 2)  # of triangle c: c, c + 1, c + 2
    hertz = 0.5 * sample_rate / (bins - 1)
    first, last = int(1.5 + lowest / hertz), int(highest / hertz)
    if last >= bins:
        raise ModelError(f"bin {last} ({highest} Hz) is not among the {bins}")
    used = np.arange(first, last + 1)
    mels = _mel(used * hertz)
    below = np.searchsorted(edges[1:-1], mels)  # the edge below is edges[below]
    share = (edges[below + 1] - mels) / (edges[below + 1] - edges[below])
    weights, rows = np.zeros((used.size, channels + 2)), np.arange(used.size)
    weights[rows, below] = share
    weights[rows, below + 1] = 1 - share
    return range(first, first + used.size), weights[:, 1:-1]


def _mel(hertz: npt.ArrayLike) -> Floats:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))


def cosines(options: MfccOptions) -> Floats:
    """[channels, coefficients] of a discrete cosine transform."""
    channels, coefficients = options.filterbank_channel_count, options.dct_coefficient_count
    angles = np.pi / channels * np.outer(np.arange(channels) + 0.5, np.arange(coefficients))
    return np.asarray(np.sqrt(2.0 / channels) * np.cos(angles))
