"""TensorFlow's Fourier transforms and complex numbers, which are pairs of reals in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.angles import angle as angle_of
from tflite_ort.opmap.idioms.complex_arithmetic import joined
from tflite_ort.opmap.idioms.fourier import BY_PRODUCT
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.fourier import dimensions_of
from tflite_ort.schema.values.complex_pairs import part_dtype
from tflite_ort.schema.values.sizes import has_zero, is_known, may_differ

View = OperatorView[Any]
Array = npt.NDArray[Any]

# Of another length than a power of two so many numbers are multiplied with the waves: ONNX
# Runtime's DFT of such lengths is 3e-4 of the largest value off.
_MOST_MULTIPLIED = 1024


def _check(g: Graph, shape: Sequence[int], lengths: Sequence[int]) -> None:
    """Refuse what no node transforms well."""
    sizes = shape[len(shape) - len(lengths) :]
    if has_zero(*shape) or not is_known(*sizes, *lengths):
        raise Untranslatable(f"transforms of {tuple(shape)}")
    if g.target.fallback and max(*sizes, *lengths) > BY_PRODUCT:
        raise Untranslatable("numpy transforms long rows faster, in float64")
    for size, length in zip(sizes, lengths, strict=True):
        if not _is_power(length) and max(size, length) > _MOST_MULTIPLIED:
            raise Untranslatable(f"a transform of {length} numbers, which is no power of two")


def _is_power(length: int) -> bool:
    return length & (length - 1) == 0


def _pairs(numbers: Array, dtype: np.dtype[Any]) -> Array:
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(dtype)


class _Rows:
    """Pairs of reals [*shape, 2] on their way through the transforms of their dimensions."""

    def __init__(self, g: Graph, value: ir.Value, shape: Sequence[int], dtype: np.dtype[Any]):
        self.g, self.value, self.shape, self.dtype = g, value, list(shape), dtype

    def transformed(self, axis: int, length: int, inverse: bool) -> None:
        """The transform along an axis: DFT, or of other lengths a product with the waves."""
        g, size = self.g, self.shape[axis]
        self.shape[axis] = length
        if _is_power(length):
            operands = (self.value, g.ints(length), g.ints(axis))
            self.value = g.op("DFT", *operands, inverse=1 if inverse else None)
            return
        waves = (np.fft.ifft if inverse else np.fft.fft)(np.eye(size), length)
        both = np.stack([_pairs(waves, self.dtype), _pairs(1j * waves, self.dtype)], axis=1)
        order = [i for i in range(len(self.shape)) if i != axis]
        batch = [self.shape[i] for i in order]
        perm = [*order, axis, len(self.shape)]
        rows = g.reshape(g.op("Transpose", self.value, perm=perm), (*batch, 2 * size))
        made = g.op("MatMul", rows, self._constant(both.reshape(2 * size, 2 * length)))
        pairs = g.reshape(made, (*batch, length, 2))
        self.value = g.op("Transpose", pairs, perm=np.argsort(perm).tolist())

    def _constant(self, waves: Array) -> ir.Value:
        return self.g.constants.add(waves.astype(self.dtype), "waves")

    def halved(self, real: ir.Value, length: int) -> None:
        """The first half of the frequencies of rows of real numbers."""
        g, size, last = self.g, self.shape[-1], len(self.shape) - 1
        self.shape[-1] = length // 2 + 1
        if _is_power(length):
            numbers = g.op("Unsqueeze", real, g.ints([last + 1]))
            self.value = g.op("DFT", numbers, g.ints(length), g.ints(last), onesided=1)
            return
        waves = _pairs(np.fft.rfft(np.eye(size), length), self.dtype).reshape(size, -1)
        self.value = g.reshape(g.op("MatMul", real, self._constant(waves)), (*self.shape, 2))

    def whole(self, length: int) -> ir.Value:
        """The real numbers whose first half of the frequencies these are."""
        g, size, last = self.g, self.shape[-1], len(self.shape) - 1
        self.shape[-1] = length
        if not _is_power(length):
            parts = [np.fft.irfft(unit * np.eye(size), length) for unit in (1, 1j)]
            waves = np.stack(parts, axis=1).reshape(2 * size, length)
            rows = g.reshape(self.value, (*self.shape[:-1], 2 * size))
            return g.op("MatMul", rows, self._constant(waves))
        bounds = (g.ints([bound]) for bound in (0, length // 2 + 1, last))
        self.value = g.op("Slice", self.value, *bounds)
        if length > 2:  # the others are the conjugates of these, backwards
            mirrored = g.op("Gather", self.value, g.ints(range(length // 2 - 1, 0, -1)), axis=last)
            mirrored = g.op("Mul", mirrored, g.constant([1, -1], self.dtype))
            self.value = g.op("Concat", self.value, mirrored, axis=last)
        self.transformed(last, length, inverse=True)
        return g.op("Gather", self.value, g.ints(0), axis=-1)


@flex_translator("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def transform(op: View, g: Graph) -> None:
    """DFT along each of the last dimensions."""
    x, count = op["input"], dimensions_of(op.name)
    _check(g, x.shape, x.shape[-count:])
    rows = _Rows(g, g.read(x), x.shape, part_dtype(x.dtype))
    for axis in range(x.rank - count, x.rank):
        rows.transformed(axis, x.shape[axis], op.name.startswith("FlexI"))
    g.write(op.output, rows.value)


@flex_translator("RFFT", "RFFT2D", "RFFT3D")
def real_transform(op: View, g: Graph) -> None:
    """DFT of the rows, of which the first half is kept, then DFT along the dimensions before."""
    x, lengths = op["input"], integers(op["fft_length"])
    _check(g, x.shape, lengths)
    value = g.read(x)
    rows = _Rows(g, value, x.shape, x.dtype)
    rows.halved(value, lengths[-1])
    for axis, length in zip(range(x.rank - len(lengths), x.rank - 1), lengths, strict=False):
        rows.transformed(axis, length, inverse=False)
    g.write(op.output, rows.value)


@flex_translator("IRFFT", "IRFFT2D", "IRFFT3D")
def real_inverse(op: View, g: Graph) -> None:
    """The inverse DFT along the dimensions before the last, then that of the rows."""
    x, lengths = op["input"], integers(op["fft_length"])
    _check(g, x.shape, lengths)
    rows = _Rows(g, g.read(x), x.shape, part_dtype(x.dtype))
    for axis, length in zip(range(x.rank - len(lengths), x.rank - 1), lengths, strict=False):
        rows.transformed(axis, length, inverse=True)
    g.write(op.output, rows.whole(lengths[-1]))


def _part(g: Graph, tensor: TensorView, which: int) -> ir.Value:
    return g.op("Gather", g.read(tensor), g.ints(which), axis=-1)


@flex_translator("Angle")
def angle(op: View, g: Graph) -> None:
    """Atan of the parts."""
    x = op["input"]
    if part_dtype(x.dtype) != op.output.dtype:
        raise Untranslatable(f"angles of {x.type.name} as {op.output.type.name}")
    g.write(op.output, angle_of(g, _part(g, x, 1), _part(g, x, 0), op.output.dtype))


def _conjugated(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    return g.op("Mul", value, g.constant([1, -1], part_dtype(tensor.dtype)))


@flex_translator("Conj")
def conjugate(op: View, g: Graph) -> None:
    """Mul of the second parts with -1."""
    g.write(op.output, _conjugated(g, g.read(op["input"]), op["input"]))


@flex_translator("Complex")
def pair(op: View, g: Graph) -> None:
    """Concat of the two parts, each expanded to the shape of both."""
    parts = op["real"], op["imag"]
    if part_dtype(op.output.dtype) != parts[0].dtype:
        raise Untranslatable("parts of other types")
    real, imaginary = (g.read(part) for part in parts)
    if may_differ(parts[0].shape, parts[1].shape):
        sizes = g.op("Shape", imaginary), g.op("Shape", real)
        real, imaginary = (
            g.op("Expand", *each) for each in zip((real, imaginary), sizes, strict=True)
        )
    g.write(op.output, joined(g, real, imaginary))


@flex_translator("ConjugateTranspose")
def conjugate_transpose(op: View, g: Graph) -> None:
    """Transpose, and Mul of the second parts with -1."""
    x, order = op["x"], integers(op["perm"])
    turned = g.op("Transpose", g.read(x, domain=Domain.FILE), perm=[*order, x.rank])
    g.write(op.output, _conjugated(g, turned, x))
