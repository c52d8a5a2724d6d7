"""AudioSpectrogram and Mfcc: features of sounds, custom operators of TFLite's own resolver."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.fourier import BY_PRODUCT, transformed
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.onnx_graph import ir
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
    """Gather of the windows, and MatMul with the windowed cosines and sines of the bins; of long
    windows DFT."""
    options, samples = map_options(op, AudioSpectrogramOptions), op["input"].shape[0]
    window, length = options.window_size, fft_length(options.window_size)
    starts = window_starts(samples, window, options.stride)
    if not starts.size:
        raise Untranslatable(f"{samples} samples are no window of {window}")
    if g.target.fallback and length > BY_PRODUCT:
        raise Untranslatable("numpy transforms long windows faster, in float64")
    picked = starts[:, None] + np.arange(window)
    waves = g.op("Transpose", g.read(op["input"]), perm=[1, 0])
    windows = g.op("Gather", waves, g.ints(picked), axis=1)
    energies = _by_product if length <= BY_PRODUCT else _by_transform
    squares = energies(g, windows, window, length)
    g.write(op.output, squares if options.magnitude_squared else g.op("Sqrt", squares))


def _by_product(g: Graph, windows: ir.Value, window: int, length: int) -> ir.Value:
    """The squared magnitudes of `windows`, which have `window` samples."""
    angles = 2 * np.pi / length * np.outer(np.arange(window), np.arange(length // 2 + 1))
    parts = (
        g.op("MatMul", windows, g.constant(hann(window)[:, None] * wave(angles), np.float32))
        for wave in (np.cos, np.sin)
    )
    return g.op("Add", *(g.op("Mul", part, part) for part in parts))


def _by_transform(g: Graph, windows: ir.Value, window: int, length: int) -> ir.Value:
    """As `_by_product`."""
    weighted = g.op("Mul", windows, g.constant(hann(window), np.float32))
    reals = g.op("Unsqueeze", weighted, g.ints([3]))
    pairs = transformed(g, reals, length, 2, onesided=1)
    return g.op("ReduceSum", g.op("Mul", pairs, pairs), g.ints([3]), keepdims=0)


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
