"""Cases of TensorFlow's operators: a node with its inputs, each a model of one operator.

A file ``cases_<family>.py`` has the `CASES` of a family. What TensorFlow answers is recorded::

    python -m tests.flex.record [FAMILY...]

in ``answers/<family>.npz``; the command needs a Python with TensorFlow 2.18.1 in TENSORFLOW_PYTHON.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.nodes import declared_options, told_by
from tests.one_op import Node, T, graph_model
from tflite_ort.schema import TensorType
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES, flex_operator

Array = npt.NDArray[Any]

FOLDER = Path(__file__).parent
ANSWERS = FOLDER / "answers"
HANDLE = T((), TensorType.RESOURCE)
NAMES = {type: name for name, type in TENSOR_TYPES.items()}


@dataclass(frozen=True)
class Handle:
    """An input that an operator without inputs makes, such as a table, which one more may fill.

    Args:
        fill: the operator that fills it, with the arrays that it is given.
    """

    operator: str
    attributes: Mapping[str, Any]
    fill: tuple[str, Sequence[Array]] | None = None
    dtype: str = "handle"
    shape: tuple[int, ...] = ()

    def parts(self, name: str) -> tuple[dict[str, T], list[Node]]:
        """The tensors and the operators; `name` is that of the handle."""
        nodes = [flex_node(self.operator, [], [name], self.attributes | {"shared_name": name})]
        tensors = {name: HANDLE}
        if self.fill is not None:
            operator, arrays = self.fill
            given = {f"{name}/{at}": T.constant(array) for at, array in enumerate(arrays)}
            told = told_by(operator, [HANDLE, *given.values()], [])
            nodes.append(flex_node(operator, [name, *given], [], told))
            tensors |= given
        return tensors, nodes


def table_of(*words: bytes) -> Handle:
    """A table from texts to their places."""
    numbers = np.arange(len(words), dtype=np.int64)
    kinds = {"key_dtype": "string", "value_dtype": "int64"}
    return Handle("HashTableV2", kinds, ("InitializeTableV2", [texts(*words), numbers]))


@dataclass(frozen=True)
class Case:
    """An operator with inputs and attributes.

    Args:
        operator: TensorFlow's name.
        inputs: arrays of all inputs in their order, or handles; those in `constants` stand in the
            file.
        attributes: those that the types of the inputs do not tell.
        outputs: how many there are, where the table does not tell.
        exports: ONNX Runtime runs it, also as an exported file; else the export refuses it.
        by_numpy: the interpreter leaves a part to numpy, though all of it exports.
        rtol: how far a float may be from TensorFlow's, relative to the largest magnitude.
        refused: TensorFlow refuses it, and so does the kernel.
        note: tells cases of an operator apart.
        results: how many of the outputs the model gives back; TensorFlow's interpreter gives none
            without elements.
        variables: how many of the first inputs are what variables hold, whose handles the operator
            has. What they hold then are results.
    """

    operator: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Sequence[int] = ()
    outputs: int = 1
    exports: bool = True
    by_numpy: bool = False
    rtol: float = 1e-6
    refused: bool = False
    note: str = ""
    results: int | None = None
    variables: int = 0

    def model(self) -> bytes:
        """The bytes of the model of this operator alone."""
        return model_of([self])

    def parts(self, prefix: str = "") -> tuple[dict[str, T], list[Node], list[str]]:
        """The tensors, whose names begin with `prefix`, the operators, and the results."""
        places = enumerate(self.inputs)
        inputs = [
            T.constant(array) if place in self.constants else _tensor(array)
            for place, array in places
        ]
        tensors = {f"{prefix}in{place}": t for place, t in enumerate(inputs)}
        names, nodes, reads = list(tensors), list[Node](), list[Node]()
        for name, given in zip(names, self.inputs, strict=True):
            if isinstance(given, Handle):
                del tensors[name]
                more, making = given.parts(name)
                tensors |= more
                nodes += making
        for place in range(self.variables):
            handle, result = f"{prefix}handle{place}", f"{prefix}variable{place}"
            type = NAMES[inputs[place].type]
            told = {"shared_name": handle, "dtype": type, "shape": inputs[place].shape}
            typed = {"dtype": type}
            nodes += [
                flex_node("VarHandleOp", [], [handle], told),
                flex_node("AssignVariableOp", [handle, names[place]], [], typed),
            ]
            reads.append(flex_node("ReadVariableOp", [handle], [result], typed))
            tensors |= {handle: HANDLE, result: T(inputs[place].shape, inputs[place].type)}
            inputs[place], names[place] = HANDLE, handle
        outputs = [T((), type) for type in self.output_types()]
        outputs = outputs[: len(outputs) - self.variables]
        given = told_by(self.operator, inputs, outputs) | dict(self.attributes)
        results = {f"{prefix}out{place}": t for place, t in enumerate(outputs)}
        nodes += [flex_node(self.operator, names, list(results), given), *reads]
        shown = [*results, *(name for node in reads for name in node.outputs)]
        return tensors | results, nodes, shown[: self.results]

    def output_types(self) -> list[Any]:
        """The types of all outputs, as far as inputs and attributes tell them."""
        inputs = [_tensor(array) for array in self.inputs]
        inputs[: self.variables] = [HANDLE] * self.variables
        known = told_by(self.operator, inputs, ()) | dict(self.attributes)
        operator = flex_operator(self.operator)
        assert operator is not None, self.operator
        defaults = {name: each.default for name, each in operator.attributes.items()}
        found: list[str] = []
        for each in operator.outputs:
            type = (defaults | dict(known))[each.type] if each.is_attribute else each.type
            count = (defaults | dict(known))[each.count] if each.count else 1
            found += list(type) if each.is_list else [type] * count
        held = [tensor_type(array.dtype) for array in self.inputs[: self.variables]]
        return [TENSOR_TYPES[name] for name in found] + held

    def result_types(self) -> list[Any]:
        """The types of the outputs that the model gives back."""
        return self.output_types()[: self.results]

    def feeds(self) -> list[Array]:
        """The arrays of the inputs that do not stand in the file."""
        return [
            array
            for place, array in enumerate(self.inputs)
            if place not in self.constants and not isinstance(array, Handle)
        ]

    @property
    def key(self) -> str:
        """What the recorded answer is found by: the model and its inputs."""
        digest = hashlib.sha256(self.model())
        for array in self.feeds():
            content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
            digest.update(content)
        return digest.hexdigest()[:16]

    def __str__(self) -> str:
        types = "_".join(str(array.dtype) for array in self.inputs[:2])
        return "-".join(part for part in (self.operator, types, self.note) if part)


def _tensor(given: Any) -> T:
    """An input that does not stand in the file."""
    return HANDLE if isinstance(given, Handle) else T(given.shape, tensor_type(given.dtype))


def flex_node(
    name: str, inputs: list[str], outputs: list[str], attributes: Mapping[str, Any]
) -> Node:
    """A node of TensorFlow's operator `name`."""
    return Node(f"Flex{name}", inputs, outputs, declared_options(name, attributes))


