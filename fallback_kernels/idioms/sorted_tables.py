"""Files of sorted keys with values, as LevelDB has them: checkpoints of TensorFlow and indices.

A file is blocks, an index of these, and a footer. A key is stored without what it shares with the
one before. Each block has a checksum. Compressed blocks are refused.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, takewhile, zip_longest

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


class Table:
    """The keys and values of a file, whose blocks are read when their keys are asked for.

    Args:
        part: so many bytes of the file from an offset on; fewer at its end.
        size: of the file.
        name: of the file, for errors.

    Raises:
        KernelError: it is no such file, it is damaged, or compressed; also of all methods.
    """

    def __init__(self, part: Callable[[int, int], bytes], size: int, name: str) -> None:
        self._part, self._size, self._name = part, size, name
        footer = part(size - _FOOTER, _FOOTER) if size >= _FOOTER else b""
        if footer[-8:] != _MAGIC:
            raise KernelError(f"{name} is no checkpoint of TensorFlow")
        _, at = _handle(footer[:-8], 0, name)
        place, _ = _handle(footer[:-8], at, name)
        index = self._within(self._entries(place), _LONGER * size + _LEAST)
        self._places = {key: _handle(value, 0, name)[0] for key, value in index}
        self._ends = sorted(self._places)
        self._last: tuple[bytes, dict[bytes, bytes]] = (b"", {})

    @classmethod
    def of(cls, content: bytes, name: str) -> Table:
        """The table that these bytes are."""
        return cls(lambda offset, size: content[offset : offset + size], len(content), name)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None where there is no such key."""
        at = bisect_left(self._ends, key)
        if at == len(self._ends):
            return None
        end = self._ends[at]
        if self._last[0] != end or not self._last[1]:
            place = self._places[end]
            self._last = end, dict(self._within(self._entries(place), _LONGER * place[1] + _LEAST))
        return self._last[1].get(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their values."""
        blocks = (self._entries(self._places[end]) for end in self._ends)
        return self._within(chain.from_iterable(blocks), _LONGER * self._size + _LEAST)

    def _within(
        self, pairs: Iterable[tuple[bytes, bytes]], allowed: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """`pairs` as long as they have no more bytes together than allowed."""
        for key, value in pairs:
            allowed -= len(key) + len(value)
            if allowed < 0:
                raise KernelError(f"{self._name} unfolds into too much")
            yield key, value

    def _entries(self, place: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
        return _entries(self._block(place), self._name)

    def _block(self, place: tuple[int, int]) -> bytes:
        offset, size = place
        if size + _TRAILER > self._size - offset:
            raise KernelError(f"{self._name} is damaged: a block leaves the file")
        whole = self._part(offset, size + _TRAILER)
        kind, checksum = whole[size], struct.unpack("<I", whole[-4:])[0]
        if masked_crc32c(whole[:-4]) != checksum:
            raise KernelError(f"{self._name} is damaged: a checksum does not fit")
        if kind:
            raise KernelError(f"{self._name} is compressed, which is not read here")
        return whole[:size]


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
