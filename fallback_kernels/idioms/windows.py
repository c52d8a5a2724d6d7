"""Sliding windows over an image, as views."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema import KernelError, Padding
from tflite_ort.schema.values.semantics import conv_output_size, explicit_padding

Array = npt.NDArray[Any]

_FAR = 64  # cells of padding


@record
class Span:
    """`count` windows along one dimension, and the padding they need before and after it."""

    count: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @classmethod
    def over(cls, size: int, padding: Padding, kernel: int, stride: int, dilation: int = 1) -> Span:
        """The windows over `size` cells.

        Raises:
            KernelError: not one window fits.
        """
        count = conv_output_size(padding, size, kernel, stride, dilation)
        if kernel < 1 or count < 1:
            raise KernelError(
                f"no window of {kernel} (stride {stride}, dilation {dilation}) fits in {size} cells"
            )
        before, after = explicit_padding(padding, size, kernel, stride, dilation)
        return cls(count, kernel, stride, dilation, before, after)


def windows(x: Array, axis: int, span: Span, fill: complex = 0) -> Array:
    """The windows along `axis`: [..., size, ...] to [..., windows, ..., kernel]."""
    if span.before + span.after > _FAR + 4 * x.shape[axis]:
        return _far_windows(x, axis, span, fill)
    if span.before or span.after:
        around = [(0, 0)] * x.ndim
        around[axis] = (span.before, span.after)
        x = np.pad(x, around, constant_values=fill)
    extent = (span.kernel - 1) * span.dilation + 1
    view = np.lib.stride_tricks.sliding_window_view(x, extent, axis=axis)
    step = (slice(None),) * axis + (slice(None, None, span.stride),)
    return view[step][..., :: span.dilation]


def _far_windows(x: Array, axis: int, span: Span, fill: complex) -> Array:
    """As `windows`, for dilations that reach far beyond the cells: without the padding."""
    size = x.shape[axis]
    starts = np.arange(span.count) * span.stride - span.before
    places = starts[:, None] + np.arange(span.kernel) * span.dilation
    around = [(0, 0)] * x.ndim
    around[axis] = (0, 1)
    filled = np.pad(x, around, constant_values=fill)
    outside = (places < 0) | (places >= size)
    return np.moveaxis(filled.take(np.where(outside, size, places), axis=axis), axis + 1, -1)
