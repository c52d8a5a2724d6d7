"""Graphs on disk that a session is made of without any translation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tflite_ort.base.records import field, record

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]

# What is in the file: a graph that ONNX Runtime has optimised for this processor, as ONNX, in its
# own format or, with the weights in a file beside it, as ONNX; or what a provider has compiled.
SMALL, PACKED, MAPPED, COMPILED = "small", "packed", "mapped", "compiled"

# How ONNX Runtime reads a file of each kind. Its own format is mapped, and the weights stay where
# they are there; without that they are copied twice.
READ_AS: Mapping[str, Mapping[str, str]] = {
    SMALL: {"session.load_model_format": "ONNX"},
    PACKED: {
        "session.load_model_format": "ORT",
        "session.use_memory_mapped_ort_model": "1",
        "session.use_ort_model_bytes_for_initializers": "1",
    },
    MAPPED: {"session.load_model_format": "ONNX"},
    COMPILED: {"session.load_model_format": "ONNX"},
}

# A graph without large weights that takes no more bytes is read in less time as ONNX.
SMALL_BYTES = 1024

# Above this many bytes of weights ONNX Runtime is to map them, which takes no memory of its own and
# no time; below, its own format is read in less time than ONNX. It ends at two gigabytes.
MAPPED_BYTES = 64 << 20


@record
class SavedGraph:
    """What a session has written of itself.

    Args:
        kind: SMALL, PACKED, MAPPED or COMPILED.
        files: the graph, and after it what it refers to, by name in its own folder.
    """

    kind: str
    files: Sequence[Path]


@record
class StoredGraph:
    """What a session is made of.

    Args:
        kind: as of `SavedGraph`.
        path: the graph; other files that it refers to lie beside it.
        inputs: names, without those of `in_place`.
        outputs: names.
        in_place: by name, the inputs of the graph that are always these weights.
        content: of the graph, in place of a path.
        files: what stands for the files that were written, which no others have.
        masked: see `SessionGraph`.
    """

    kind: str
    path: str
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    in_place: Mapping[str, Array] = field(default_factory=dict)
    content: bytes = b""
    files: Hashable = ()
    masked: bool = False
