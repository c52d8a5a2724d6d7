"""Resizing of images [N, H, W, C] to `size` = (height, width)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    KernelError,
    Op,
    OperatorView,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import round_half_away
from tflite_ort.schema.arithmetic.resizing import POSITION_BITS, integer_positions
from tflite_ort.schema.values.semantics import nearest_indices, resize_ratio

Indices = npt.NDArray[np.int64]


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
    """Height and width. What does not fit into memory fails here, before any of it is used."""
    if size.shape != (2,) or (size <= 0).any():
        raise KernelError(f"an image cannot have size {size.tolist()}")
    height, width = int(size[0]), int(size[1])
    np.empty((max(image.shape[0], 1), height, width, max(image.shape[3], 1)), np.int64)
    return height, width


def _bilinear_float(image: Array, size: tuple[int, int], options: ResizeBilinearOptions) -> Array:
    """float32, and uint8 in float32, which adds 0.5 and truncates."""
    (y0, y1, dy), (x0, x1, dx) = (
        _float_positions(old, new, options) for old, new in zip(image.shape[1:3], size, strict=True)
    )
    one = np.float32(1)
    dy, dx = dy[:, None, None], dx[:, None]
    total = (
        image[:, y0[:, None], x0] * (one - dy) * (one - dx)
        + image[:, y1[:, None], x0] * dy * (one - dx)
        + image[:, y0[:, None], x1] * (one - dy) * dx
        + image[:, y1[:, None], x1] * dy * dx
    )
    rounded = total if image.dtype == np.float32 else total + np.float32(0.5)
    return np.asarray(rounded, image.dtype)


def _float_positions(
    old: int, new: int, options: ResizeBilinearOptions
) -> tuple[Indices, Indices, npt.NDArray[np.float32]]:
    """For every output index, the two input indices, and the distance from the first one."""
    ratio = resize_ratio(old, new, options.align_corners)
    half = np.float32(0.5 if options.half_pixel_centers else 0)
    source = (np.arange(new, dtype=np.float32) + half) * ratio - half
    lower = np.maximum(np.floor(source), 0).astype(np.int64)
    upper = np.minimum(np.ceil(source), old - 1).astype(np.int64)
    return lower, upper, source - lower.astype(np.float32)


def _bilinear_integer(image: Array, size: tuple[int, int], options: ResizeBilinearOptions) -> Array:
    """int8 and int16: weights in 1/1024, the sum rounded with halves away from zero."""
    (y0, y1, dy), (x0, x1, dx) = (
        integer_positions(old, new, options)
        for old, new in zip(image.shape[1:3], size, strict=True)
    )
    one, dy, dx = 1 << POSITION_BITS, dy[:, None, None], dx[:, None]
    wide = image.astype(np.int64)
    total = (
        wide[:, y0[:, None], x0] * (one - dy) * (one - dx)
        + wide[:, y1[:, None], x0] * dy * (one - dx)
        + wide[:, y0[:, None], x1] * (one - dy) * dx
        + wide[:, y1[:, None], x1] * dy * dx
    )
    return round_half_away(total / one**2).astype(image.dtype)
