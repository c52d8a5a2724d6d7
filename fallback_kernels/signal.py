"""Fourier transforms and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView
from tflite_ort.schema.shapes.signal import check_lengths


@kernel(Op.RFFT2D, versions=(1, 1))
def rfft2d(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The transform of the last two dimensions, cut or filled with zeros to `fft_length`:
    float32 [..., H, W] to complex64 [..., height, width / 2 + 1], computed in float64."""
    x = inputs[0]
    if x.dtype != np.float32:
        raise KernelError(f"input is {x.dtype}, expected float32")
    lengths = check_lengths(x.ndim, inputs[1])
    return (np.fft.rfft2(x.astype(np.float64), lengths).astype(np.complex64),)


@kernel(Op.REAL, versions=(1, 1))
def real(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The real parts."""
    return (_complex(inputs[0]).real.copy(),)


@kernel(Op.IMAG, versions=(1, 1))
def imag(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The imaginary parts."""
    return (_complex(inputs[0]).imag.copy(),)


@kernel(Op.COMPLEX_ABS, versions=(1, 1))
def complex_abs(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The distances from 0."""
    return (np.asarray(np.abs(_complex(inputs[0]))),)


def _complex(x: Array) -> Array:
    if x.dtype.kind != "c":
        raise KernelError(f"input is {x.dtype}, expected complex numbers")
    return x
