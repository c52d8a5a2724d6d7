"""TensorFlow's hash tables, as TFLite's own. A table is filled once, and does not
change then."""

from __future__ import annotations

from collections.abc import Iterator

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.external import ExternalData
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.model import Model, Operator
from tflite_ort.schema.file.options import HashtableOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import Node, node_from
from tflite_ort.schema.values.resolve import constant_data

Name = tuple[str, str]  # of the container and of the table
_KEYS = (TensorType.STRING, TensorType.INT64, TensorType.INT32)


@rewriting("HashTableV2", "MutableHashTableV2")
def hash_table(site: Site) -> bool:
    """HASHTABLE. Tables of one name are one table; its number is that of the name."""
    name, types = _name(site.node), (site.node.type("key_dtype"), site.node.type("value_dtype"))
    if not name[1] or types[0] not in _KEYS:
        return False
    # TFLite's keeps what is imported first, a table that can change what is imported last.
    if site.node.operator.name != "HashTableV2":
        fills = list(_fills(site.drafts.model))
        if fills.count(name) != 1 or None in fills:
            return False
    names = list(dict.fromkeys(name for _, _, name in _tables(site.drafts.model)))
    # Tables of TFLite have numbers from 0 on.
    options = HashtableOptions(
        table_id=-1 - names.index(name), key_dtype=types[0], value_dtype=types[1]
    )
    site.emit(Op.HASHTABLE, (), site.outputs, options)
    return True


def _name(node: Node) -> Name:
    kind = "" if node.operator.name == "HashTableV2" else "mutable"
    return kind + node["container"], node["shared_name"]


def _operators(model: Model, *names: str) -> Iterator[tuple[int, str, Operator]]:
    """(subgraph, custom code, operator) of TensorFlow's operators of some names."""
    wanted = {PREFIX + name for name in names}
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            custom = model.operator_codes[operator.opcode_index].custom_code
            if custom in wanted:
                yield number, str(custom), operator


def _tables(model: Model) -> Iterator[tuple[int, int, Name]]:
    """The subgraph, the handle and the name of each table."""
    for number, custom, operator in _operators(model, "HashTableV2", "MutableHashTableV2"):
        try:
            name = _name(node_from(custom, custom, operator.custom_options))
        except ModelError:  # told when its subgraph is made ready
            continue
        yield from ((number, output, name) for output in operator.outputs)


def _fills(model: Model) -> Iterator[Name | None]:
    """The table of each operator that fills or changes one; None where it is not told here, or what
    it takes is computed."""
    handles = {(number, handle): name for number, handle, name in _tables(model)}
    fills = ("LookupTableImportV2", "LookupTableInsertV2", "LookupTableRemoveV2")
    for number, custom, operator in _operators(model, *fills):
        handle, *given = operator.inputs
        tensors = [model.subgraphs[number].tensors[index] for index in given if index is not None]
        constant = all(
            constant_data(model, each, ExternalData(model)) is not None for each in tensors
        )
        known = constant and custom == PREFIX + fills[0]
        yield handles.get((number, handle)) if known and handle is not None else None


@rewriting("LookupTableFindV2")
def find(site: Site) -> bool:
    """HASHTABLE_FIND; the default is a scalar."""
    default = site.tensors[site.input("default_value")]
    if default.shape or site.type(site.input("keys")) not in _KEYS:
        return False
    site.emit(Op.HASHTABLE_FIND, site.inputs, site.outputs)
    return True


@rewriting("LookupTableImportV2", "InitializeTableV2")
def fill(site: Site) -> bool:
    """HASHTABLE_IMPORT."""
    if site.type(site.input("keys")) not in _KEYS:
        return False
    site.emit(Op.HASHTABLE_IMPORT, site.inputs, ())
    return True


@rewriting("LookupTableSizeV2")
def size(site: Site) -> bool:
    """HASHTABLE_SIZE, as a scalar."""
    sizes = site.through(Op.HASHTABLE_SIZE, site.inputs, TensorType.INT64)
    site.emit(Op.RESHAPE, [sizes, site.add_constant([])], site.outputs)
    return True
