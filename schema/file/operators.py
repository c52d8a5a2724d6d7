"""What an operator gets that has no options, or those of another."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.fields import Scalar
from tflite_ort.schema.file.tables import Table, fields_of
from tflite_ort.schema.file.unions import OPTIONS


class NoOptions(Table):
    """The options of an operator that has none."""

    __slots__ = ()


_NO_OPTIONS = NoOptions()


def options_table(op: Op) -> type[Table]:
    """The class of the operator's options."""
    return OPTIONS.get(op, NoOptions)


def options_of(op: Op, given: Table | None) -> Table:
    """`given` if it is the operator's own table, else the zeroed struct that TFLite then uses:
    strides 0, beta 0, both flags of a resize false; not the schema's defaults.

    Raises:
        ModelError: the operator has a padding, for which zero means "unknown".
    """
    expected = OPTIONS.get(op)
    if expected is None:
        return _NO_OPTIONS
    return given if isinstance(given, expected) else zeroed(expected)


def zeroed(table: type[Table]) -> Table:
    """`table` with every scalar 0 and everything else absent."""
    if "padding" in fields_of(table):
        raise ModelError(f"the operator lacks its options ({table.__name__}): unknown padding")
    zeros: dict[str, Any] = {}
    for name, field in fields_of(table).items():
        if isinstance(field, Scalar):
            zeros[name] = field.enum(0) if field.enum is not None else type(field.default)(0)
    return table(**zeros)
