"""TensorFlow's hash tables. One that is filled once is TFLite's own; one that changes is a variable
that holds a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.external import ExternalData
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.flow import MOST_NESTED, called_subgraphs
from tflite_ort.schema.file.model import Model, Operator
from tflite_ort.schema.file.options import HashtableOptions, VarHandleOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import Node, node_from
from tflite_ort.schema.values.resolve import constant_data

_KEYS = (TensorType.STRING, TensorType.INT64, TensorType.INT32)
_MUTABLE = ("MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2")
_FILLS = ("LookupTableImportV2", "LookupTableInsertV2", "LookupTableRemoveV2")
# Of the variables that hold tables; those of TensorFlow have other containers.
_CONTAINER = "mutable tables"


@record
class _Table:
    """A table of a model. Those of one kind and name are one.

    Args:
        changes: it may get other contents than those that it is filled with once.
        dense: all its buckets are given, also those without a key.
        name: with its container.
    """

    changes: bool
    name: tuple[str, str]
    types: tuple[TensorType, TensorType]
    value_shape: tuple[int, ...]
    dense: bool


@rewriting("HashTableV2", *_MUTABLE)
def hash_table(site: Site) -> bool:
    """HASHTABLE, whose number is that of the name; VAR_HANDLE of a table that changes."""
    model, scalars = site.drafts.model, all(not site.tensors[i].shape for i in site.inputs)
    table = _table_of(model, site.subgraph, site.outputs[0])
    if table is None or table.types[0] not in _KEYS or -1 in table.value_shape or not scalars:
        return False
    if table.changes:
        options = VarHandleOptions(container=_CONTAINER, shared_name="/".join(table.name))
        site.emit(Op.VAR_HANDLE, (), site.outputs, options)
        return True
    if not table.name[1]:
        return False
    names = list(dict.fromkeys(table.name for _, _, table in _tables(model)))
    # Tables of TFLite have numbers from 0 on.
    number, (key_dtype, value_dtype) = -1 - names.index(table.name), table.types
    static = HashtableOptions(table_id=number, key_dtype=key_dtype, value_dtype=value_dtype)
    site.emit(Op.HASHTABLE, (), site.outputs, static)
    return True


def _operators(model: Model, *names: str) -> Iterator[tuple[int, str, Operator]]:
    """(subgraph, custom code, operator) of TensorFlow's operators of some names."""
    wanted = {PREFIX + name for name in names}
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            custom = model.operator_codes[operator.opcode_index].custom_code
            if custom in wanted:
                yield number, str(custom), operator


def _tables(model: Model) -> Iterator[tuple[int, int, _Table]]:
    """The subgraph, the handle and the table of each operator that gives one."""
    fills: list[tuple[str, str] | None] | None = None
    for subgraph, handle, node in _nodes(model):
        name, value_shape = _name(node), node.attributes.get("value_shape") or ()
        if not node["shared_name"]:  # of its own
            name = (name[0], f"{subgraph}.{handle}" if name[0].startswith("mutable") else "")
        changes = node.operator.name != "HashTableV2"
        if changes:
            fills = list(_fills(model)) if fills is None else fills
            changes = bool(value_shape) or None in fills or fills.count(name) != 1
        types = node.type("key_dtype"), node.type("value_dtype")
        dense = node.operator.name == "MutableDenseHashTableV2"
        yield subgraph, handle, _Table(changes, name, types, value_shape, dense)


def _nodes(model: Model) -> Iterator[tuple[int, int, Node]]:
    """The subgraph, the handle and the node of each operator that gives a table."""
    for number, custom, operator in _operators(model, "HashTableV2", *_MUTABLE):
        try:
            node = node_from(custom, custom, operator.custom_options)
        except ModelError:  # told when its subgraph is made ready
            continue
        yield from ((number, output, node) for output in operator.outputs)


def _name(node: Node) -> tuple[str, str]:
    kind = "" if node.operator.name == "HashTableV2" else "mutable"
    return kind + node["container"], node["shared_name"]


def _fills(model: Model) -> Iterator[tuple[str, str] | None]:
    """The table of each operator that fills or changes one; None where it is not told here, or what
    it takes is computed."""
    handles = {(number, handle): _name(node) for number, handle, node in _nodes(model)}
    for number, custom, operator in _operators(model, *_FILLS):
        handle, *given = operator.inputs
        tensors = [model.subgraphs[number].tensors[index] for index in given if index is not None]
        constant = all(
            constant_data(model, each, ExternalData(model)) is not None for each in tensors
        )
        known = constant and custom == PREFIX + _FILLS[0]
        yield handles.get((number, handle)) if known and handle is not None else None


