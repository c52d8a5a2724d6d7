"""AudioSpectrogram and Mfcc: features of sounds, custom operators of TFLite's own resolver."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.registry import custom_translator
from tflite_ort.schema import OperatorView, Untranslatable
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


@custom_translator("AudioSpectrogram", versions=(1, 1))
def audiospectrogram(op: OperatorView[Any], g: Graph) -> None:
    """Gather of the windows, and MatMul with the windowed cosines and sines of the bins."""
    options, samples = map_options(op, AudioSpectrogramOptions), op["input"].shape[0]
    window, length = options.window_size, fft_length(options.window_size)
    starts = window_starts(samples, window, options.stride)
    if not starts.size:
        raise Untranslatable(f"{samples} samples are no window of {window}")
    picked = starts[:, None] + np.arange(window)
    waves = g.op("Transpose", g.read(op["input"]), perm=[1, 0])
    windows = g.op("Gather", waves, g.ints(picked), axis=1)
    angles = 2 * np.pi / length * np.outer(np.arange(window), np.arange(length // 2 + 1))
    parts = (
        g.op("MatMul", windows, g.constant(hann(window)[:, None] * wave(angles), np.float32))
        for wave in (np.cos, np.sin)
    )
    squares = g.op("Add", *(g.op("Mul", part, part) for part in parts))
    g.write(op.output, squares if options.magnitude_squared else g.op("Sqrt", squares))


@custom_translator("Mfcc", versions=(1, 1), constants=("sample_rate",))
def mfcc(op: OperatorView[Any], g: Graph) -> None:
    """MatMul with the mel weights, Log, MatMul with the cosines."""
    options, (rate,) = map_options(op, MfccOptions), integers(op["sample_rate"])
    used, weights = mel_weights(options, op["spectrogram"].shape[2], rate)
    bounds = (g.ints([each]) for each in (used.start, used.stop, 2))
    magnitudes = g.op("Sqrt", g.op("Slice", g.read(op["spectrogram"]), *bounds))
    sums = g.op("MatMul", magnitudes, g.constant(weights, np.float32))
    logs = g.op("Log", g.op("Max", sums, g.constant(np.float32(FLOOR))))
    g.write(op.output, g.op("MatMul", logs, g.constant(cosines(options), np.float32)))
