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
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES, flex_operator

Array = npt.NDArray[Any]

FOLDER = Path(__file__).parent
ANSWERS = FOLDER / "answers"


@dataclass(frozen=True)
class Case:
    """An operator with inputs and attributes.

    Args:
        operator: TensorFlow's name.
        inputs: arrays of all inputs in their order; those in `constants` stand in the file.
        attributes: those that the types of the inputs do not tell.
        outputs: how many there are, where the table does not tell.
        exports: ONNX Runtime runs it, also as an exported file; else the export refuses it.
        by_numpy: the interpreter leaves a part to numpy, though all of it exports.
        rtol: how far a float may be from TensorFlow's, relative to the largest magnitude.
        refused: TensorFlow refuses it, and so does the kernel.
        note: tells cases of an operator apart.
        results: how many of the outputs the model gives back; TensorFlow's interpreter gives none
            without elements.
    """

    operator: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Sequence[int] = ()
    outputs: int = 1
    exports: bool = True
    by_numpy: bool = False
    rtol: float = 1e-6
    refused: bool = False
    note: str = ""
    results: int | None = None

    def model(self) -> bytes:
        """The bytes of the model of this operator alone."""
        return model_of([self])

    def parts(self, prefix: str = "") -> tuple[dict[str, T], Node]:
        """The tensors, whose names begin with `prefix`, and the operator."""
        places = enumerate(self.inputs)
        inputs = [
            T.constant(array)
            if place in self.constants
            else T(array.shape, tensor_type(array.dtype))
            for place, array in places
        ]
        outputs = [T((), type) for type in self.output_types()]
        given = told_by(self.operator, inputs, outputs) | dict(self.attributes)
        tensors = {f"{prefix}in{place}": t for place, t in enumerate(inputs)}
        results = {f"{prefix}out{place}": t for place, t in enumerate(outputs)}
        options = declared_options(self.operator, given)
        node = Node(f"Flex{self.operator}", list(tensors), list(results), options)
        return tensors | results, node

    def output_types(self) -> list[Any]:
        """The types of all outputs, as far as inputs and attributes tell them."""
        inputs = [T(array.shape, tensor_type(array.dtype)) for array in self.inputs]
        known = told_by(self.operator, inputs, ()) | dict(self.attributes)
        operator = flex_operator(self.operator)
        assert operator is not None, self.operator
        defaults = {name: each.default for name, each in operator.attributes.items()}
        found: list[str] = []
        for each in operator.outputs:
            type = (defaults | dict(known))[each.type] if each.is_attribute else each.type
            count = (defaults | dict(known))[each.count] if each.count else 1
            found += list(type) if each.is_list else [type] * count
        return [TENSOR_TYPES[name] for name in found]

    def result_types(self) -> list[Any]:
        """The types of the outputs that the model gives back."""
        return self.output_types()[: self.results]

    def feeds(self) -> list[Array]:
        """The arrays of the inputs that do not stand in the file."""
        return [array for place, array in enumerate(self.inputs) if place not in self.constants]

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


def model_of(cases: Sequence[Case]) -> bytes:
    """A model of the operators of all cases, side by side."""
    tensors: dict[str, T] = {}
    nodes = []
    for number, case in enumerate(cases):
        more, node = case.parts(f"{number}/" if number else "")
        tensors |= more
        nodes.append(node)
    pairs = zip(cases, nodes, strict=True)
    results = [name for case, node in pairs for name in node.outputs[: case.results]]
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
