"""The directory of a zip archive, verified: every entry lies where it says, and apart from others.

An archive may follow other bytes, as the files do that are packed with a model. Its entries are
stored or deflated; nothing is unpacked here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tflite_ort.bundles.entries import FILE, Entry, check_disjoint, check_distinct, check_name
from tflite_ort.schema import MalformedBundle

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\5\6"
_RECORD = struct.Struct("<4s6H3L5H2L")
_RECORD_MAGIC = b"PK\1\2"
_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_MAGIC = b"PK\3\4"
_WIDE_LOCATOR = struct.Struct("<4sLQL")
_WIDE_LOCATOR_MAGIC = b"PK\6\7"
_WIDE_END = struct.Struct("<4sQ2H2L4Q")
_WIDE_END_MAGIC = b"PK\6\6"
_LONGEST_COMMENT = 0xFFFF

_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 1, 8, 0x800
_STORED, _DEFLATED = 0, 8
_WIDE = 0xFFFFFFFF
_WIDE_EXTRA = 1
_LINK, _FILE_KIND = 0o120000, 0o170000


@dataclass(frozen=True, slots=True)
class _Directory:
    """Where the records of the entries are.

    Args:
        start, size: of the records, in the bytes at hand.
        count: how many there are.
        base: what every offset in them is relative to.
    """

    start: int
    size: int
    count: int
    base: int


def starts_archive(content: memoryview) -> bool:
    """Whether the bytes are an archive from the first one on."""
    return bytes(content[:4]) in (_LOCAL_MAGIC, _END_MAGIC)


def ends_archive(content: memoryview) -> bool:
    """Whether an archive ends where the bytes end."""
    return _end_record(content) is not None


def archive_entries(content: memoryview) -> list[Entry]:
    """The files in the archive that ends where `content` ends, in the order of its directory.

    Raises:
        MalformedBundle: it is damaged, encrypted or compressed in another way, or it has names or
            positions that no honest archive has.
    """
    directory = _directory(content)
    entries, spans = [], []
    for entry, start in _records(content, directory):
        spans.append((start, entry.offset + entry.stored, entry.name))
        if not entry.name.endswith("/"):
            check_name(entry.name)
            entries.append(entry)
    spans.append((directory.start, directory.start + directory.size, "the directory"))
    check_disjoint(spans)
    check_distinct(entry.name for entry in entries)
    return entries


def _directory(content: memoryview) -> _Directory:
    at = _end_record(content)
    if at is None:
        raise MalformedBundle("the archive has no end: it may be cut short")
    _, disk, first_disk, here, count, size, offset, _ = _END.unpack_from(content, at)
    end = at
    if count == 0xFFFF or _WIDE in (size, offset):
        end, here, count, size, offset = _wide_end(content, at, (at, here, count, size, offset))
    if (disk, first_disk) != (0, 0) or here != count:
        raise MalformedBundle("the archive is in several parts", at)
    base = end - size - offset
    if base < 0 or count * _RECORD.size > size:
        raise MalformedBundle(f"a directory of {count} entries and {size} bytes at {offset}", at)
    return _Directory(base + offset, size, count, base)


def _end_record(content: memoryview) -> int | None:
    """Where the end record is: the last one whose comment ends where the bytes end."""
    first = max(len(content) - _END.size - _LONGEST_COMMENT, 0)
    tail = bytes(content[first:])
    at = tail.rfind(_END_MAGIC)
    while at >= 0:
        if at + _END.size <= len(tail):
            comment = _END.unpack_from(tail, at)[-1]
            if at + _END.size + comment == len(tail):
                return first + at
        at = tail.rfind(_END_MAGIC, 0, at)
    return None


def _wide_end(
    content: memoryview, at: int, narrow: tuple[int, int, int, int, int]
) -> tuple[int, int, int, int, int]:
    """Where the directory ends, and its counts, size and offset in 64 bits."""
    locator = at - _WIDE_LOCATOR.size
    if locator < 0 or bytes(content[locator : locator + 4]) != _WIDE_LOCATOR_MAGIC:
        return narrow
    end = locator - _WIDE_END.size
    if end < 0 or bytes(content[end : end + 4]) != _WIDE_END_MAGIC:
        raise MalformedBundle("the archive's 64-bit end is not before its locator", locator)
    *_, here, count, size, offset = _WIDE_END.unpack_from(content, end)
    return end, here, count, size, offset


def _records(content: memoryview, directory: _Directory) -> Iterator[tuple[Entry, int]]:
    """Each entry, and where its local header is."""
    at, end = directory.start, directory.start + directory.size
    for _ in range(directory.count):
        if at + _RECORD.size > end:
            raise MalformedBundle("the directory ends within a record", at)
        record = _RECORD.unpack_from(content, at)
        if record[0] != _RECORD_MAGIC:
            raise MalformedBundle("no record in the directory", at)
        name_size, extra_size, comment_size = record[10:13]
        after = at + _RECORD.size + name_size + extra_size + comment_size
        if after > end:
            raise MalformedBundle("the directory ends within a record", at)
        name = bytes(content[at + _RECORD.size :][:name_size])
        extra = bytes(content[at + _RECORD.size + name_size :][:extra_size])
        yield _entry(content, directory, record, name, extra, at)
        at = after


def _entry(
    content: memoryview,
    directory: _Directory,
    record: tuple[int, ...],
    raw_name: bytes,
    extra: bytes,
    at: int,
) -> tuple[Entry, int]:
    flags, method, checksum, stored, size = record[3], record[4], *record[7:10]
    name = _decoded(raw_name, flags, at)
    size, stored, offset = _wide_numbers(extra, (size, stored, record[16]), name)
    if flags & _ENCRYPTED:
        raise MalformedBundle(f"{name!r} is encrypted", at)
    if method not in (_STORED, _DEFLATED):
        raise MalformedBundle(f"{name!r} is compressed by method {method}: neither 0 nor 8", at)
    if (record[15] >> 16) & _FILE_KIND == _LINK:
        raise MalformedBundle(f"{name!r} is a link", at)
    if method == _STORED and stored != size:
        raise MalformedBundle(f"{name!r} of {size} bytes is stored in {stored}", at)
    start = directory.base + offset
    data = _data_start(content, start, directory, (raw_name, flags, method), name)
    if data + stored > directory.start:
        raise MalformedBundle(f"{name!r} reaches past the files", start)
    entry = Entry(name, FILE, data, stored, size, method == _DEFLATED, checksum)
    return entry, start


def _decoded(name: bytes, flags: int, at: int) -> str:
    try:
        return name.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError as error:
        raise MalformedBundle(f"entry name {name!r} is not UTF-8", at) from error


def _wide_numbers(extra: bytes, numbers: tuple[int, int, int], name: str) -> tuple[int, int, int]:
    """Size, stored size and offset; those that do not fit 32 bits are in the extra field."""
    wanted = [place for place, number in enumerate(numbers) if number == _WIDE]
    found, at = list(numbers), 0
    while wanted and at + 4 <= len(extra):
        tag, length = struct.unpack_from("<2H", extra, at)
        if tag == _WIDE_EXTRA:
            if length < 8 * len(wanted) or at + 4 + length > len(extra):
                raise MalformedBundle(f"{name!r} lacks its 64-bit sizes")
            wide = struct.unpack_from(f"<{len(wanted)}Q", extra, at + 4)
            for place, number in zip(wanted, wide, strict=True):
                found[place] = number
            break
        at += 4 + length
    return found[0], found[1], found[2]


def _data_start(
    content: memoryview,
    start: int,
    directory: _Directory,
    expected: tuple[bytes, int, int],
    name: str,
) -> int:
    """Where the bytes of an entry begin, after a header that says what its record says."""
    if start + _LOCAL.size > directory.start:
        raise MalformedBundle(f"{name!r} begins past the files", start)
    magic, _, flags, method, *_, name_size, extra_size = _LOCAL.unpack_from(content, start)
    if magic != _LOCAL_MAGIC:
        raise MalformedBundle(f"{name!r} has no header", start)
    after = start + _LOCAL.size
    told = bytes(content[after : after + name_size]), flags & ~_SIZES_FOLLOW, method
    if told != (expected[0], expected[1] & ~_SIZES_FOLLOW, expected[2]):
        raise MalformedBundle(f"the header of {name!r} contradicts its record", start)
    return after + int(name_size) + int(extra_size)