def model_of(cases: Sequence[Case]) -> bytes:
    """A model of the operators of all cases, side by side."""
    tensors: dict[str, T] = {}
    nodes, results = list[Node](), list[str]()
    for number, case in enumerate(cases):
        more, some, shown = case.parts(f"{number}/" if number else "")
        tensors |= more
        nodes += some
        results += shown
    return graph_model(tensors, nodes, results)


def families() -> list[str]:
    """The families that have cases."""
    return sorted(path.stem.removeprefix("cases_") for path in FOLDER.glob("cases_*.py"))


def cases_of(family: str) -> list[Case]:
    """The cases of a family."""
    cases: list[Case] = importlib.import_module(f"tests.flex.cases_{family}").CASES
    return cases


def texts(*values: bytes) -> Array:
    """A list of texts."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


@cache
def answers(family: str) -> Mapping[str, Array]:
    """The recorded answers of a family, by key and number of the output."""
    path = ANSWERS / f"{family}.npz"
    if not path.exists():
        return {}
    with np.load(path) as stored:
        return dict(stored.items())


def answer(family: str, case: Case) -> list[Array] | None:
    """What TensorFlow answered; None where it refused.

    Raises:
        AssertionError: nothing is recorded.
    """
    stored, found = answers(family), []
    if f"{case.key}.refused" in stored:
        return None
    while (name := f"{case.key}.{len(found)}") in stored:
        found.append(unpacked(stored, name))
    assert found, f"{case} has no recorded answer: python -m tests.flex.record {family}"
    return found


def packed(name: str, array: Array) -> dict[str, Array]:
    """An array as a file of arrays can have it: texts as bytes and sizes."""
    if array.dtype == object:
        parts = [bytes(each) for each in array.reshape(-1)]
        return {
            name: np.frombuffer(b"".join(parts), np.uint8),
            f"{name}.sizes": np.array([len(part) for part in parts], np.int64),
            f"{name}.shape": np.array(array.shape, np.int64),
        }
    kind = str(array.dtype)
    if kind in np.sctypeDict:
        return {name: array}
    return {name: array.view(np.uint16), f"{name}.type": np.array(kind)}


def unpacked(stored: Mapping[str, Array], name: str) -> Array:
    """What `packed` made of an array."""
    array = stored[name]
    if f"{name}.sizes" in stored:
        ends = np.cumsum(stored[f"{name}.sizes"]).tolist()
        content = array.tobytes()
        parts = [content[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        return texts(*parts).reshape(stored[f"{name}.shape"])
    if f"{name}.type" in stored:
        return array.view(np.dtype(str(stored[f"{name}.type"])))
    return array
