"""The checksum CRC-32C of bytes, in numpy."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_POLYNOMIAL = np.uint32(0x82F63B78)
_ONES = np.uint32(0xFFFFFFFF)
_MASK = 0xA282EAD8
_MANY = 1 << 14


def masked_crc32c(content: bytes) -> int:
    """The checksum as tables and checkpoints store it."""
    value = crc32c(content)
    return ((value >> 15 | value << 17) + _MASK) & 0xFFFFFFFF


def crc32c(content: bytes) -> int:
    """The checksum of bytes.

    Many are cut to parts of one length, whose sums are made side by side, and then joined in pairs.
    """
    if len(content) < _MANY:
        value, listed = 0xFFFFFFFF, _listed()
        for byte in content:
            value = listed[(value ^ byte) & 255] ^ (value >> 8)
        return value ^ 0xFFFFFFFF
    lanes = 1 << (len(content).bit_length() // 2)
    length = -(-len(content) // lanes // 2) * 2  # two bytes at a time
    # Zeros before the first byte do not change a sum that starts at 0.
    parts = np.zeros((lanes, length), np.uint8)
    parts.reshape(-1)[lanes * length - len(content) :] = np.frombuffer(content, np.uint8)
    table, sums = _table(16), np.zeros(lanes, np.uint32)
    for column in np.ascontiguousarray(parts.view("<u2").T):
        sums = table.take(sums.astype(np.uint16) ^ column) ^ (sums >> np.uint32(16))
    shift = _zeros(length)
    while len(sums) > 1:
        sums = _moved(shift, sums[::2]) ^ sums[1::2]
        shift = _moved(shift, shift)
    start = _moved(_zeros(len(content)), np.array([_ONES], np.uint32))
    return int((sums ^ start ^ _ONES)[0])


@cache
def _table(bits: int) -> Words:
    """What so many bits make of a sum."""
    values = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        values = np.where(values & 1, (values >> 1) ^ _POLYNOMIAL, values >> 1).astype(np.uint32)
    return values


@cache
def _listed() -> list[int]:
    listed: list[int] = _table(8).tolist()
    return listed


def _zeros(count: int) -> Words:
    """What `count` bytes of zeros make of each bit of a sum."""
    result = np.uint32(1) << np.arange(32, dtype=np.uint32)
    step = _table(8)[result & np.uint32(255)] ^ (result >> np.uint32(8))
    while count:
        if count & 1:
            result = _moved(step, result)
        step = _moved(step, step)
        count >>= 1
    return result


def _moved(shift: Words, sums: Words) -> Words:
    """Sums, of which each bit becomes what `shift` says."""
    result = np.zeros_like(sums)
    for bit, image in enumerate(shift):
        result ^= np.where(sums >> np.uint32(bit) & np.uint32(1), image, np.uint32(0))
    return result
