"""TensorFlow's operators as a model has them: ``Flex<name>`` with a node, as the table tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import (
    PREFIX,
    TENSOR_TYPES,
    Argument,
    Attribute,
    FlexOperator,
    flex_operator,
)
from tflite_ort.schema.file.node_def import NodeDef, Value, node_def
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.view import OperatorView, TensorView

Array = npt.NDArray[Any]
T = TypeVar("T")

# Annotations of converters: they say nothing of what an operator computes.
_ANNOTATION = "_"
_MOST_NODES = 4096
# Inputs that are added to those of the definition: tensors that have the sizes of an element which
# its shape does not tell, see `schema/flex/lists.py`.
# Files are named by texts that the model is given, see `schema/flex/checkpoints.py`. A table that
# changes is read with the shape of its values, see `schema/flex/tables.py`.
_MORE = {
    **dict.fromkeys(("TensorListReserve", "EmptyTensorList"), ("likes*",)),
    **dict.fromkeys(("LookupTableExportV2", "LookupTableFindV2"), ("value_shape?",)),
    **dict.fromkeys(("MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2"), ("given*",)),
    **dict.fromkeys(("ReadFile", "WriteFile"), ("given*",)),
}
# Where the value of such a kind is an empty list, no kind is told.
_EMPTY = "list()"


@record(eq=False)
class Node:
    """The node of an operator, with every attribute that its definition has.

    ``node["T"]`` is an attribute: str, int, float, bool, the name of a type, a shape with -1 for
    open sizes (None for one of any rank), an array, a `Function`, or a tuple of these.
    """

    operator: FlexOperator
    attributes: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.attributes[name]

    def type(self, name: str) -> TensorType:
        """The type that an attribute names.

        Raises:
            ModelError: TFLite has no such type.
        """
        return _tensor_type(self.attributes[name])

    @staticmethod
    def type_of(name: str) -> TensorType:
        """TFLite's type of the name of a type."""
        return _tensor_type(name)

    def dtype(self, name: str) -> np.dtype[Any]:
        """The numpy type that an attribute names."""
        return NUMPY_DTYPE[self.type(name)]

    def parts(self, arguments: Sequence[Argument], tensors: Sequence[T]) -> dict[str, list[T]]:
        """The tensors of each input or output."""
        found, at = {}, 0
        for argument in arguments:
            size = self.count(argument)
            found[argument.name] = list(tensors[at : at + size])
            at += size
        return found

    def inputs(self, given: Sequence[T], name: str) -> list[T]:
        """The part of `given`, views or arrays of all inputs, that the input `name` has."""
        return self.parts(self.operator.inputs, given)[name]

    def outputs(self, given: Sequence[T], name: str) -> list[T]:
        """As `inputs`, of the outputs."""
        return self.parts(self.operator.outputs, given)[name]

    def count(self, argument: Argument) -> int:
        """How many tensors an input or output stands for."""
        if argument.count:
            return int(self.attributes[argument.count])
        return len(self.attributes[argument.type]) if argument.is_list else 1

    def types(self, arguments: Iterable[Argument]) -> Iterator[tuple[str, str]]:
        """The name and the type of each tensor that inputs or outputs stand for."""
        for each in arguments:
            told = self.attributes[each.type] if each.is_attribute else each.type
            names = told if each.is_list else (told,) * self.count(each)
            yield from ((each.name, name) for name in names)


def is_of_type(type: TensorType, name: str) -> bool:
    """Whether a tensor of `type` can be what a node calls `name`: early converters wrote handles as
    int32."""
    early = name == "resource" and type is TensorType.INT32
    return early or TENSOR_TYPES.get(name) is type


def _tensor_type(name: str) -> TensorType:
    if name not in TENSOR_TYPES:
        raise ModelError(f"TFLite has no tensors of TensorFlow's type {name}")
    return TENSOR_TYPES[name]


def node_of(op: OperatorView[Any]) -> Node:
    """The node of a Flex operator.

    Raises:
        ModelError: there is none, or it is not one of the operator's definition; names what is
            wrong.
    """
    return node_from(op.label, op.name, op.custom_options)


