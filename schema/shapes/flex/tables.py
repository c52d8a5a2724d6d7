"""Shape rules of TensorFlow's hash tables that change."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule(
    "DestroyResourceOp",
    "LookupTableImportV2",
    "LookupTableInsertV2",
    "LookupTableRemoveV2",
    "LookupTableSizeV2",
)
def scalar(op: View) -> Shapes:
    """A table, or a number."""
    return ((),)


@flex_rule("LookupTableFindV2")
def find(op: View) -> Shapes | None:
    """A value for each key."""
    shape = listed(op["value_shape"])
    return None if shape is None else ((*op["keys"].shape, *shape),)


@flex_rule("LookupTableExportV2")
def export(op: View) -> Shapes | None:
    """All keys, and a value for each."""
    shape, count = listed(op["value_shape"]), unknown_size()
    return None if shape is None else ((count,), (count, *shape))
