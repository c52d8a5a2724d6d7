"""TensorFlow's Fourier transforms, computed in 64 bits and rounded once, and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.fourier import check_lengths, dimensions_of

View = OperatorView[Any]


@flex_kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def transform(op: View, inputs: Inputs, state: State) -> Outputs:
    """The transform of the last dimensions, or its inverse."""
    (x,), count = inputs, dimensions_of(op.name)
    if x.ndim < count:
        raise KernelError(f"rank {x.ndim}, expected at least {count}")
    function = np.fft.ifftn if op.name.startswith("FlexI") else np.fft.fftn
    if not x.size:
        return (x.copy(),)
    with np.errstate(all="ignore"):
        found = function(x.astype(np.complex128), axes=range(-count, 0))
        return (found.astype(x.dtype),)


@flex_kernel("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(op: View, inputs: Inputs, state: State) -> Outputs:
    """The first half of the frequencies of real numbers of the last dimensions, cut to
    `fft_length`; or the numbers of such frequencies."""
    x, count = inputs[0], dimensions_of(op.name)
    lengths, dtype = check_lengths(op, x.shape, inputs[1]), op.output.dtype
    inverse = op.name.startswith("FlexI")
    wide = x.astype(np.complex128 if inverse else np.float64)
    if not x.size:
        last = lengths[-1] if inverse else lengths[-1] // 2 + 1
        return (np.zeros((*x.shape[:-count], *lengths[:-1], last), dtype),)
    function = np.fft.irfftn if inverse else np.fft.rfftn
    with np.errstate(all="ignore"):
        return (function(wide, s=lengths, axes=range(-count, 0)).astype(dtype),)


@flex_kernel("ComplexAbs")
def magnitude(op: View, inputs: Inputs, state: State) -> Outputs:
    """The magnitudes."""
    return (np.asarray(np.abs(inputs[0])).astype(op.output.dtype, copy=False),)


@flex_kernel("Angle")
def angle(op: View, inputs: Inputs, state: State) -> Outputs:
    """The angles."""
    return (np.asarray(np.angle(inputs[0])).astype(op.output.dtype, copy=False),)


@flex_kernel("Conj")
def conjugate(op: View, inputs: Inputs, state: State) -> Outputs:
    """The conjugates."""
    return (np.conj(inputs[0]),)


@flex_kernel("Complex")
def pair(op: View, inputs: Inputs, state: State) -> Outputs:
    """Complex numbers of their two parts, which broadcast."""
    real, imaginary = np.broadcast_arrays(*inputs)
    found = np.empty(real.shape, op.output.dtype)
    found.real, found.imag = real, imaginary
    return (found,)


@flex_kernel("ConjugateTranspose")
def conjugate_transpose(op: View, inputs: Inputs, state: State) -> Outputs:
    """The conjugates, with the dimensions in the order of `perm`."""
    x, order = inputs[0], inputs[1].reshape(-1).tolist()
    if sorted(order) != list(range(x.ndim)):
        raise KernelError(f"the order {order} of {x.ndim} dimensions")
    return (np.conj(np.transpose(x, order)).copy(),)


refuse_rest("fourier")
