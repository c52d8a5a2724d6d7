"""PNG files with the bytes that TensorFlow writes: those of libpng with its settings."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[Any]

_KINDS = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels
_LONGEST = 8192  # of what a part of the data has
_WINDOW, _SMALL = 15, 16384  # the bits of a window; images of so many bytes have fewer
_LOOKAHEAD = 262
# The filters that are tried, by whether there is one row and whether there is one column.
_FILTERS = {
    (False, False): range(5),
    (True, False): (0, 1),
    (False, True): (0, 2),
    (True, True): (0,),
}


def png_of(pixels: Pixels, level: int) -> bytes:
    """A file of pixels [H, W, channels], of 8 or 16 bits.

    Args:
        level: of the compression; -1 for the default.
    """
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, pixels.itemsize * 8, _KINDS[channels], 0, 0, 0)
    data = _compressed(_filtered(pixels), level)
    parts = [data[at : at + _LONGEST] for at in range(0, len(data), _LONGEST)]
    chunks = [(b"IHDR", header), *((b"IDAT", part) for part in parts), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def _compressed(content: bytes, level: int) -> bytes:
    """A stream of zlib whose window is no larger than the content needs."""
    bits, size = _WINDOW, len(content)
    if size <= _SMALL:
        while bits > 8 and size + _LOOKAHEAD <= 1 << (bits - 1):
            bits -= 1
    made = zlib.compressobj(level, zlib.DEFLATED, max(bits, 9), 9, zlib.Z_FILTERED)
    data = bytearray(made.compress(content) + made.flush())
    told = data[0] >> 4
    if size <= _SMALL:
        while told > 0 and size <= 1 << (told + 7):
            told -= 1
    data[0] = data[0] & 15 | told << 4
    data[1] = data[1] & 0xE0
    data[1] += -(data[0] * 256 + data[1]) % 31
    return bytes(data)


def _filtered(pixels: Pixels) -> bytes:
    """The rows, each with the filter whose differences are the smallest in sum."""
    step = pixels.shape[2] * pixels.itemsize
    whole = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(len(pixels), -1)
    rows = np.ascontiguousarray(whole).view(np.uint8).astype(np.int16)
    before = np.zeros_like(rows[0])
    found = bytearray()
    kinds = _FILTERS[pixels.shape[0] == 1, pixels.shape[1] == 1]
    for row in rows:
        tried = [each.astype(np.uint8) for each in _differences(row, before, step)]
        sums = [int(np.minimum(each, 256 - each.astype(np.int64)).sum()) for each in tried]
        best = min(kinds, key=sums.__getitem__)
        found += bytes([best]) + tried[best].tobytes()
        before = row
    return bytes(found)


def _differences(row: Pixels, above: Pixels, step: int) -> Iterator[Pixels]:
    """A row less what each of the filters expects."""
    first = np.zeros(step, row.dtype)
    left, corner = (np.concatenate([first, each[:-step]]) for each in (row, above))
    yield row
    yield row - left
    yield row - above
    yield row - (left + above >> 1)
    yield row - _paeth(left, above, corner)


def _paeth(left: Pixels, above: Pixels, corner: Pixels) -> Pixels:
    """Of the three the one that is nearest to their plane."""
    a, b, c = (np.abs(each) for each in (above - corner, left - corner, left + above - 2 * corner))
    return np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
