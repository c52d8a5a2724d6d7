"""What the subgraphs of a model under construction share: buffers, operator codes, one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflite_ort.schema import Buffer, Model, Op, OperatorCode, SubGraph
from tflite_ort.schema.file.strings import encoded
from tflite_ort.schema.file.tables import Array
from tflite_ort.versioning.honesty import required_versions

_Key = tuple[str, tuple[int, ...], bytes]
# Larger constants are not looked for among those that are there.
_SHARED_BYTES = 4096


class Parts:
    """A model to which buffers, operator codes and subgraphs are added.

    Args:
        model: what it starts as; its own buffers, codes and subgraphs keep their places.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._buffers: list[Buffer] = list(model.buffers) or [Buffer()]
        self._codes: list[OperatorCode] = list(model.operator_codes)
        self._subgraphs: list[SubGraph] = list(model.subgraphs)
        self._of_ours: dict[Op, int] = {}
        self._known: dict[_Key, int] = {}

    def buffer(self, values: Array) -> int:
        """The index of a buffer that holds `values`."""
        if values.dtype.hasobject:
            data = np.frombuffer(encoded(values), np.uint8)
            return self._add(Buffer(data=data))
        octets = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        if octets.size > _SHARED_BYTES:
            return self._add(Buffer(data=octets))
        key = (values.dtype.str, values.shape, octets.tobytes())
        if key not in self._known:
            self._known[key] = self._add(Buffer(data=octets))
        return self._known[key]

    def _add(self, buffer: Buffer) -> int:
        self._buffers.append(buffer)
        return len(self._buffers) - 1

    def code(self, op: Op) -> int:
        """The index of the code of an operator that the file does not have in its place."""
        if op not in self._of_ours:
            self._of_ours[op] = len(self._codes)
            self._codes.append(OperatorCode(builtin_code=op))
        return self._of_ours[op]

    def add_subgraph(self, graph: SubGraph) -> int:
        """The index of one more subgraph."""
        self._subgraphs.append(graph)
        return len(self._subgraphs) - 1

    def made(self, first: SubGraph) -> Model:
        """The model with `first` as its first subgraph; what was added has the versions that it
        needs."""
        model = replace(
            self.model,
            buffers=tuple(self._buffers),
            operator_codes=tuple(self._codes),
            subgraphs=(first, *self._subgraphs[1:]),
        )
        required = required_versions(model)
        for index in self._of_ours.values():
            self._codes[index] = replace(self._codes[index], version=required.get(index, 1))
        return replace(model, operator_codes=tuple(self._codes))