def node_from(label: str, name: str, options: Array | None) -> Node:
    """As `node_of`, of the operator `name` with these custom options."""
    return _node(label, name, b"" if options is None else options.tobytes())


@lru_cache(_MOST_NODES)
def _node(label: str, name: str, options: bytes) -> Node:
    given, operator = node_def(options, label), flex_operator(name.removeprefix(PREFIX))
    if operator is None or f"{PREFIX}{given.op}" != name:
        raise ModelError(f"{label}: the node is of operator {given.op!r}")
    return Node(operator, _checked(given, operator, label))


def _checked(given: NodeDef, operator: FlexOperator, label: str) -> dict[str, Value]:
    """Every attribute of the definition, with what the node says, else its default."""
    if not operator.is_defined:
        return {name: value for name, (_, value) in given.attributes.items()}
    unknown = [
        name
        for name in given.attributes
        if name not in operator.attributes and not name.startswith(_ANNOTATION)
    ]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ModelError(
            f"{label}: {operator.name} of TensorFlow 2.21, the version that is known here, has no "
            f"attribute {names}; convert the model with that version"
        )
    values = {}
    for name, declared in operator.attributes.items():
        if name in given.attributes:
            values[name] = _value(name, declared, *given.attributes[name], label)
        elif declared.is_required:
            raise ModelError(f"{label}: the node lacks attribute {name!r}")
        else:
            values[name] = declared.default
    return values


def _value(name: str, declared: Attribute, kind: str, value: Value, label: str) -> Value:
    empty = kind == _EMPTY and declared.type.startswith("list(")
    if kind != declared.type and not empty:
        raise ModelError(
            f"{label}: attribute {name!r} is {kind or 'nothing'}, expected {declared.type}"
        )
    items = value if declared.type.startswith("list(") else (value,)
    if declared.allowed and value != declared.default and not set(items) <= set(declared.allowed):
        allowed = " ".join(declared.allowed)
        raise ModelError(f"{label}: attribute {name!r} is {value!r}, expected one of {allowed}")
    size = len(value) if declared.type.startswith("list(") else value
    if declared.minimum is not None and size < declared.minimum:
        raise ModelError(
            f"{label}: attribute {name!r} is {value!r}, expected at least {declared.minimum}"
        )
    return value


def check_node(op: OperatorView[Any]) -> None:
    """Refuse inputs and outputs of another number, or other types, than the node says.

    Raises:
        ModelError: names the input, its type, and the expected one.
    """
    node = node_of(op)
    if not node.operator.is_defined or op.origin:  # was held against its node in the model
        return
    _check_types(op, node, "input", op.inputs, node.operator.inputs)
    _check_types(op, node, "output", op.outputs, node.operator.outputs)


def _check_types(
    op: OperatorView[Any],
    node: Node,
    what: str,
    tensors: Sequence[TensorView | None],
    arguments: Sequence[Argument],
) -> None:
    expected = sum(map(node.count, arguments))
    if len(tensors) != expected:
        raise ModelError(f"{op.label} has {len(tensors)} {what}s, expected {expected}")
    for tensor, (name, type) in zip(tensors, node.types(arguments), strict=True):
        if tensor is None:
            raise ModelError(f"{op.label} lacks {what} {name!r}")
        if type == "variant":  # what stands for it depends on the family
            continue
        if not is_of_type(tensor.type, type):
            raise ModelError(
                f"{op.label}: {what} {name!r} is {tensor.type.name}, its node says {type}"
            )


def flex_inputs(key: str) -> Inputs | None:
    """The inputs of an operator by its name in a model; None where there is no such operator.

    Where lists stand between single inputs, one name stands for all; see `Node.inputs`.
    """
    operator = flex_operator(key.removeprefix(PREFIX))
    if operator is None:
        return None
    names = [each.name + ("" if each.is_single else "*") for each in operator.inputs]
    names += _MORE.get(operator.name, ())
    lists = [name for name in names[:-1] if name.endswith("*")]
    return Inputs.of(["tensors*"] if lists or not operator.is_defined else names)
