"""A picture as a tensor, with numpy: to the last bit what the nodes of `image_input` give.

Pixels are interpolated as on MediaPipe's CPU path: places in 32nds of a pixel, results rounded to
8 bits. Sums are whole multiples of 1/1024, so integers hold them.
"""

from __future__ import annotations

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
        at = places(np.array(WHOLE, np.float32), size, tensor, how.letterbox)
        pixels = _sampled(pixels, at, how.outside).reshape(tensor[1], tensor[0], -1)
    values = values_of(pixels[..., ::-1] if how.bgr else pixels, how)
    return np.ascontiguousarray(values.transpose(2, 0, 1)) if how.channels_first else values


def values_of(pixels: Array, how: PictureInput) -> Array:
    """Pixels [..., channels] as the values that a network reads."""
    dtype = np.dtype(how.dtype)
    if dtype.kind == "f":
        real = pixels.astype(np.float32)
        mean, std = (np.array(each, np.float32) for each in (how.mean, how.std))
        np.subtract(real, mean, out=real)
        return np.multiply(real, 1 / std, out=real).astype(dtype, copy=False)
    if how.dtype == "uint8" and how.takes_pixels:
        return pixels
    table = how.codes()
    if table.ndim == 1:
        return table.take(pixels, mode="clip")
    return table[pixels, np.arange(table.shape[1])]


def _sampled(pixels: Array, at: Array, outside: str) -> Array:
    """Pixels [N, C] at places in 32nds of pixels, x and y, [2, N]."""
    height, width, channels = pixels.shape
    last = np.array([[width - 1], [height - 1]], np.int64)
    fill = OUTSIDE.get(outside)
    at = at.astype(np.int64)
    if fill is None:
        at = np.clip(at, 0, last * _PARTS)
    low = np.clip(at // _PARTS, 0, np.maximum(last - 1, 0))
    x, y = at - low * _PARTS
    first = low[1] * width + low[0]
    across, down = int(width > 1), width * int(height > 1)
    flat = pixels.reshape(-1, channels)
    corners = [flat.take(first + step, axis=0) for step in (0, across, down, across + down)]
    wide = [each.astype(np.int32) - int(fill or 0) for each in corners]
    border = fill is None
    upper, lower = (
        _mixed(low, high, x, border=border, more=width > 1) for low, high in (wide[:2], wide[2:])
    )
    mixed = _mixed(upper, lower, y, border=border, more=height > 1)
    found: Array = (mixed + int(fill or 0) * _PARTS**2 + _PARTS**2 // 2) >> 10
    return found.astype(np.uint8)


def _mixed(low: Array, high: Array, part: Array, *, border: bool, more: bool) -> Array:
    """32 times what is `part` 32nds of the way from `low` to `high`; beyond them zeros are near."""
    part = part.astype(np.int32)
    if border:
        mixed: Array = low * _PARTS + (high - low) * part[:, np.newaxis]
        return mixed
    near = np.maximum(_PARTS - np.abs(part), 0)[:, np.newaxis]
    other = np.maximum(_PARTS - np.abs(part - _PARTS), 0)[:, np.newaxis] * int(more)
    mixed = low * near + high * other
    return mixed
