"""Values as pictures: images, heat maps and their differences, as PNG files in data URIs."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Pixels = npt.NDArray[np.uint8]

# Smaller ones are lists, not pictures; larger ones are shown with fewer pixels.
SMALLEST, LARGEST = 8, 256

_RGB = 3
_ODD = (255, 0, 255)

# Ten colours of viridis, dark to bright; the others lie between them.
_VIRIDIS = np.array(
    [
        (68, 1, 84),
        (72, 40, 120),
        (62, 74, 137),
        (49, 104, 142),
        (38, 130, 142),
        (31, 158, 137),
        (53, 183, 121),
        (109, 205, 89),
        (180, 222, 44),
        (253, 231, 37),
    ],
    float,
)


@dataclass(frozen=True, slots=True)
class Picture:
    """Three pictures of one tensor; each URI is a whole PNG file.

    Args:
        kind: ``"image"`` or ``"heat map"``.
        part: which part of the tensor is shown, such as ``"channel 3 of 21"``.
        low, high: the values of the darkest and the brightest colour.
        apart: the largest difference, which has the brightest colour of the third picture.
    """

    kind: str
    part: str
    low: float
    high: float
    apart: float
    reference: str
    got: str
    difference: str


def picture_of(reference: Array, got: Array) -> Picture | None:
    """Pictures of two tensors of one shape, [..., H, W, C] or [H, W]; None where they are lists.

    Three channels are an image. Of more channels the one that differs most is shown.
    """
    if reference.shape != got.shape or not (_is_real(reference) and _is_real(got)):
        return None
    want, found = _plane(reference), _plane(got)
    if want is None or found is None:
        return None
    with np.errstate(invalid="ignore"):
        apart = np.abs(found - want)
    kind, part = "image", ""
    if want.shape[2] != _RGB:
        worst = int(np.nan_to_num(apart, nan=np.inf).max(axis=(0, 1)).argmax())
        kind, part = "heat map", f"channel {worst} of {want.shape[2]}" * (want.shape[2] > 1)
        want, found, apart = (each[..., worst : worst + 1] for each in (want, found, apart))
    return _picture(kind, part, want, found, apart)


def _picture(kind: str, part: str, want: Array, found: Array, apart: Array) -> Picture:
    """Planes [H, W, C] and how far they are apart, as a picture."""
    low, high = _bounds(want, found)
    largest = _bounds(apart)[1]
    return Picture(
        kind,
        part,
        low,
        high,
        largest,
        _uri(_thinned(want), low, high),
        _uri(_thinned(found), low, high),
        _uri(_pooled(apart.max(axis=2, keepdims=True)), 0.0, largest),
    )


def png(pixels: Pixels) -> bytes:
    """A PNG file of `pixels`, [H, W, 3]."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + _RGB * width), np.uint8)  # the first byte: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def _is_real(values: Array) -> bool:
    return values.dtype.kind in "fiubV" and values.dtype.names is None


def _plane(values: Array) -> npt.NDArray[np.float64] | None:
    """[H, W, C] of the first of a batch; None where it is too small for a picture."""
    while values.ndim > 2 and (values.ndim > 3 or values.shape[0] == 1):
        if not values.shape[0]:
            return None
        values = values[0]
    if values.ndim < 2 or min(values.shape[:2]) < SMALLEST or not values.size:
        return None
    return values.astype(np.float64).reshape(*values.shape[:2], -1)


def _bounds(*planes: Array) -> tuple[float, float]:
    """The least and the largest finite value."""
    finite = [plane[np.isfinite(plane)] for plane in planes]
    found = [each for each in finite if each.size]
    if not found:
        return 0.0, 0.0
    return min(float(each.min()) for each in found), max(float(each.max()) for each in found)


def _steps(plane: Array) -> tuple[int, int]:
    height, width = (-(-size // LARGEST) for size in plane.shape[:2])
    return height, width


def _thinned(plane: Array) -> Array:
    down, across = _steps(plane)
    return plane[::down, ::across]


def _pooled(plane: Array) -> Array:
    """The largest of each block: a single pixel that differs stays visible."""
    for axis, step in enumerate(_steps(plane)):
        plane = np.maximum.reduceat(plane, np.arange(0, plane.shape[axis], step), axis=axis)
    return plane


def _uri(plane: Array, low: float, high: float) -> str:
    """Colours of [H, W, 1 or 3]; what is not finite is magenta."""
    finite = np.isfinite(plane).all(axis=2)
    # Halves: the distance of the ends may be larger than the largest float.
    spread = high / 2 - low / 2 or 1.0
    shares = np.clip((np.where(np.isfinite(plane), plane, low) / 2 - low / 2) / spread, 0, 1)
    if plane.shape[2] == _RGB:
        pixels = np.rint(shares * 255)
    else:
        stops = np.linspace(0, 1, len(_VIRIDIS))
        pixels = np.stack([np.interp(shares[..., 0], stops, each) for each in _VIRIDIS.T], axis=2)
    pixels[~finite] = _ODD
    file = png(pixels.astype(np.uint8))
    return f"data:image/png;base64,{base64.b64encode(file).decode()}"
