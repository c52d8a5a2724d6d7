"""Names of what the cache makes, which prove that it has made it."""

from __future__ import annotations

import os
import zlib

STAGING = "staging-"
_DRAWN = 16  # characters


def fresh_name(head: str) -> str:
    """A name that begins with `head`, that nothing else has, and that proves who has made it."""
    drawn = os.urandom(_DRAWN // 2).hex()
    return f"{head}{drawn}{_proof(head, drawn)}"


def is_proved(name: str) -> bool:
    """Whether `fresh_name` has made a name; those of an entry's files have a number behind it."""
    head, parts = STAGING, name.removeprefix(STAGING).split(".")
    if is_key(parts[0]):
        head, parts = f"{parts[0]}.", [*parts[1:], ""]
    return parts[0][_DRAWN:] == _proof(head, parts[0][:_DRAWN])


def is_key(text: str) -> bool:
    """Whether it can be the key of an entry."""
    return len(text) == 40 and set(text) <= set("0123456789abcdef")


def _proof(head: str, drawn: str) -> str:
    return f"{zlib.crc32(f'tflite-ort cache {head}{drawn}'.encode()):08x}"
