"""The table of known versions: what TFLite registers, what each brought, and the first runtime.

The rows stand in `known_layers` and `known_arrays`: one text per version, from the operator's first
up, of the runtime and what the version brought.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tflite_ort.base.records import record
from tflite_ort.schema import Op
from tflite_ort.schema.values.made_once import MadeOnce
from tflite_ort.versioning import known_arrays, known_layers


@record
class KnownVersion:
    """A version of an operator that TFLite registers.

    Args:
        runtime: the first TFLite release that has it.
        brings: what it added, in a few words; empty for the first version, and where TFLite's
            rules say nothing about it.
    """

    op: Op
    number: int
    runtime: str
    brings: str


# Operators whose first version is not 1.
_FIRST = {Op.BROADCAST_TO: 2}


_TEXTS = {**known_layers.VERSIONS, **known_arrays.VERSIONS}


def _row(op: Op, number: int, text: str) -> KnownVersion:
    runtime, _, brings = text.partition(" ")
    return KnownVersion(op, number, runtime, brings)


KNOWN: Mapping[tuple[Op, int], KnownVersion] = MadeOnce(
    {
        (op, number): partial(_row, op, number, text)
        for op, texts in _TEXTS.items()
        for number, text in enumerate(texts, _FIRST.get(op, 1))
    }
)
_RANGES = {
    op: range(_FIRST.get(op, 1), _FIRST.get(op, 1) + len(texts)) for op, texts in _TEXTS.items()
}


def is_known(op: Op, version: int) -> bool:
    """Whether TFLite has this version of `op`."""
    return (op, version) in KNOWN


def known_versions(op: Op) -> range:
    """The versions that TFLite has of `op`; empty for one that it has no kernel for."""
    return _RANGES.get(op, range(0))


def span(versions: Sequence[int]) -> str:
    """Such as "versions 2 to 4" or "version 1"."""
    first, last = versions[0], versions[-1]
    if list(versions) != list(range(first, last + 1)):
        return f"versions {', '.join(map(str, versions))}"
    return f"version {first}" if first == last else f"versions {first} to {last}"
