"""Custom operators of TFLite's own resolver: AudioSpectrogram, Mfcc, NumericVerify, a rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.movement import integers, reshaped
from tflite_ort.opmap.registry import custom_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.audio_features import (
    FLOOR,
    cosines,
    fft_length,
    hann,
    mel_weights,
    window_starts,
)
from tflite_ort.schema.well_known_options import (
    AudioSpectrogramOptions,
    HadamardRotationOptions,
    MfccOptions,
    NumericVerifyOptions,
    map_options,
)


@custom_translator("AudioSpectrogram", versions=(1, 1), inputs=("input",))
def audiospectrogram(op: OperatorView[Any], g: Graph) -> None:
    """Gather of the windows and MatMul with the windowed cosines and sines of the bins."""
    options, samples = map_options(op, AudioSpectrogramOptions), op["input"].shape[0]
    window, length = options.window_size, fft_length(options.window_size)
    starts = window_starts(samples, window, options.stride)
    if not starts.size:
        raise Untranslatable(f"{samples} samples are no window of {window}")
    picked = starts[:, None] + np.arange(window)
    waves = g.op("Transpose", g.read(op["input"]), perm=[1, 0])
    windows = g.op("Gather", waves, g.constant(picked, np.int64), axis=1)
    angles = 2 * np.pi / length * np.outer(np.arange(window), np.arange(length // 2 + 1))
    parts = (
        g.op("MatMul", windows, g.constant(hann(window)[:, None] * wave(angles), np.float32))
        for wave in (np.cos, np.sin)
    )
    squares = g.op("Add", *(g.op("Mul", part, part) for part in parts))
    g.write(op.output, squares if options.magnitude_squared else g.op("Sqrt", squares))


@custom_translator("Mfcc", versions=(1, 1), inputs=("spectrogram", "sample_rate!"))
def mfcc(op: OperatorView[Any], g: Graph) -> None:
    """MatMul with the mel weights, Log, MatMul with the cosines."""
    options, (rate,) = map_options(op, MfccOptions), integers(op["sample_rate"])
    weights = mel_weights(options, op["spectrogram"].shape[2], rate)
    magnitudes = g.op("Sqrt", g.read(op["spectrogram"]))
    sums = g.op("MatMul", magnitudes, g.constant(weights, np.float32))
    logs = g.op("Log", g.op("Max", sums, g.constant(np.float32(FLOOR))))
    g.write(op.output, g.op("MatMul", logs, g.constant(cosines(options), np.float32)))


@custom_translator("NumericVerify", versions=(1, 1), inputs=("input", "reference"))
def numericverify(op: OperatorView[Any], g: Graph) -> None:
    """Sub of the reference from the dequantised codes; ONNX cannot fail on a difference."""
    if map_options(op, NumericVerifyOptions).checks:
        raise Untranslatable("a difference above the tolerance is to be an error")
    real = g.read(op["input"])
    if op["input"].type is TensorType.FLOAT16:
        real = g.op("Cast", real, to=ir.DataType.FLOAT)
    elif not op["input"].is_quantized:
        raise Untranslatable(f"{op['input'].type.name} input without a scale")
    g.write(op.output, g.op("Sub", real, g.read(op["reference"])))


@custom_translator("aeq.hadamard_rotation", versions=(1, 1), inputs=("input",))
def aeq_hadamard_rotation(op: OperatorView[Any], g: Graph) -> None:
    """MatMul of every `hadamard_size` values with the normalised Hadamard matrix."""
    input, size = op["input"], map_options(op, HadamardRotationOptions).hadamard_size
    if input.type is not TensorType.FLOAT32 or size < 1 or size & (size - 1):
        raise Untranslatable(f"{input.type.name} input in parts of {size}")
    if input.shape[-1] % size:
        raise Untranslatable(f"rows of {input.shape[-1]} in parts of {size}")
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    parts = reshaped(g, g.read(input), (-1, size))
    turned = g.op("MatMul", parts, g.constant(matrix / np.sqrt(size), np.float32))
    g.write(op.output, reshaped(g, turned, input.shape))
