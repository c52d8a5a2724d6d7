"""An ONNX graph as what makes what: every value shown, and parts of it cut out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.schema import BridgeError


class OnnxGraph:
    """The top graph of an ONNX model.

    Args:
        model: stays as it is.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, graph = model, model.graph
        self.initializers = {each.name: each for each in graph.initializer}
        self.sparse = {each.values.name: each for each in graph.sparse_initializer}
        self.inputs = {each.name: each for each in graph.input}
        self.outputs = [each.name for each in graph.output]
        self.producer = {
            name: at for at, node in enumerate(graph.node) for name in node.output if name
        }
        self.readers: dict[str, list[int]] = {}
        for at, node in enumerate(graph.node):
            for name in set(read_by(node)):
                self.readers.setdefault(name, []).append(at)

    def values(self) -> Iterator[str]:
        """Names of the inputs and of what nodes make, in the order in which they are there."""
        yield from (name for name in self.inputs if name not in self.initializers)
        for node in self.model.graph.node:
            yield from (name for name in node.output if name)

    def following(self, name: str, named: Container[str], count: int) -> Iterator[str]:
        """What is made of a value alone, up to `count` nodes on and to a value of `named`."""
        for _ in range(count):
            readers = self.readers.get(name, ())
            if len(readers) != 1 or len(self.model.graph.node[readers[0]].output) != 1:
                return
            (name,) = self.model.graph.node[readers[0]].output
            if name in named:
                return
            yield name

    def showing(self, names: Iterable[str]) -> onnx.ModelProto:
        """The model with these values as outputs."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        del made.graph.output[:]
        kinds = {each.name: each for each in self.model.graph.output}
        inputs = self.inputs
        for name in names:
            if name in inputs or name not in self.producer:
                continue
            made.graph.output.append(kinds.get(name) or onnx.ValueInfoProto(name=name))
        return made

    def between(
        self, stops: Container[str], targets: Sequence[str], passed: Container[str] = ()
    ) -> tuple[list[int], list[str]]:
        """The nodes that make `targets`, back to the values `stops` without those in `passed`; and
        those of the stops that they read, inputs of the graph included."""
        nodes: set[int] = set()
        borders: dict[str, None] = {}
        waiting, seen = list(targets), set(targets)
        while waiting:
            at = self.producer.get(waiting.pop())
            if at is None or at in nodes:
                continue
            nodes.add(at)
            for name in read_by(self.model.graph.node[at]):
                if name in seen:
                    continue
                stops_here = name in stops and name not in passed
                if stops_here or (name in self.inputs and name not in self.initializers):
                    borders[name] = None
                elif name in self.producer:
                    seen.add(name)
                    waiting.append(name)
        return sorted(nodes), list(borders)

    def cut(
        self,
        nodes: Sequence[int],
        inputs: Mapping[str, npt.NDArray[np.generic]],
        targets: Sequence[str],
    ) -> onnx.ModelProto:
        """Some nodes as a model.

        Args:
            inputs: by name, what will be fed: its dtype and shape are declared.
            targets: the outputs.
        """
        graph = self.model.graph
        made = onnx.GraphProto(name="part")
        kept = [graph.node[at] for at in nodes]
        made.node.extend(kept)
        used = {name for node in kept for name in read_by(node)} - inputs.keys()
        made.initializer.extend(
            self.initializers[name] for name in used if name in self.initializers
        )
        made.sparse_initializer.extend(self.sparse[name] for name in used if name in self.sparse)
        made.input.extend(
            onnx.helper.make_tensor_value_info(name, element_type(array), array.shape)
            for name, array in inputs.items()
        )
        made.output.extend(onnx.ValueInfoProto(name=name) for name in targets)
        return onnx.ModelProto(
            ir_version=self.model.ir_version,
            opset_import=self.model.opset_import,
            functions=self.model.functions,
            graph=made,
        )


def element_type(array: npt.NDArray[np.generic]) -> int:
    """ONNX's number of an array's type."""
    if array.dtype.kind in "OSU":
        return int(onnx.TensorProto.STRING)
    try:
        return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    except (KeyError, ValueError) as error:
        raise BridgeError(f"ONNX has no elements of {array.dtype}") from error


def read_by(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, the bodies inside it too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else []
        for body in (*bodies, *attribute.graphs):
            yield from _captured(body)


def _captured(body: onnx.GraphProto) -> Iterator[str]:
    own = {each.name for each in (*body.input, *body.initializer)}
    own.update(name for node in body.node for name in node.output)
    for node in body.node:
        yield from (name for name in read_by(node) if name not in own)
    yield from (each.name for each in body.output if each.name not in own)
