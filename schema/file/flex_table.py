"""The table of TensorFlow's operators that a TFLite model may have as ``Flex<name>``.

`flex_ops.tsv` is made by ``python -m tests.flex.facts``, and read for models with such operators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import TensorType

# What the name of such an operator begins with in a model.
PREFIX = "Flex"

# TensorFlow's element types by number and by name, and TFLite's where it has one.
_TYPES: tuple[tuple[int, str, TensorType | None], ...] = (
    (1, "float", TensorType.FLOAT32),
    (2, "double", TensorType.FLOAT64),
    (3, "int32", TensorType.INT32),
    (4, "uint8", TensorType.UINT8),
    (5, "int16", TensorType.INT16),
    (6, "int8", TensorType.INT8),
    (7, "string", TensorType.STRING),
    (8, "complex64", TensorType.COMPLEX64),
    (9, "int64", TensorType.INT64),
    (10, "bool", TensorType.BOOL),
    (11, "qint8", None),
    (12, "quint8", None),
    (13, "qint32", None),
    (14, "bfloat16", TensorType.BFLOAT16),
    (15, "qint16", None),
    (16, "quint16", None),
    (17, "uint16", TensorType.UINT16),
    (18, "complex128", TensorType.COMPLEX128),
    (19, "half", TensorType.FLOAT16),
    (20, "resource", TensorType.RESOURCE),
    (21, "variant", TensorType.VARIANT),
    (22, "uint32", TensorType.UINT32),
    (23, "uint64", TensorType.UINT64),
    (24, "float8_e5m2", TensorType.FLOAT8_E5M2),
    (25, "float8_e4m3fn", TensorType.FLOAT8_E4M3FN),
    (29, "int4", TensorType.INT4),
    (30, "uint4", TensorType.UINT4),
)
TYPE_NAMES = {number: name for number, name, _ in _TYPES}
TYPE_NUMBERS = {name: number for number, name, _ in _TYPES}
TENSOR_TYPES = {name: type for _, name, type in _TYPES if type is not None}


@record
class Argument:
    """An input or an output.

    Args:
        type: the name of a type; with `is_attribute` that of the attribute that tells it.
        count: the attribute that tells how many tensors it stands for; empty where it is one.
        is_list: the attribute tells a type for each of several tensors.
    """

    name: str
    type: str
    is_attribute: bool
    count: str = ""
    is_list: bool = False

    @property
    def is_single(self) -> bool:
        """Whether it is one tensor."""
        return not self.count and not self.is_list


@record(eq=False)
class Attribute:
    """What a node may say of itself.

    Args:
        type: such as ``int`` or ``list(type)``.
        is_required: there is no default.
        default: as `node_def` has such a value.
        minimum: of a number, or how long a list is at least.
        allowed: the values of a text or a type; any where there are none.
    """

    type: str
    is_required: bool
    default: Any = None
    minimum: int | None = None
    allowed: tuple[str, ...] = ()


@record(eq=False)
class FlexOperator:
    """A TensorFlow operator as its definition has it.

    Args:
        family: of the files that have its shape rule, translator and kernel; empty where no TFLite
            model can need it.
        is_stateful: its results do not follow from its inputs alone.
        is_selected: TFLite's Flex delegate allows it only to those who select it by its name.
        is_defined: the definition is known; it is not where no model can need the operator.
    """

    name: str
    family: str
    is_stateful: bool
    is_selected: bool
    is_defined: bool
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    attributes: Mapping[str, Attribute]


def family_of(name: str) -> str:
    """The family of TensorFlow's operator `name`; empty where there is none."""
    row = _rows().get(name)
    return "" if row is None else row.split("\t")[1]


def names() -> tuple[str, ...]:
    """TensorFlow's names of all operators of the table."""
    return tuple(_rows())


@cache
def flex_operator(name: str) -> FlexOperator | None:
    """TensorFlow's operator `name`, if the table has it."""
    row = _rows().get(name)
    if row is None:
        return None
    _, family, marks, facts = row.split("\t")
    inputs, outputs, attributes = json.loads(facts or '["", "", {}]')
    return FlexOperator(
        name,
        family,
        "stateful" in marks,
        "selected" in marks,
        bool(facts),
        tuple(map(_argument, inputs.split())),
        tuple(map(_argument, outputs.split())),
        {key: _attribute(**each) for key, each in attributes.items()},
    )


def _argument(text: str) -> Argument:
    name, _, kind = text.partition(":")
    if kind.startswith("*"):
        return Argument(name, kind[1:], is_attribute=True, is_list=True)
    type, _, count = kind.partition("*")
    return Argument(name, type.removeprefix("="), not type.startswith("="), count)


def _attribute(type: str, minimum: int | None = None, allowed: str = "", **given: Any) -> Attribute:
    default = given.get("default")
    if isinstance(default, list):
        default = tuple(default)
    elif type == "shape" and default == "unknown":
        default = None
    return Attribute(type, not given, default, minimum, tuple(allowed.split()))


@cache
def _rows() -> Mapping[str, str]:
    """The line of each operator in the table, by name."""
    text = Path(__file__).with_name("flex_ops.tsv").read_text(encoding="utf-8")
    return {line.partition("\t")[0]: line for line in text.splitlines()}
