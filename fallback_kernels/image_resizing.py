"""Resizing of images [N, H, W, C] to `size` = (height, width)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    KernelError,
    Op,
    OperatorView,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import round_half_away
from tflite_ort.schema.arithmetic.resizing import POSITION_BITS, float_positions, integer_positions
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, shown
from tflite_ort.schema.values.semantics import nearest_indices

_BAND = 1 << 20  # elements of a result, or of its rows in the image, that are made at once


@kernel(Op.RESIZE_BILINEAR, versions=(1, 4))
def resize_bilinear(
    op: OperatorView[ResizeBilinearOptions], inputs: Inputs, state: State
) -> Outputs:
    """Weighted mean of the four nearest pixels; int8 and int16 with weights of 10 bits."""
    image, size = inputs[0], _size(inputs[0], inputs[1])
    if op.options.align_corners and op.options.half_pixel_centers:
        raise KernelError("align_corners and half_pixel_centers exclude each other")
    if image.dtype in (np.float32, np.uint8):
        return (_bilinear_float(image, size, op.options),)
    if image.dtype in (np.int8, np.int16):
        return (_bilinear_integer(image, size, op.options),)
    raise KernelError(f"RESIZE_BILINEAR of {image.dtype} is not implemented")


@kernel(Op.RESIZE_NEAREST_NEIGHBOR, versions=(1, 4))
def resize_nearest_neighbor(
    op: OperatorView[ResizeNearestNeighborOptions], inputs: Inputs, state: State
) -> Outputs:
    """The nearest pixel."""
    image, (height, width) = inputs[0], _size(inputs[0], inputs[1])
    rows = nearest_indices(image.shape[1], height, op.options)
    columns = nearest_indices(image.shape[2], width, op.options)
    return (image[:, rows[:, None], columns],)


def _size(image: Array, size: Array) -> tuple[int, int]:
    """Height and width."""
    if size.shape != (2,) or (size <= 0).any():
        raise KernelError(f"an image cannot have size {shown(size)}")
    if size.max() > LONGEST_SIDE:
        raise KernelError(f"size {shown(size)}, expected at most {LONGEST_SIDE}")
    return int(size[0]), int(size[1])


def _bilinear_float(image: Array, size: tuple[int, int], options: ResizeBilinearOptions) -> Array:
    """float32, and uint8 in float32, which adds 0.5 and truncates."""
    (y0, y1, dy), (x0, x1, dx) = (
        float_positions(old, new, options) for old, new in zip(image.shape[1:3], size, strict=True)
    )
    one, dx = np.float32(1), dx[:, None]
    half = np.float32(0 if image.dtype == np.float32 else 0.5)

    def band(rows: slice) -> Array:
        low, high, past = y0[rows, None], y1[rows, None], dy[rows, None, None]
        total = (
            image[:, low, x0] * (one - past) * (one - dx)
            + image[:, high, x0] * past * (one - dx)
            + image[:, low, x1] * (one - past) * dx
            + image[:, high, x1] * past * dx
        )
        return np.asarray(total + half if half else total)

    return _in_bands(image, size, band)


def _in_bands(image: Array, size: tuple[int, int], band: Callable[[slice], Array]) -> Array:
    """The resized image, some rows at a time, so that what is between stays small."""
    result = np.empty((image.shape[0], *size, image.shape[3]), image.dtype)
    wide = image.shape[0] * max(size[1], image.shape[2]) * image.shape[3]
    step = max(1, _BAND // max(wide, 1))
    for start in range(0, size[0], step):
        rows = slice(start, start + step)
        result[:, rows] = band(rows)
    return result


def _bilinear_integer(image: Array, size: tuple[int, int], options: ResizeBilinearOptions) -> Array:
    """int8 and int16: weights in 1/1024, the sum rounded with halves away from zero."""
    (y0, y1, dy), (x0, x1, dx) = (
        integer_positions(old, new, options)
        for old, new in zip(image.shape[1:3], size, strict=True)
    )
    one, dx, wide = 1 << POSITION_BITS, dx[:, None], image.astype(np.int64)

    def band(rows: slice) -> Array:
        past = dy[rows, None, None]
        lines = wide[:, y0[rows]] * (one - past) + wide[:, y1[rows]] * past
        total = lines[:, :, x0] * (one - dx) + lines[:, :, x1] * dx
        return round_half_away(total / one**2)

    return _in_bands(image, size, band)
