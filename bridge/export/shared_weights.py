"""The signatures of a model as ONNX files with one file of weights."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import onnx

from tflite_ort.base.files import writing
from tflite_ort.export.exporting import export_onnx
from tflite_ort.export.signature_state import NEXT
from tflite_ort.model.signature_model import signature_of
from tflite_ort.schema import Model

# The name of the weights among those of signatures.
WEIGHTS = "(weights)"
# Behind the name of an output that is an input's next value.
_ALIGNMENT = 4096
_PLACE, _OFFSET, _LENGTH = "location", "offset", "length"


def export_sharing_weights(
    model: Model, folder: str | os.PathLike[str], files: Mapping[str, str], **options: Any
) -> dict[str, onnx.ModelProto]:
    """Write signatures of a model; weights that several have are written once.

    An output that a signature calls as one of its inputs is called ``<name>_next``.

    Args:
        folder: where to.
        files: by key of a signature, the name of its file; `WEIGHTS` is that of the weights.
        options: of `export_onnx`.

    Returns:
        The models by key, without weights.

    Raises:
        ExportError: a signature cannot be exported.
        OSError: a file cannot be written; what was there before still is.
    """
    keys = [key for key in files if key != WEIGHTS]
    paths = [Path(folder) / files[key] for key in (WEIGHTS, *keys)]
    models = {}
    with TemporaryDirectory(dir=folder) as aside, writing(*paths) as (weights, *graphs):
        shared = _SharedWeights(weights, files[WEIGHTS])
        for number, (key, graph) in enumerate(zip(keys, graphs, strict=True)):
            path = Path(aside) / f"{number}.onnx"
            exported = export_onnx(model, path, signature=key, external_data=True, **options)
            _name_outputs(exported, _output_names(model, key))
            shared.take(exported, path.with_name(f"{path.name}.data"))
            graph.write(exported.SerializeToString())
            models[key] = exported
    return models


def _output_names(model: Model, key: str) -> list[str]:
    """What a signature calls the outputs, in the order of the file."""
    definition = signature_of(model, key)
    inputs = {entry.name for entry in definition.inputs}
    names = {entry.tensor_index: entry.name for entry in definition.outputs}
    graph = model.subgraphs[definition.subgraph_index]
    ordered = (names[index] for index in graph.outputs if index in names)
    return [f"{name}{NEXT}" if name in inputs else name for name in ordered]


def _name_outputs(model: onnx.ModelProto, names: Sequence[str]) -> None:
    """Give the outputs of a model these names, where no other value has them."""
    if len(names) != len(model.graph.output):
        return
    wanted = {value.name: name for value, name in zip(model.graph.output, names, strict=True)}
    taken = {name for node in model.graph.node for name in node.output}
    taken |= {value.name for value in model.graph.input}
    new = {old: name for old, name in wanted.items() if name != old and name not in taken}
    for value in (*model.graph.output, *model.graph.value_info):
        value.name = new.get(value.name, value.name)
    for node in _nodes(model.graph):
        for names_of in (node.input, node.output):
            names_of[:] = [new.get(name, name) for name in names_of]


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the bodies in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


class _SharedWeights:
    """A file of weights, each of which is in it once.

    Args:
        stream: what it is written with.
        name: what models call it.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._places: dict[tuple[bytes, int], int] = {}

    def take(self, model: onnx.ModelProto, data: Path) -> None:
        """Move the weights of a model from a file of its own."""
        outside = [each for each in model.graph.initializer if each.external_data]
        if not outside:
            return
        with (
            data.open("rb") as file,
            closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as content,
        ):
            for tensor in outside:
                said = {entry.key: entry.value for entry in tensor.external_data}
                start, size = int(said.get(_OFFSET, 0)), int(said[_LENGTH])
                place = self._place(memoryview(content)[start : start + size])
                del tensor.external_data[:]
                facts = {_PLACE: self._name, _OFFSET: str(place), _LENGTH: str(size)}
                for key, value in facts.items():
                    tensor.external_data.add(key=key, value=value)
        data.unlink()

    def _place(self, content: memoryview) -> int:
        """Where these bytes are."""
        with content:
            key = hashlib.blake2b(content).digest(), len(content)
            if key not in self._places:
                start = -self._stream.tell() % _ALIGNMENT + self._stream.tell()
                self._stream.seek(start)
                self._stream.write(content)
                self._places[key] = start
        return self._places[key]
