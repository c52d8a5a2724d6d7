"""Files of sorted keys with values, as LevelDB has them: checkpoints of TensorFlow and indices.

A file is blocks, an index of these, and a footer. A key is stored without what it shares with the
one before. Each block has a checksum. Compressed blocks are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import takewhile, zip_longest

from tflite_ort.fallback_kernels.idioms.crc32c import masked_crc32c
from tflite_ort.schema import KernelError

_FOOTER, _TRAILER = 48, 5
_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
# As TensorFlow writes them: bytes of a block, more or less, and keys of which one is stored whole.
_BLOCK = 1 << 18
_RESTART = 16
# Keys share what comes before: all of them together may be so many times longer than the file.
_LONGER = 16
_LEAST = 1 << 20


def read_table(content: bytes, name: str) -> dict[bytes, bytes]:
    """The keys and values of a file.

    Args:
        name: of the file, for errors.

    Raises:
        KernelError: it is no such file, it is damaged, or compressed.
    """
    if len(content) < _FOOTER or content[-8:] != _MAGIC:
        raise KernelError(f"{name} is no checkpoint of TensorFlow")
    footer = content[-_FOOTER:-8]
    _, at = _handle(footer, 0, name)
    place, _ = _handle(footer, at, name)
    found: dict[bytes, bytes] = {}
    allowed = _LONGER * len(content) + _LEAST
    for _, value in _entries(_block(content, place, name), name):
        for key, held in _entries(_block(content, _handle(value, 0, name)[0], name), name):
            allowed -= len(key) + len(held)
            if allowed < 0:
                raise KernelError(f"{name} unfolds into too much")
            found[key] = held
    return found


def read_varint(content: bytes, at: int, name: str) -> tuple[int, int]:
    """A number, and where it ends."""
    value = 0
    for place in range(at, min(at + 10, len(content))):
        byte = content[place]
        value |= (byte & 127) << (7 * (place - at))
        if byte < 128:
            return value, place + 1
    raise KernelError(f"{name} is damaged: a number does not end")


def _handle(content: bytes, at: int, name: str) -> tuple[tuple[int, int], int]:
    """Where a block begins and its size, and where that ends."""
    offset, at = read_varint(content, at, name)
    size, at = read_varint(content, at, name)
    return (offset, size), at


def _block(content: bytes, place: tuple[int, int], name: str) -> bytes:
    offset, size = place
    whole = content[offset : offset + size + _TRAILER]
    if len(whole) != size + _TRAILER:
        raise KernelError(f"{name} is damaged: a block leaves the file")
    kind, checksum = whole[size], struct.unpack("<I", whole[-4:])[0]
    if masked_crc32c(whole[:-4]) != checksum:
        raise KernelError(f"{name} is damaged: a checksum does not fit")
    if kind:
        raise KernelError(f"{name} is compressed, which is not read here")
    return whole[:size]


def _entries(block: bytes, name: str) -> Iterator[tuple[bytes, bytes]]:
    count = struct.unpack("<I", block[-4:])[0] if len(block) >= 4 else 0
    end, at, key = len(block) - 4 - 4 * count, 0, b""
    if end < 0:
        raise KernelError(f"{name} is damaged: a block is too short")
    while at < end:
        shared, at = read_varint(block, at, name)
        rest, at = read_varint(block, at, name)
        size, at = read_varint(block, at, name)
        if shared > len(key) or rest + size > end - at:
            raise KernelError(f"{name} is damaged: an entry leaves its block")
        key = key[:shared] + block[at : at + rest]
        at += rest + size
        yield key, block[at - size : at]


def as_varint(value: int) -> bytes:
    """A number as `read_varint` reads it."""
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def table_of(values: Mapping[bytes, bytes]) -> bytes:
    """The bytes of a file with these keys and values."""
    content, index, keys = bytearray(), dict[bytes, bytes](), sorted(values)
    block, size = dict[bytes, bytes](), 0
    for key, after in zip_longest(keys, keys[1:]):
        block[key] = values[key]
        size += len(key) + len(values[key])
        if size >= _BLOCK or after is None:
            index[_between(key, after)] = _written(content, block)
            block, size = {}, 0
    nothing, blocks = _written(content, {}), _written(content, index, 1)
    content += (nothing + blocks).ljust(_FOOTER - len(_MAGIC), b"\0") + _MAGIC
    return bytes(content)


def _between(key: bytes, after: bytes | None) -> bytes:
    """A short key from `key` on, and before `after`."""
    for place, byte in enumerate(key):
        following = None if after is None or place >= len(after) else after[place]
        if after is not None and following is None:
            return key
        if byte < 255 and (following is None or byte + 1 < following):
            return key[:place] + bytes([byte + 1])
        if following is not None and following != byte:
            return key
    return key


def _written(content: bytearray, block: Mapping[bytes, bytes], restart: int = _RESTART) -> bytes:
    """Where in `content` a block stands that is added to it."""
    body, starts, before = bytearray(), [], b""
    for place, (key, value) in enumerate(block.items()):
        if place % restart == 0:
            starts.append(len(body))
            before = b""
        shared = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, key, strict=False))
        )
        body += as_varint(shared) + as_varint(len(key) - shared) + as_varint(len(value))
        body += key[shared:] + value
        before = key
    starts = starts or [0]
    body += struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))
    handle = as_varint(len(content)) + as_varint(len(body))
    body += b"\0"
    content += body + struct.pack("<I", masked_crc32c(bytes(body)))
    return handle
