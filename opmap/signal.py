"""RFFT2D; parts of complex numbers, which are pairs in the graph; AudioSpectrogram and Mfcc, custom
operators of TFLite's own resolver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.fourier import BY_PRODUCT, transformed
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import custom_translator, translator
from tflite_ort.schema import Op, OperatorView, Untranslatable
from tflite_ort.schema.arithmetic.audio_features import (
    FLOOR,
    cosines,
    fft_length,
    hann,
    mel_weights,
    window_starts,
)
from tflite_ort.schema.shapes.registry import LONGEST_SIDE
from tflite_ort.schema.values.complex_pairs import part_dtype
from tflite_ort.schema.values.sizes import has_zero, is_known, is_one
from tflite_ort.schema.values.well_known_options import (
    AudioSpectrogramOptions,
    MfccOptions,
    map_options,
)

View = OperatorView[Any]
Rows = Callable[[Graph, ir.Value, tuple[int, ...], int], ir.Value]

# Numpy transforms what is longer than this.
_LONG = 1 << 16
# Of another length than a power of two so many numbers are multiplied with the waves.
_MOST_MULTIPLIED = 2048


@translator(Op.RFFT2D, versions=(1, 1))
def rfft2d(op: View, g: Graph) -> None:
    """DFT of the rows, of which the first half is kept, then DFT of the columns.

    Both crop an input that is too long, and extend one that is too short with zeros.
    """
    transform(op, g, _of_rows)


def transform(op: View, g: Graph, of_rows: Rows) -> None:
    """As `rfft2d`, by a way to transform the rows."""
    input, rank = op["input"], op["input"].rank
    if has_zero(*input.shape):
        raise Untranslatable("no element")
    if not op["fft_length"].is_constant:
        _of_computed_lengths(op, g)
        return
    height, width = integers(op["fft_length"])
    if g.target.fallback and (max(height, width) > _LONG or not _is_power(height)):
        raise Untranslatable("numpy transforms long rows faster, in float64")
    rows = input.shape[-2]
    source, shape = g.read(input), input.shape
    if is_known(rows) and height < rows:  # the others are not read
        bounds = (g.ints([bound]) for bound in (0, height, rank - 2))
        source, shape = g.op("Slice", source, *bounds), (*shape[:-2], height, shape[-1])
    value = of_rows(g, source, shape, width)
    if height == 1 and is_one(shape[-2]):  # the transform of one row is that row
        g.write(op.output, value)
    elif _is_power(height):
        g.write(op.output, transformed(g, value, height, rank - 2, onesided=None))
    else:
        g.write(op.output, _of_columns(g, value, shape, width, height))


def _of_computed_lengths(op: View, g: Graph) -> None:
    """As `rfft2d`, in a graph that fails unless both lengths are powers of two that TFLite takes.

    Where kernels are available, they transform in float64.
    """
    if g.target.fallback:
        raise Untranslatable("fft_length is not a constant")
    lengths, rank = g.whole(op["fft_length"]), op["input"].rank
    powers = g.ints(2 ** np.arange(LONGEST_SIDE.bit_length()))
    found = g.op("Equal", g.op("Unsqueeze", lengths, g.ints([1])), powers)
    known = g.op("ReduceMax", g.cast(found, ir.DataType.INT32), g.ints([1]), keepdims=0)
    lengths = failing(g, lengths, g.op("Equal", known, g.constant(0, np.int32)))
    height, width = (g.op("Gather", lengths, g.ints(i)) for i in (0, 1))
    ends = g.reshape(height, (1,))
    rows = g.op("Slice", g.read(op["input"]), g.ints([0]), ends, g.ints([rank - 2]))
    value = g.op("Unsqueeze", rows, g.ints([rank]))
    value = transformed(g, value, width, rank - 1, onesided=1)
    g.write(op.output, transformed(g, value, height, rank - 2, onesided=None))


def _is_power(length: int) -> bool:
    """Whether a DFT of this length is exact: of others ONNX Runtime's is 3e-4 of the largest value
    off."""
    return length & (length - 1) == 0


def _of_rows(g: Graph, source: ir.Value, shape: tuple[int, ...], width: int) -> ir.Value:
    """The first half of the frequencies of each row of `source`, which has this shape."""
    if not _is_power(width):
        return rows_by_product(g, source, shape, width)
    if g.target.transforms_rows:
        made = transformed(g, g.reshape(source, (-1, shape[-1], 1)), width, 1, onesided=1)
        return g.reshape(made, (*shape[:-1], width // 2 + 1, 2))
    value = g.op("Unsqueeze", source, g.ints([len(shape)]))
    return transformed(g, value, width, len(shape) - 1, onesided=1)


def rows_by_product(g: Graph, source: ir.Value, shape: tuple[int, ...], width: int) -> ir.Value:
    """As `_of_rows`, by a product with the waves."""
    waves = _waves(_multiplied(shape[-1], width), width)[:, : width // 2 + 1]
    constant = g.constants.add(waves.reshape(len(waves), -1).astype(np.float32), "waves")
    return g.reshape(g.op("MatMul", source, constant), (*shape[:-1], width // 2 + 1, 2))


def _of_columns(
    g: Graph, value: ir.Value, shape: tuple[int, ...], width: int, height: int
) -> ir.Value:
    """The frequencies of each column of pairs, of which rows of `shape` have made `width`."""
    *batch, rows, _ = shape
    order, count = list(range(len(batch))), width // 2 + 1
    order += [len(batch) + 1, len(batch), len(batch) + 2]
    waves = _waves(_multiplied(rows, height), height)  # times a number, and times i
    turned = np.stack([waves, np.stack([-waves[..., 1], waves[..., 0]], axis=-1)], axis=1)
    matrix = turned.reshape(2 * rows, 2 * height).astype(np.float32)
    columns = g.reshape(g.op("Transpose", value, perm=order), (*batch, count, 2 * rows))
    made = g.op("MatMul", columns, g.constants.add(matrix, "waves"))
    return g.op("Transpose", g.reshape(made, (*batch, count, height, 2)), perm=order)


def _multiplied(size: int, length: int) -> int:
    """How many numbers meet waves, if their matrix is no larger than is worth it."""
    if not is_known(size) or max(size, length) > _MOST_MULTIPLIED:
        raise Untranslatable(f"a transform of {length} numbers, which is no power of two")
    return size


def _waves(count: int, length: int) -> npt.NDArray[np.float64]:
    """The matrix [count, frequencies, 2] of the transform: real and imaginary parts; zeros for what
    is beyond the length."""
    at = np.arange(min(count, length))
    angles = np.outer(at, np.arange(length)) % length * (-2 * np.pi / length)
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.pad(waves, [(0, count - len(at)), (0, 0), (0, 0)])


@translator(Op.REAL, versions=(1, 1))
def real(op: View, g: Graph) -> None:
    """Gather of the first element of the pairs."""
    g.write(op.output, _part(g, op, 0))


@translator(Op.IMAG, versions=(1, 1))
def imag(op: View, g: Graph) -> None:
    """Gather of the second element of the pairs."""
    g.write(op.output, _part(g, op, 1))


def _part(g: Graph, op: View, which: int) -> ir.Value:
    return g.op("Gather", g.read(op["input"]), g.ints(which), axis=-1)


@translator(Op.COMPLEX_ABS, versions=(1, 1))
def complex_abs(op: View, g: Graph) -> None:
    """Sqrt of the sum of the squares, in double: no square of a float32 overflows there.
    What has an infinite part is infinite, whatever the other part is.

    ONNX Runtime's ReduceSum would not drop the dimension of what has no element.
    """
    real, imaginary = (g.cast(_part(g, op, i), ir.DataType.DOUBLE) for i in (0, 1))
    squares = g.op("Add", g.op("Mul", real, real), g.op("Mul", imaginary, imaginary))
    distance, endless = g.op("Sqrt", squares), g.constant(np.inf)
    beyond = (g.op("Equal", g.op("Abs", part), endless) for part in (real, imaginary))
    distance = g.op("Where", g.op("Or", *beyond), endless, distance)
    dtype = part_dtype(op["input"].dtype)
    g.write(op.output, g.cast(distance, dtype))


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
