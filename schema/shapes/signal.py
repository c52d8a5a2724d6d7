"""Shape rules of Fourier transforms and of the parts of complex numbers."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, Shapes, rule
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import Array, OperatorView


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
