"""A picture as a tensor, with numpy: to the last bit what the nodes of `image_input` give.

Pixels are interpolated as on MediaPipe's CPU path: places in 32nds of a pixel, results rounded to
8 bits. Sums are whole multiples of 1/1024, so integers hold them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.picture_input import OUTSIDE, PictureInput
from tflite_ort.decode.warp import places

Array = npt.NDArray[Any]

WHOLE = (0.5, 0.5, 1.0, 1.0, 0.0)
_PARTS = 32


def tensor_of(pixels: Array, how: PictureInput) -> Array:
    """What a network reads of a whole picture.

    Args:
        pixels: uint8 [height, width, channels].

    Returns:
        [height, width, channels], or the channels first, in the type of the tensor.
    """
    size = pixels.shape[1], pixels.shape[0]
    tensor = size[0] if how.width < 0 else how.width, size[1] if how.height < 0 else how.height
    if tensor != size:
        x, y = _whole_places(size, tensor, how.letterbox)
        sampled = _by_lines if x.ndim == 1 else _one_by_one
        pixels = sampled(pixels, x, y, how.outside)
    values = values_of(pixels[..., ::-1] if how.bgr else pixels, how)
    return np.ascontiguousarray(values.transpose(2, 0, 1)) if how.channels_first else values


@lru_cache(maxsize=16)
def _whole_places(
    size: tuple[int, int], tensor: tuple[int, int], letterbox: bool
) -> tuple[Array, Array]:
    """Where the elements of a tensor are in a picture, in 32nds of pixels: the columns [W] and the
    rows [H]; x and y [H, W] where a place in the middle between two 32nds is rounded otherwise than
    others of its line."""
    at = places(np.array(WHOLE, np.float32), size, tensor, letterbox)
    x, y = at.reshape(2, tensor[1], tensor[0]).astype(np.int64)
    if (x == x[:1]).all() and (y == y[:, :1]).all():
        return x[0], y[:, 0]
    return x, y


def values_of(pixels: Array, how: PictureInput) -> Array:
    """Pixels [..., channels] as the values that a network reads."""
    dtype = np.dtype(how.dtype)
    if dtype.kind == "f":
        real = pixels.astype(np.float32)
        mean, std = (np.array(each, np.float32) for each in (how.mean, how.std))
        with np.errstate(all="ignore"):  # of numbers that a file makes up
            np.subtract(real, mean, out=real)
            np.multiply(real, 1 / std, out=real)
            return real.astype(dtype, copy=False)
    if how.dtype == "uint8" and how.takes_pixels:
        return pixels
    table = how.codes()
    if table.ndim == 1:
        return table.take(pixels, mode="clip")
    return table[pixels, np.arange(table.shape[1])]


def _one_by_one(pixels: Array, x: Array, y: Array, outside: str) -> Array:
    """Pixels [H, W, C] at places x and y [H, W] in 32nds of pixels."""
    height, width, channels = pixels.shape
    fill, flat = OUTSIDE.get(outside), pixels.reshape(-1, channels)
    across = _Along.of(x.reshape(-1), width, border=fill is None)
    down = _Along.of(y.reshape(-1), height, border=fill is None)
    upper, lower = (
        _mixed(
            *(
                flat.take(row * width + column, axis=0).astype(np.int32) - int(fill or 0)
                for column in (across.low, across.high)
            ),
            *(each[:, np.newaxis] for each in (across.near, across.far)),
        )
        for row in (down.low, down.high)
    )
    mixed = _mixed(upper, lower, down.near[:, np.newaxis], down.far[:, np.newaxis])
    return _rounded(mixed, fill).reshape(*x.shape, channels)


def _by_lines(pixels: Array, columns: Array, rows: Array, outside: str) -> Array:
    """Pixels [H, W, C] at columns [W] and rows [H] in 32nds of pixels."""
    height, width, channels = pixels.shape
    fill = OUTSIDE.get(outside)
    x = _Along.of(columns, width, border=fill is None)
    y = _Along.of(rows, height, border=fill is None)
    wanted, place = np.unique(np.concatenate([y.low, y.high]), return_inverse=True)
    lines = pixels.take(wanted, axis=0)
    left, right = (
        lines.take(each, axis=1).reshape(len(lines), -1).astype(np.int16) - np.int16(fill or 0)
        for each in (x.low, x.high)
    )
    # Of one line, without axes. 32 times a pixel fits 16 bits.
    weights = (np.repeat(each, channels).astype(np.int16) for each in (x.near, x.far))
    wide = _mixed(left, right, *weights)
    upper, lower = (wide.take(each, axis=0) for each in np.split(place, 2))
    mixed = _mixed(upper, lower, y.near[:, np.newaxis], y.far[:, np.newaxis])
    return _rounded(mixed, fill).reshape(len(rows), len(columns), channels)


def _rounded(mixed: Array, fill: float | None) -> Array:
    """Pixels from 1024 times their distance from what is outside."""
    found: Array = (mixed + int(fill or 0) * _PARTS**2 + _PARTS**2 // 2) >> 10
    return found.astype(np.uint8)


def _mixed(low: Array, high: Array, near: Array, far: Array) -> Array:
    """32 times what is between `low` and `high`, by how much each of them counts."""
    found: Array = low * near
    np.add(found, high * far, out=found)
    return found


@dataclass(frozen=True, slots=True)
class _Along:
    """Places along an axis.

    Args:
        low, high: the pixels on both sides.
        near, far: how much each of them counts, in 32nds; together less where zeros are near.
    """

    low: Array
    high: Array
    near: Array
    far: Array

    @classmethod
    def of(cls, at: Array, count: int, *, border: bool) -> _Along:
        """The samples at positions in 32nds of a pixel, in a picture of `count` pixels."""
        if border:
            at = np.clip(at, 0, (count - 1) * _PARTS)
        low = np.clip(at // _PARTS, 0, max(count - 2, 0))
        part = (at - low * _PARTS).astype(np.int32)
        more = int(count > 1)
        if border:
            return cls(low, low + more, _PARTS - part, part)
        near = np.maximum(_PARTS - np.abs(part), 0)
        return cls(low, low + more, near, np.maximum(_PARTS - np.abs(part - _PARTS), 0) * more)
