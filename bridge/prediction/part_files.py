"""Parts of a job as files: results, a summary of them, and a checksum."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tflite_ort.base.files import writing
from tflite_ort.prediction.results import Block

_COPIED = 1 << 20
# At the end of a part: the length of the summary before it, and the CRC-32 of all before that.
_LENGTH = _CHECKSUM = struct.Struct("<I")
_END = _LENGTH.size + _CHECKSUM.size
_LONGEST_ERROR = 2000  # characters of an error in a summary, which zipfile passes over


def copy(parts: Sequence[Path], out: Path, head: bytes = b"") -> None:
    """Write `head` and what parts hold, one after the other."""
    with writing(out) as (stream,):
        stream.write(head)
        for part in parts:
            for content in _checked(part):
                stream.write(content)


def write_checked(part: Path, content: bytes | memoryview, block: Block) -> None:
    """Write a part that `_checked` and `told_of` read."""
    done = block.done(0)
    summary = json.dumps([done.rows, done.failed, done.error[:_LONGEST_ERROR]]).encode()
    summary += _LENGTH.pack(len(summary))
    with writing(part) as (stream,):
        stream.write(content)
        stream.write(summary + _CHECKSUM.pack(zlib.crc32(summary, zlib.crc32(content))))


def told_of(part: Path) -> tuple[int, int, str]:
    """(rows, rows with an error, the first error) of a part.

    Raises:
        ValueError: it is damaged.
    """
    with part.open("rb") as source:
        source.seek(content_size(part))
        rows, failed, error = json.loads(source.read()[:-_END])
    return int(rows), int(failed), str(error)


def content_size(part: Path) -> int:
    """How many bytes of a part are results."""
    size = part.stat().st_size - _END
    if size >= 0:
        with part.open("rb") as source:
            source.seek(size)
            size -= _LENGTH.unpack(source.read(_LENGTH.size))[0]
    if size < 0:
        raise ValueError(f"{part} is damaged")
    return size


def _checked(part: Path) -> Iterator[bytes]:
    """The bytes of a part.

    Raises:
        ValueError: after the last of them, if they are not those that were written.
    """
    left, checksum = content_size(part), 0
    with part.open("rb") as source:
        while left > 0 and (content := source.read(min(left, _COPIED))):
            checksum = zlib.crc32(content, checksum)
            left -= len(content)
            yield content
        summary = source.read()
    whole, told = summary[: -_CHECKSUM.size], summary[-_CHECKSUM.size :]
    if told != _CHECKSUM.pack(zlib.crc32(whole, checksum)):
        raise ValueError(f"{part} is damaged")


def check(parts: Sequence[Path]) -> None:
    """Raise ValueError if one of them is not what was written."""
    for part in parts:
        for _ in _checked(part):
            pass
