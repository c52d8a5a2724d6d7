"""Shape rules of TensorFlow's Fourier transforms and complex numbers."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    LONGEST_SIDE,
    Shape,
    Shapes,
    broadcast,
    flex_rule,
    same_shape,
)
from tflite_ort.schema.values.sizes import is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import Array, OperatorView

View = OperatorView[Any]

flex_rule("Angle", "Conj", "Real", "Imag", "ComplexAbs")(same_shape)


@flex_rule("Complex")
def pair(op: View) -> Shapes:
    """Both parts broadcast."""
    return (broadcast(op, op["real"].shape, op["imag"].shape),)


@flex_rule("ConjugateTranspose")
def conjugate_transpose(op: View) -> Shapes:
    """The sizes in the order of `perm`."""
    shape, perm = op["x"].shape, op["perm"].data
    if perm is None:
        return (unknown_shape(len(shape)),)
    order = perm.reshape(-1).tolist()
    if sorted(order) != list(range(len(shape))):
        raise ModelError(f"{op.label}: the order {order} of {len(shape)} dimensions")
    return (tuple(shape[axis] for axis in order),)


def dimensions_of(name: str) -> int:
    """How many of the last dimensions an operator transforms."""
    return int(name[-2]) if name.endswith("D") else 1


def check_transformed(op: View, shape: Shape) -> int:
    """How many dimensions are transformed; no row of them is too long."""
    count = dimensions_of(op.name)
    if len(shape) < count or any(is_known(n) and n > LONGEST_SIDE for n in shape[-count:]):
        raise ModelError(f"{op.label}: transforms of {shape}")
    return count


@flex_rule("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def transform(op: View) -> Shapes:
    """The input's shape."""
    check_transformed(op, op["input"].shape)
    return (op["input"].shape,)


def check_lengths(op: View, shape: Shape, lengths: Array) -> list[int]:
    """The lengths of a transform of the last dimensions, which have so many elements at least."""
    count = check_transformed(op, shape)
    if lengths.shape != (count,):
        raise ModelError(f"fft_length has shape {lengths.shape}, expected ({count},)")
    found: list[int] = lengths.tolist()
    if not all(1 <= each <= LONGEST_SIDE for each in found):
        raise ModelError(f"fft_length is {found}, expected 1 to {LONGEST_SIDE}")
    needed = [*found[:-1], found[-1] // 2 + 1] if op.name.startswith("FlexIRFFT") else found
    for size, least in zip(shape[-count:], needed, strict=True):
        if is_known(size) and size < least:
            raise ModelError(f"{op.label}: {size} elements, fft_length {found} needs {least}")
    return found


@flex_rule("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(op: View) -> Shapes:
    """[..., *lengths]; of frequencies the last is half of it and 1."""
    shape, lengths = op["input"].shape, op["fft_length"].data
    count = check_transformed(op, shape)
    if lengths is None:
        return ((*shape[:-count], *unknown_shape(count)),)
    *others, last = check_lengths(op, shape, lengths)
    if op.name.startswith("FlexRFFT"):
        last = last // 2 + 1 if is_known(last) else unknown_size()
    return ((*shape[:-count], *others, last),)
