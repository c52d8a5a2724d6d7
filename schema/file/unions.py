"""The unions of options: which table a member's number in a file stands for."""

from __future__ import annotations

from tflite_ort.schema.file import empty_options, layer_options, options, stablehlo_options
from tflite_ort.schema.file.fields import Union
from tflite_ort.schema.file.tables import Member, Table, member_of

_MODULES = (empty_options, layer_options, options, stablehlo_options)


def _declared() -> list[tuple[Member, type[Table]]]:
    """Every table of options with its place in the unions, by number."""
    tables = [vars(module)[name] for module in _MODULES for name in vars(module)["__all__"]]
    found = [(member, table) for table in tables if (member := member_of(table)) is not None]
    return sorted(found, key=lambda row: row[0].number)


def _union(name: str, *, second: bool) -> Union:
    """The tables that are declared as members of this union.

    Raises:
        ValueError: their numbers are not 1, 2, 3...
    """
    rows = [(member, table) for member, table in _DECLARED if member.second == second]
    if [member.number for member, _ in rows] != list(range(1, len(rows) + 1)):
        raise ValueError(f"{name}: the numbers of the members are not 1 to {len(rows)}")
    return Union(name, tuple(table for _, table in rows))


_DECLARED = _declared()
BuiltinOptions = _union("BuiltinOptions", second=False)
BuiltinOptions2 = _union("BuiltinOptions2", second=True)
# The table of an operator's options; none for an operator whose table is empty.
OPTIONS = {op: table for member, table in _DECLARED for op in member.operators}
