"""Shape rules of Fourier transforms, of parts of complex numbers, and of features of sounds."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.arithmetic.audio_features import fft_length
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, Shapes, of_rank, rule
from tflite_ort.schema.values.sizes import is_known, unknown_shape
from tflite_ort.schema.values.view import Array, OperatorView
from tflite_ort.schema.values.well_known_options import (
    AudioSpectrogramOptions,
    MfccOptions,
    map_options,
)


def check_lengths(rank: int, lengths: Array) -> tuple[int, int]:
    """(height, width) of RFFT2D, of any length; TFLite transforms powers of two only."""
    if rank < 2:
        raise ModelError(f"input has rank {rank}, expected at least 2")
    if lengths.shape != (2,):
        raise ModelError(f"fft_length has shape {lengths.shape}, expected (2,)")
    height, width = lengths.tolist()
    if not (1 <= height <= LONGEST_SIDE and 1 <= width <= LONGEST_SIDE):
        raise ModelError(f"fft_length is {height}, {width}, expected 1 to {LONGEST_SIDE}")
    return height, width


@rule(Op.RFFT2D)
def rfft2d(op: OperatorView[Any]) -> Shapes | None:
    """[..., height, width / 2 + 1]."""
    shape = op["input"].shape
    lengths = op["fft_length"].data
    if lengths is None:
        return ((*shape[:-2], *unknown_shape(2)),)
    height, width = check_lengths(len(shape), lengths)
    return ((*shape[:-2], height, width // 2 + 1),)


@rule(Op.REAL, Op.IMAG, Op.COMPLEX_ABS)
def parts(op: OperatorView[Any]) -> Shapes:
    """The input's shape."""
    return (op["input"].shape,)


# Of a matrix of Mfcc; 40 filters of 257 bins are usual.
_MOST_WEIGHTS = 1 << 22


@rule("AudioSpectrogram")
def audio_spectrogram(op: OperatorView[Any]) -> Shapes:
    """Samples [S, C] to [C, windows, bins]."""
    options = map_options(op, AudioSpectrogramOptions)
    samples, channels = of_rank(op, "input", 2)
    if not 2 <= options.window_size <= LONGEST_SIDE or options.stride < 1:
        raise ModelError(
            f"{op.label}: windows of {options.window_size} samples every {options.stride}"
        )
    count = max(0, (samples - options.window_size) // options.stride + 1)
    return ((channels, count, fft_length(options.window_size) // 2 + 1),)


@rule("Mfcc")
def mfcc(op: OperatorView[Any]) -> Shapes:
    """Spectrograms [C, windows, bins] to [C, windows, coefficients]."""
    options = map_options(op, MfccOptions)
    coefficients, filters = options.dct_coefficient_count, options.filterbank_channel_count
    if not 1 <= coefficients <= filters:
        raise ModelError(f"{op.label}: {coefficients} coefficients of {filters} filters")
    channels, windows, bins = of_rank(op, "spectrogram", 3)
    most = max(coefficients, bins) if is_known(bins) else coefficients
    if filters * most > _MOST_WEIGHTS:
        raise ModelError(f"{op.label}: {filters} filters of {bins} bins, {coefficients} of each")
    return ((channels, windows, coefficients),)
