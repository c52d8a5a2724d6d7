"""ONNX graphs in memory: models, graphs, nodes, values and tensors as plain objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.dtypes import Dtypes

Array = npt.NDArray[Any]
Shape = tuple[int | str | None, ...]

# What a file of this library says of its origin.
PRODUCER = "tflite-ort"


class DataType(IntEnum):
    """The element types of ONNX, with the numbers of its TensorProto."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E5M2 = 19
    UINT4 = 21
    INT4 = 22

    @classmethod
    def from_numpy(cls, dtype: npt.DTypeLike) -> DataType:
        """The type of an array of `dtype`.

        Raises:
            TypeError: ONNX has none.
        """
        found = _NUMPY.known.get(dtype) if isinstance(dtype, np.dtype) else None
        if found is None:
            found = _NUMPY.key_of(dtype)
        if found is None:
            raise TypeError(f"ONNX has no element type for {np.dtype(dtype)}")
        return found

    def numpy(self) -> np.dtype[Any]:
        """The dtype of an array of these elements."""
        return _NUMPY[self]


_D = DataType
_NUMPY = Dtypes(
    {
        _D.FLOAT: np.float32,
        _D.UINT8: np.uint8,
        _D.INT8: np.int8,
        _D.UINT16: np.uint16,
        _D.INT16: np.int16,
        _D.INT32: np.int32,
        _D.INT64: np.int64,
        _D.STRING: np.object_,
        _D.BOOL: np.bool_,
        _D.FLOAT16: np.float16,
        _D.DOUBLE: np.float64,
        _D.UINT32: np.uint32,
        _D.UINT64: np.uint64,
        _D.COMPLEX64: np.complex64,
        _D.COMPLEX128: np.complex128,
        _D.BFLOAT16: "bfloat16",
        _D.FLOAT8E4M3FN: "float8_e4m3fn",
        _D.FLOAT8E5M2: "float8_e5m2",
        _D.UINT4: "uint4",
        _D.INT4: "int4",
    }
)


class Tensor:
    """A constant.

    Args:
        array: the elements, contiguous; strings as bytes. Elements of 4 bits stand two to a byte,
            the first one in the low half.
        dtype, shape: of the elements, where `array` has others.
    """

    __slots__ = ("array", "dtype", "shape")

    def __init__(
        self, array: Array, dtype: DataType | None = None, shape: Sequence[int] | None = None
    ) -> None:
        self.array = array
        self.dtype = DataType.from_numpy(array.dtype) if dtype is None else dtype
        self.shape: tuple[int, ...] = array.shape if shape is None else tuple(shape)

    @property
    def nbytes(self) -> int:
        """The size of the data; of strings, that of their references."""
        return self.array.nbytes

    def data(self) -> memoryview:
        """The bytes of elements that are no strings, not copied."""
        return self.array.reshape(-1).view(np.uint8).data


_NO_MARKS = frozenset[str]()


class Value:
    """What a node computes, an input of a graph or an initializer.

    Args:
        dtype, shape: as far as they are declared; sizes are numbers, names or None.
        const_value: the elements of an initializer.
    """

    __slots__ = ("_producer", "const_value", "dtype", "marks", "name", "shape")

    def __init__(
        self,
        name: str,
        *,
        dtype: DataType | None = None,
        shape: Shape | None = None,
        const_value: Tensor | None = None,
    ) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.const_value = const_value
        # What translators note for each other.
        self.marks = _NO_MARKS
        self._producer: Node | None = None

    def producer(self) -> Node | None:
        """The node that computes it; None for inputs and initializers."""
        return self._producer


class Node:
    """An operator of ONNX; it becomes the producer of its outputs.

    Args:
        attributes: a list has elements of one type. An empty one is a list of integers.

    Attributes:
        bodies: those of its attributes that are graphs.
    """

    __slots__ = ("attributes", "bodies", "domain", "inputs", "name", "op_type", "outputs")

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        *,
        domain: str = "",
        attributes: Mapping[str, Attribute] | None = None,
        name: str = "",
    ) -> None:
        self.op_type, self.domain, self.name = op_type, domain, name
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.attributes = dict(attributes) if attributes else {}
        given = self.attributes.values()
        self.bodies = [each for each in given if isinstance(each, Graph)] if attributes else []
        for value in self.outputs:
            value._producer = self

    def constant(self, place: int) -> Array | None:
        """The elements of a constant input; None of any other, and where there is none."""
        value = self.inputs[place] if place < len(self.inputs) else None
        return None if value is None or value.const_value is None else value.const_value.array

    def constants(self) -> list[Array | None]:
        """`constant` of all inputs but the first, which as a rule is computed."""
        return [self.constant(place) for place in range(1, len(self.inputs))]

    def give(self, position: int, value: Value) -> None:
        """Compute `value` in the place of an output, which another node is to make."""
        self.outputs = (*self.outputs[:position], value, *self.outputs[position + 1 :])
        value._producer = self


