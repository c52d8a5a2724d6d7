"""The declarations are the schema, slot by slot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import tflite_ort.schema as schema
from tests.models import MODELS_DIR
from tflite_ort.schema import Table, TensorType
from tflite_ort.schema.file import (
    empty_options,
    enums,
    layer_options,
    model,
    options,
    stablehlo_options,
)
from tflite_ort.schema.file.declare import enum_number
from tflite_ort.schema.file.fields import (
    Child,
    Children,
    Field,
    Local,
    Number,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Union,
    Vector,
    View,
)
from tflite_ort.schema.file.model import QuantizationDetails, SparseIndexVector
from tflite_ort.schema.file.tables import fields_of
from tflite_ort.schema.file.unions import BuiltinOptions, BuiltinOptions2

REFERENCE = MODELS_DIR.parent / "reference" / "schema.json"
UNIONS = (QuantizationDetails, SparseIndexVector, BuiltinOptions, BuiltinOptions2)

Slot = tuple[str, int, str, Any]  # name, slot, type, default

# Where one declared field reads several slots, the names of the others.
FURTHER_NAMES = {
    ("Operator", "options"): ("builtin_options", "builtin_options_2"),
    ("Operator", "custom_options"): ("large_custom_options_offset", "large_custom_options_size"),
    ("Buffer", "data"): ("offset", "size"),
}


@pytest.fixture(scope="module")
def reference() -> Any:
    if not REFERENCE.exists() and not os.environ.get("CI"):
        pytest.skip(f"{REFERENCE} is not here")
    return json.loads(Path(REFERENCE).read_text(encoding="utf-8"))


def declared_tables() -> dict[str, type[Table]]:
    modules = empty_options, layer_options, model, options, stablehlo_options
    found = {name: getattr(schema, name) for module in modules for name in module.__all__}
    return {
        name: cls
        for name, cls in found.items()
        if isinstance(cls, type) and issubclass(cls, Table) and cls is not Table
    }


def test_the_package_has_only_what_it_defines() -> None:
    """Its modules are imported by star, and import names of their own."""
    for name, value in vars(schema).items():
        if not name.startswith("_") and name not in ("annotations", "TYPE_CHECKING"):
            assert isinstance(value, type | FunctionType | ModuleType | Union), name
            owner = getattr(value, "__module__", "tflite_ort.schema")
            assert owner.startswith("tflite_ort.schema"), name


def type_name(number: Number, enum: type[IntEnum] | None) -> str:
    return enum.__name__ if enum else number.name


def slots(table: str, name: str, field: Field) -> Iterator[Slot]:
    """What the schema calls the slots of a declared field."""
    further = FURTHER_NAMES.get((table, name), (name,))
    match field:
        case Scalar():
            yield name, field.slot, type_name(field.number, field.enum), field.default
        case OperatorCodeNumber():
            yield "deprecated_builtin_code", field.narrow_slot, "byte", 0
            yield name, field.slot, field.enum.__name__, 0
        case String():
            yield name, field.slot, "string", None
        case Vector():
            yield name, field.slot, f"[{type_name(field.number, field.enum)}]", None
        case View():
            yield name, field.slot, f"[{field.number.name}]", None
            for other, slot in zip(further, field.outside or (), strict=False):
                yield other, slot, "ulong", 0
        case Child():
            yield name, field.slot, field.table.__name__, None
        case Children():
            yield name, field.slot, f"[{field.table.__name__}]", None
        case OneOf():
            for union_name, (slot, union) in zip(further, field.choices, strict=True):
                yield f"{union_name}_type", slot - 1, f"union_type({union.name})", 0
                yield union_name, slot, f"union({union.name})", None
        case Local():
            pass


def test_enums(reference: Any) -> None:
    declared = {
        name: ({member.name: member.value for member in cls}, enum_number(cls).name)
        for name, cls in {**vars(enums), "TensorType": TensorType}.items()
        if isinstance(cls, type) and issubclass(cls, IntEnum) and cls is not IntEnum
    }
    del declared["Op"]
    assert declared == {
        enum["name"]: (
            {value["name"]: value["value"] for value in enum["values"]},
            enum["underlying"],
        )
        for enum in reference["enums"]
    }


def test_unions(reference: Any) -> None:
    def names(union: Union) -> list[str]:
        return ["NONE", *(member.__name__ for member in union.members)]

    assert {union.name: names(union) for union in UNIONS} == {
        union["name"]: [member["name"] for member in union["members"]]
        for union in reference["unions"]
    }


def test_every_table_is_declared(reference: Any) -> None:
    assert set(declared_tables()) - {"NoOptions"} == {t["name"] for t in reference["tables"]}


def test_fields(reference: Any) -> None:
    for table in reference["tables"]:
        cls = declared_tables()[table["name"]]
        found = [
            slot
            for name, field in fields_of(cls).items()
            for slot in slots(table["name"], name, field)
        ]
        expected = [(f["name"], f["slot"], f["type"], f["default"]) for f in table["fields"]]
        assert sorted(found, key=lambda slot: slot[1]) == expected, table["name"]


def test_alignment(reference: Any) -> None:
    for table in reference["tables"]:
        for field in table["fields"]:
            if "force_align" in field:
                declared = fields_of(declared_tables()[table["name"]])[field["name"]]
                assert isinstance(declared, View)
                assert declared.align == field["force_align"]


def test_later_fields_name_a_version_that_exists(reference: Any) -> None:
    """`since` is 2 or more: version 1 is where an operator starts."""
    rows = [f.since for cls in declared_tables().values() for f in fields_of(cls).values()]
    assert {since for since in rows if since is not None} <= set(range(2, 15))


def test_no_table_contains_itself() -> None:
    """So no file can nest deeper than the declarations do."""

    def depth(cls: type[Table], above: tuple[type[Table], ...] = ()) -> int:
        assert cls not in above
        return 1 + max((depth(t, (*above, cls)) for t in parts(cls)), default=0)

    assert depth(schema.Model) == 6


def parts(cls: type[Table]) -> Iterator[type[Table]]:
    for field in fields_of(cls).values():
        if isinstance(field, (Child, Children)):
            yield field.table
        elif isinstance(field, OneOf):
            for _, union in field.choices:
                yield from union.members
