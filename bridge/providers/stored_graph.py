"""Graphs on disk that a session is made of without any translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]

# What is in the file: a graph that ONNX Runtime has optimised for this processor, in its own format
# or, with the weights in a file beside it, as ONNX; or what a provider has compiled.
PACKED, MAPPED, COMPILED = "packed", "mapped", "compiled"

# Above this many bytes of weights ONNX Runtime is to map them, which takes no memory of its own and
# no time; below, its own format is read in less time than ONNX. It ends at two gigabytes.
MAPPED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class SavedGraph:
    """What a session has written of itself.

    Args:
        kind: PACKED, MAPPED or COMPILED.
        files: the graph, and after it what it refers to, by name in its own folder.
    """

    kind: str
    files: Sequence[Path]


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """What a session is made of.

    Args:
        kind: as of `SavedGraph`.
        path: the graph; other files that it refers to lie beside it.
        in_place: by name, the inputs of the graph that are always these weights.
    """

    kind: str
    path: str
    in_place: Mapping[str, Array] = field(default_factory=dict)
