"""Fourier transforms and the parts of complex numbers, which stand in the graph as pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.movement import integers
from tflite_ort.opmap.pairs import part_dtype
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, Untranslatable
from tflite_ort.schema.sizes import has_zero

View = OperatorView[Any]


@translator(Op.RFFT2D, versions=(1, 1), inputs=("input", "fft_length!"))
def rfft2d(op: View, g: Graph) -> None:
    """DFT of the rows, of which the first half is kept, and then of the columns; either cuts what
    is too long and fills up with zeros what is too short."""
    input, rank = op["input"], op["input"].rank
    height, width = integers(op["fft_length"])
    if has_zero(*input.shape):
        raise Untranslatable("no element")
    value = g.op("Unsqueeze", g.read(input), g.constant([rank], np.int64))
    for length, axis, onesided in ((width, rank - 1, 1), (height, rank - 2, None)):
        parameters = (g.constant(number, np.int64) for number in (length, axis))
        value = g.op("DFT", value, *parameters, onesided=onesided)
    g.write(op.output, value)


@translator(Op.REAL, versions=(1, 1), inputs=("input",))
def real(op: View, g: Graph) -> None:
    """Gather of the first of each pair."""
    g.write(op.output, _part(g, op, 0))


@translator(Op.IMAG, versions=(1, 1), inputs=("input",))
def imag(op: View, g: Graph) -> None:
    """Gather of the second of each pair."""
    g.write(op.output, _part(g, op, 1))


def _part(g: Graph, op: View, which: int) -> ir.Value:
    return g.op("Gather", g.read(op["input"]), g.constant(which, np.int64), axis=-1)


@translator(Op.COMPLEX_ABS, versions=(1, 1), inputs=("input",))
def complex_abs(op: View, g: Graph) -> None:
    """Sqrt of the sum of the squares, in double: no square of a float32 overflows there.

    ONNX Runtime's ReduceSum would not drop the dimension of what has no element.
    """
    real, imaginary = (g.op("Cast", _part(g, op, i), to=ir.DataType.DOUBLE) for i in (0, 1))
    squares = g.op("Add", g.op("Mul", real, real), g.op("Mul", imaginary, imaginary))
    dtype = part_dtype(op["input"].dtype)
    g.write(op.output, g.op("Cast", g.op("Sqrt", squares), to=ir.DataType.from_numpy(dtype)))
