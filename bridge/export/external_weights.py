"""The file of weights beside a graph.

A graph and its weights take their names one after the other. So that a graph never finds the
weights of another export, weights that differ from those that are there get another name. Then the
graph is replaced, and at last the weights that were there are removed.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tflite_ort.base.files import remove
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import Place

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


def data_path(output: str | os.PathLike[str], graph: ir.Graph) -> Path:
    """Where the weights of a graph go: to ``<output>.data``, or, if other weights are there, to
    ``<output>.<digest>.data``."""
    path, digest = Path(f"{os.fspath(output)}.data"), _Digest()
    if not path.is_file():
        return path
    write_weights(graph, digest, path.name)
    with suppress(OSError), path.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() == digest.hexdigest():
            return path
    return Path(f"{os.fspath(output)}.{digest.hexdigest()[:_DIGITS]}.data")


def remove_earlier(output: str | os.PathLike[str], data: Path) -> None:
    """Remove the weights of earlier exports of the same name, which no graph reads now."""
    name = re.escape(Path(output).name)
    earlier = re.compile(rf"{name}(\.[0-9a-f]{{{_DIGITS}}})?\.data")
    for path in data.parent.iterdir():
        if path.name != data.name and earlier.fullmatch(path.name):
            with suppress(OSError):  # the command reads it
                remove(path)


def write_weights(graph: ir.Graph, stream: _Stream, location: str) -> dict[str, Place]:
    """Write the large initializers one after the other; returns where they are."""
    places = {}
    for name, value in graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.dtype is ir.DataType.STRING or tensor.nbytes < _EXTERNAL_BYTES:
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