class Graph:
    """Nodes in execution order: a whole network, or the body of a Loop, a Scan or an If."""

    __slots__ = ("initializers", "inputs", "name", "nodes", "outputs")

    def __init__(
        self,
        inputs: Iterable[Value],
        outputs: Iterable[Value],
        nodes: Iterable[Node],
        *,
        initializers: Iterable[Value] = (),
        name: str = "",
    ) -> None:
        self.inputs, self.outputs, self.nodes = list(inputs), list(outputs), list(nodes)
        self.initializers = {value.name: value for value in initializers}
        self.name = name

    def add_initializer(self, name: str, array: npt.NDArray[Any]) -> Value:
        """A new initializer; `name` is not taken."""
        tensor = Tensor(np.asarray(array, order="C"))
        made = Value(name, dtype=tensor.dtype, shape=tensor.shape, const_value=tensor)
        self.initializers[name] = made
        return made

    def all_nodes(self) -> list[Node]:
        """The nodes, each before those of its bodies."""
        return nested(self.nodes)

    def read_ids(self) -> set[int]:
        """The `id` of every value that a node reads, in bodies too."""
        return set(map(id, self._read()))

    def read_counts(self) -> Counter[int]:
        """How often a value is read, by its `id`: by nodes, in bodies too, and as an output."""
        return Counter(map(id, (*self._read(), *self.outputs)))

    def readers(self) -> dict[int, list[Node]]:
        """By the `id` of a value, the nodes that read it, in bodies too; a node as often as it
        does."""
        found = dict[int, list[Node]]()
        for value, node, _ in self.reads():
            found.setdefault(id(value), []).append(node)
        return found

    def drop_unread(self) -> None:
        """Leave out the initializers that no node reads, but for the first values of inputs."""
        read = self.read_ids() | set(map(id, self.inputs))
        self.initializers = {k: v for k, v in self.initializers.items() if id(v) in read}

    def _read(self) -> Iterator[Value | None]:
        """What nodes read, as often as they do."""
        return chain.from_iterable([node.inputs for node in self.all_nodes()])

    def reads(self) -> Iterator[tuple[Value, Node, int]]:
        """Every value that a node reads, in bodies too, with the node and the number of its input;
        a value as often as it is read."""
        for node in self.all_nodes():
            for position, value in enumerate(node.inputs):
                if value is not None:
                    yield value, node, position


Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str] | Tensor | Graph


class Model:
    """A graph and what it needs to be read.

    Args:
        opset_imports: the versions of operators by domain.
        metadata_props: texts by name, for people and tools.
        producer_version, doc_string: what wrote it, and what it is; empty for nothing.
    """

    __slots__ = (
        "doc_string",
        "graph",
        "ir_version",
        "metadata_props",
        "opset_imports",
        "producer_name",
        "producer_version",
    )

    def __init__(
        self,
        graph: Graph,
        *,
        opset_imports: Mapping[str, int],
        ir_version: int = 10,
        producer_name: str = "",
    ) -> None:
        self.graph, self.ir_version, self.producer_name = graph, ir_version, producer_name
        self.opset_imports = dict(opset_imports)
        self.metadata_props: dict[str, str] = {}
        self.producer_version = self.doc_string = ""


def release(nodes: Iterable[Node]) -> None:
    """Let nodes be freed without the garbage collector, when nobody asks any more which of them
    makes a value."""
    for node in nested(nodes):
        for value in node.outputs:
            value._producer = None


def nested(nodes: Iterable[Node]) -> list[Node]:
    """`nodes`, each before the nodes of its bodies."""
    found: list[Node] = []
    for node in nodes:
        found.append(node)
        for body in node.bodies:
            found += nested(body.nodes)
    return found


def before_reshapes(value: Value) -> Value:
    """What was reshaped to `value`, which may be itself. A Reshape to a computed shape stays, which
    fails where that does not fit."""
    node = value.producer()
    while node is not None and node.op_type == "Reshape" and node.inputs[0] is not None:
        if node.constant(1) is None:
            break
        value = node.inputs[0]
        node = value.producer()
    return value


def reshaped_to(node: Node) -> tuple[int, ...] | None:
    """The shape that a Reshape gives; None for another node, or where a size is not told."""
    sizes = node.constant(1) if node.op_type == "Reshape" else None
    if sizes is None or np.any(sizes < 1):
        return None
    return tuple(map(int, sizes))


def leading_to(results: Iterable[Value], nodes: Sequence[Node]) -> list[Node]:
    """The nodes of `nodes` that `results` depend on."""
    wanted, used = set(map(id, results)), list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(map(id, node.outputs)):
            used.append(node)
            wanted.update(map(id, node.inputs))
            for body in node.bodies:
                wanted |= body.read_ids()
    return used[::-1]
