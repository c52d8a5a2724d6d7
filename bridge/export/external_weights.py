"""The file of weights beside a graph.

A graph and its weights take their names one after the other. So that a graph never finds the
weights of another export, weights that differ from those that are there get another name. Then the
graph is replaced, and at last the weights that it had are removed, if the library has written it.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import onnx
from google.protobuf.message import DecodeError

from tflite_ort.opmap.onnx_graph.ir import PRODUCER, DataType, Graph
from tflite_ort.opmap.onnx_graph.serialization import Place
from tflite_ort.schema.file.errors import UnreadableModel
from tflite_ort.schema.file.plain_files import open_plain

# What is smaller stays in the graph; the others begin where pages do, to be mapped.
_EXTERNAL_BYTES = 1024
_ALIGNMENT = 4096
# So much of the digest is in a name.
_DIGITS = 16


class _Stream(Protocol):
    """What weights are written to."""

    def tell(self) -> int: ...
    def seek(self, offset: int, /) -> int: ...
    def write(self, data: memoryview, /) -> int: ...


def data_path(output: str | os.PathLike[str], graph: Graph) -> Path:
    """Where the weights of a graph go: to ``<output>.data``, or, if something else is there, to
    ``<output>.<digest>.data``."""
    path, digest = Path(f"{os.fspath(output)}.data"), _Digest()
    if not os.path.lexists(path):
        return path
    write_weights(graph, digest, path.name)
    with suppress(OSError, UnreadableModel), open_plain(path) as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() == digest.hexdigest():
            return path
    return Path(f"{os.fspath(output)}.{digest.hexdigest()[:_DIGITS]}.data")


def earlier_data(output: str | os.PathLike[str], data: Path) -> list[Path]:
    """The weights that the graph under this name reads, if an export has written it, other than
    `data`: nothing reads them when it is replaced."""
    name = re.escape(Path(output).name)
    pattern = re.compile(rf"{name}(\.[0-9a-f]{{{_DIGITS}}})?\.data")
    found = [path for path in data.parent.iterdir() if pattern.fullmatch(path.name)]
    others = [path for path in found if path.name != data.name]
    named = _named_weights(output) if others else frozenset()
    return [path for path in others if path.name in named]


def _named_weights(output: str | os.PathLike[str]) -> frozenset[str]:
    """The files that a graph of the library reads; none of one that others have made."""
    with suppress(OSError, DecodeError):
        model = onnx.load(output, load_external_data=False)
        if model.producer_name == PRODUCER:
            entries = (entry for each in model.graph.initializer for entry in each.external_data)
            return frozenset(entry.value for entry in entries if entry.key == "location")
    return frozenset()


def write_weights(graph: Graph, stream: _Stream, location: str) -> dict[str, Place]:
    """Write the large initializers one after the other; returns where they are."""
    places = {}
    for name, value in graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.dtype is DataType.STRING or tensor.nbytes < _EXTERNAL_BYTES:
            continue
        start = -stream.tell() % _ALIGNMENT + stream.tell()
        stream.seek(start)
        stream.write(tensor.data())
        places[name] = Place(location, start)
    return places


class _Digest:
    """The digest of what is written, with zeros where nothing is."""

    def __init__(self) -> None:
        self._digest, self._place = hashlib.sha256(), 0

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, /) -> int:
        self.write(memoryview(bytes(offset - self._place)))
        return offset

    def write(self, data: memoryview, /) -> int:
        self._digest.update(data)
        self._place += data.nbytes
        return data.nbytes

    def hexdigest(self) -> str:
        return self._digest.hexdigest()
