"""What a bundle holds, and names that lead nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tflite_ort.schema import MalformedBundle

MODEL, BUNDLE, FILE = "model", "bundle", "file"

_LONGEST_PART, _MOST_PARTS = 255, 64
_RESERVED = frozenset('<>:"|?*\\')
# Windows has devices of these names in every folder, whatever the suffix.
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])( *\..*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a bundle.

    Args:
        name: where it is, with ``/`` between a bundle and what it holds.
        kind: ``model``, ``bundle``, ``file``, or the type of a section, such as ``SP_Tokenizer``.
        offset: of its first byte in the file that holds it.
        stored: bytes that it takes there.
        size: its bytes when unpacked.
        packed: whether it is compressed.
        checksum: the CRC-32 of the unpacked bytes; None where the format has none.
        properties: what the bundle says about it, such as the ``model_type`` of a section.
    """

    name: str
    kind: str
    offset: int
    stored: int
    size: int
    packed: bool = False
    checksum: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The last part of its name, without a suffix."""
        return self.name.rpartition("/")[2].removesuffix(".tflite")


def check_name(name: str) -> None:
    """Refuse a name that could lead out of a folder, or that some system cannot write.

    Raises:
        MalformedBundle: it is such a name.
    """
    if name.count("/") >= _MOST_PARTS:
        raise MalformedBundle(
            f"entry name {name[:300]!r} is in more than {_MOST_PARTS - 1} folders"
        )
    for part in name.split("/"):
        long = len(part.encode(errors="replace")) > _LONGEST_PART
        if part in ("", ".", "..") or long or part[-1] in ". ":
            raise MalformedBundle(f"entry name {name[:300]!r} is no plain relative path")
        if not part.isprintable() or _RESERVED.intersection(part):
            raise MalformedBundle(f"entry name {name[:300]!r} has characters that no name may have")
        if _DEVICE.fullmatch(part):
            raise MalformedBundle(f"entry name {name[:300]!r} is that of a device")


def check_distinct(names: Iterable[str]) -> None:
    """Refuse two entries of one name, upper and lower case being the same, and a file that has
    another one inside.

    Raises:
        MalformedBundle: there are such entries.
    """
    keys = sorted((name.casefold().replace("/", "\0"), name) for name in names)
    # What is in a folder stands right behind a file of its name.
    for (key, name), (after, other) in pairwise(keys):
        if after == key:
            raise MalformedBundle(f"two entries are called {other!r}")
        if after.startswith(f"{key}\0"):
            raise MalformedBundle(f"{name!r} is a file and a folder")


def check_disjoint(spans: Iterable[tuple[int, int, str]]) -> None:
    """Refuse entries that share bytes.

    Args:
        spans: where each begins and ends, and its name.

    Raises:
        MalformedBundle: two of them do.
    """
    reached, last = 0, "the header"
    for start, end, name in sorted(spans):
        if start < reached and end > start:
            raise MalformedBundle(f"{name!r} overlaps {last!r}", start)
        if end > reached:
            reached, last = end, name
