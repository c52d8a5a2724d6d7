"""The pixels of a JPEG as libjpeg-turbo's faster way gives them, which TensorFlow takes.

Pillow decodes so in its draft mode, but repeats colours that stand for several pixels. They are
taken apart here, and interpolated as libjpeg-turbo does ("fancy upsampling").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import KernelError

Plane = npt.NDArray[np.int32]

# Of the colour conversion: 16 bits behind the point.
_BITS = 16
_RED, _BLUE, _GREEN_RED, _GREEN_BLUE = 91881, 116130, 46802, 22554
# A narrower plane is repeated.
_LEAST_COLUMNS = 3
_ROWS = 256  # that are decoded at a time, an even number


def fast_pixels(image: Any, mode: str) -> npt.NDArray[np.uint8]:
    """The pixels [H, W, 1 or 3] of a picture that Pillow has opened and not loaded.

    Args:
        mode: "L" for gray, "RGB".
    """
    is_gray = "L" in (mode, image.mode)
    image.draft("L" if is_gray else "YCbCr", image.size)
    steps = (1, 1) if is_gray else _steps([(layer[1], layer[2]) for layer in image.layer])
    image.decoderconfig = (1, 1)  # of its size, in the draft mode
    image.load()
    planes = np.asarray(image)
    if is_gray:
        return planes[..., None].copy()
    made = np.empty(planes.shape, np.uint8)
    for start in range(0, len(planes), _ROWS):  # with a row of colours before and after
        first = max(start - 2, 0)
        band = planes[first : start + _ROWS + 2].astype(np.int32)
        part = made[start : start + _ROWS]
        part[:] = _of_band(band, *steps)[start - first :][: len(part)]
    return made


def _of_band(planes: Plane, across: int, down: int) -> npt.NDArray[np.uint8]:
    """The pixels of some rows; those of the first and last row of colours are of what is there."""
    y, *colours = np.moveaxis(planes, -1, 0)
    b, r = (_interpolated(plane, across, down) for plane in colours)
    return _rgb(y, b - 128, r - 128)


def _steps(sampling: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """For how many pixels a colour stands, across and down."""
    first, *others = sampling
    if first not in ((1, 1), (2, 1), (2, 2)) or any(each != (1, 1) for each in others):
        raise KernelError(f"a JPEG whose colours are sampled by {sampling} is not implemented")
    return first


def _interpolated(plane: Plane, across: int, down: int) -> Plane:
    """A plane of colours, which repeats each for the pixels that it stands for."""
    columns = -(-plane.shape[1] // across)
    if across == 1 or columns < _LEAST_COLUMNS:
        return plane
    bare = plane[::down, ::across]
    if down == 1:
        made = _between_columns(bare, (1, 2), 2)
    else:
        above = np.concatenate([bare[:1], bare[:-1]])
        below = np.concatenate([bare[1:], bare[-1:]])
        rows = np.stack([3 * bare + above, 3 * bare + below], axis=1)
        made = _between_columns(rows.reshape(-1, bare.shape[1]), (8, 7), 4)
    return made[: plane.shape[0], : plane.shape[1]]


def _between_columns(rows: Plane, rounding: tuple[int, int], bits: int) -> Plane:
    """Two columns for each: three parts of it, and one of that to its left or its right."""
    left = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)
    right = np.concatenate([rows[:, 1:], rows[:, -1:]], axis=1)
    pair = [3 * rows + left + rounding[0], 3 * rows + right + rounding[1]]
    return np.stack(pair, axis=2).reshape(len(rows), -1) >> bits


def _rgb(y: Plane, b: Plane, r: Plane) -> npt.NDArray[np.uint8]:
    half = 1 << (_BITS - 1)
    red = y + ((_RED * r + half) >> _BITS)
    green = y + ((half - _GREEN_BLUE * b - _GREEN_RED * r) >> _BITS)
    blue = y + ((_BLUE * b + half) >> _BITS)
    return np.stack([red, green, blue], axis=-1).clip(0, 255).astype(np.uint8)