def _table_of(model: Model, subgraph: int, handle: int, depth: int = 0) -> _Table | None:
    """The table that a handle names, which may come from the callers of a subgraph."""
    for number, index, table in _tables(model):
        if (number, index) == (subgraph, handle):
            return table
    inputs = model.subgraphs[subgraph].inputs
    if handle not in inputs or depth > MOST_NESTED:
        return None
    found = {
        _table_of(model, number, given, depth + 1)
        for number, given in _callers_inputs(model, subgraph, list(inputs).index(handle))
    }
    return found.pop() if len(found) == 1 else None


def _callers_inputs(model: Model, subgraph: int, place: int) -> Iterator[tuple[int, int]]:
    """What each caller of a subgraph gives for one of its inputs."""
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            code = model.operator_codes[operator.opcode_index].builtin_code
            if code not in (Op.WHILE, Op.IF) or operator.options is None:
                continue
            inputs = operator.inputs if code is Op.WHILE else operator.inputs[1:]
            if subgraph in [index for _, index in called_subgraphs(operator.options)]:
                yield from ((number, i) for i in inputs[place : place + 1] if i is not None)


# What is done with a table -----------------------------------------------------------------------


def _changing(site: Site) -> tuple[_Table | None, bool]:
    """The table of an operator that takes one, and whether it is one that changes, of the types
    that the operator has."""
    table = _table_of(site.drafts.model, site.subgraph, site.inputs[0])
    return table, table is not None and table.changes


def _fits(table: _Table | None, types: Sequence[TensorType]) -> TypeGuard[_Table]:
    return table is not None and table.types[: len(types)] == tuple(types)


def _on_table(site: Site, more: Sequence[int] = (), *, sets: bool = False) -> bool:
    """The operator on what the variable holds; what it gives may be assigned to it."""
    table = site.through(Op.READ_VARIABLE, site.inputs[:1], TensorType.VARIANT)
    inputs = [table, *site.inputs[1:], *more]
    if not sets:
        site.stay(inputs, site.outputs)
        return True
    changed = site.add_tensor(TensorType.VARIANT)
    site.stay(inputs, [changed])
    site.emit(Op.ASSIGN_VARIABLE, [site.inputs[0], changed], ())
    return True


@rewriting("LookupTableFindV2")
def find(site: Site) -> bool:
    """HASHTABLE_FIND, whose default is a scalar."""
    table, changes = _changing(site)
    keys, default = site.input("keys"), site.input("default_value")
    if changes:
        types = site.type(keys), site.type(default)
        return _fits(table, types) and _on_table(site, [site.add_constant(table.value_shape)])
    if site.tensors[default].shape or site.type(keys) not in _KEYS:
        return False
    site.emit(Op.HASHTABLE_FIND, site.inputs, site.outputs)
    return True


@rewriting("LookupTableImportV2", "InitializeTableV2")
def fill(site: Site) -> bool:
    """HASHTABLE_IMPORT."""
    if _changing(site)[1]:
        return site.node.operator.name == _FILLS[0] and put(site)
    if site.type(site.input("keys")) not in _KEYS:
        return False
    site.emit(Op.HASHTABLE_IMPORT, site.inputs, ())
    return True


@rewriting("LookupTableInsertV2")
def put(site: Site) -> bool:
    """The table with keys and values."""
    table, changes = _changing(site)
    types = [site.type(index) for index in site.inputs[1:]]
    return changes and _fits(table, types) and _on_table(site, sets=True)


@rewriting("LookupTableRemoveV2")
def remove(site: Site) -> bool:
    """The table without keys."""
    table, changes = _changing(site)
    return changes and _fits(table, [site.type(site.input("keys"))]) and _on_table(site, sets=True)


@rewriting("LookupTableExportV2")
def export(site: Site) -> bool:
    """All keys and values."""
    table, changes = _changing(site)
    types = [site.type(index) for index in site.outputs]
    if not (changes and _fits(table, types)) or table.dense:
        return False
    return _on_table(site, [site.add_constant(table.value_shape)])


@rewriting("LookupTableSizeV2")
def size(site: Site) -> bool:
    """HASHTABLE_SIZE, as a scalar."""
    if _changing(site)[1]:
        return _on_table(site)
    sizes = site.through(Op.HASHTABLE_SIZE, site.inputs, TensorType.INT64)
    site.emit(Op.RESHAPE, [sizes, site.add_constant([])], site.outputs)
    return True


@rewriting("DestroyResourceOp")
def emptied(site: Site) -> bool:
    """The table without any keys."""
    return _changing(site)[1] and _on_table(site, sets=True)
