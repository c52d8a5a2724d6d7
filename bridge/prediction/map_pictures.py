"""Maps that a model gave, as pictures."""

from __future__ import annotations

import colorsys
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import InputError

Array = npt.NDArray[Any]

_LEVELS = 256
# By this share of the colour circle, neighbouring classes are far apart.
_TURN = 0.381966


def picture_of(array: Array, origin: str) -> tuple[bytes, str]:
    """A PNG file of a map, and how its values became pixels.

    Three channels are the colours of a picture: uint8 as it is, floats from 0 to 1 or from -1 to 1,
    others from their least to their greatest value. One channel is gray, from its least to its
    greatest value. More, or two, are scores of classes: the best one's colour. Integers without
    channels are numbers of classes.

    Args:
        array: [H, W] or [H, W, C], also with dimensions of 1 in front.

    Raises:
        InputError: it has another shape, or Pillow is missing.
    """
    pillow = optional_module("PIL.Image")
    if pillow is None:
        raise InputError("writing a PNG file needs Pillow: pip install 'tflite-ort[images]'")
    pixels, said, colours = _pixels(_map(array, origin))
    image = pillow.fromarray(np.ascontiguousarray(pixels))
    if colours:
        image.putpalette(palette())
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue(), said


def _map(array: Array, origin: str) -> Array:
    """`array` as [H, W, C], or as [H, W] where it has no channels."""
    inner = array
    while inner.ndim > 3 and inner.shape[0] == 1:
        inner = inner[0]
    if array.ndim == 3 and array.shape[0] == 1:  # [1, H, W] without channels
        inner = array[0]
    if inner.ndim not in (2, 3) or 0 in inner.shape or inner.dtype.kind not in "biuf":
        raise InputError(f"{origin} {list(array.shape)} of {array.dtype} is no map of [H, W, C]")
    return inner


def _pixels(values: Array) -> tuple[Array, str, bool]:
    """uint8 [H, W] or [H, W, 3], what they are, and whether they are numbers of colours."""
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
        return _stretched(values), _range(values), False
    if values.ndim == 2:
        if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < _LEVELS:
            return values.astype(np.uint8), f"{int(values.max()) + 1} classes by colour", True
        return _stretched(values), _range(values), False
    if values.shape[2] == 3:
        return _colours(values), "channels as red, green, blue", False
    best = values.argmax(axis=2) % _LEVELS
    return best.astype(np.uint8), f"the best of {values.shape[2]} classes by colour", True


def _colours(values: Array) -> Array:
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind == "f" and values.min() >= -1 and values.max() <= 1:
        unit = values if values.min() >= 0 else (values + 1) / 2
        pixels: Array = np.round(unit * (_LEVELS - 1)).astype(np.uint8)
        return pixels
    return _stretched(values)


def _stretched(values: Array) -> Array:
    """From black, the least value, to white, the greatest; what is no number is black."""
    wide = np.nan_to_num(values.astype(np.float64), posinf=0, neginf=0)
    low, high = wide.min(), wide.max()
    pixels: Array = np.round((wide - low) / ((high - low) or 1) * (_LEVELS - 1)).astype(np.uint8)
    return pixels


def _range(values: Array) -> str:
    return f"black is {values.min():.4g}, white {values.max():.4g}"


def palette() -> list[int]:
    """Red, green and blue of 256 classes; the first one is black."""
    colours = [0, 0, 0]
    for number in range(1, _LEVELS):
        red, green, blue = colorsys.hsv_to_rgb(number * _TURN % 1, 0.65, 0.95)
        colours += [round(part * (_LEVELS - 1)) for part in (red, green, blue)]
    return colours
