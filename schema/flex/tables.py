"""TensorFlow's hash tables, as TFLite's own. A table is filled once, and does not change then."""

from __future__ import annotations

from collections.abc import Iterator

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.options import HashtableOptions
from tflite_ort.schema.flex.rewriting import Drafts, Site, rewriting
from tflite_ort.schema.values.flex import Node, node_from

_KEYS = (TensorType.STRING, TensorType.INT64, TensorType.INT32)


@rewriting("HashTableV2")
def hash_table(site: Site) -> bool:
    """HASHTABLE. Tables of one name are one table; its number is that of the name."""
    name, types = _name(site.node), (site.node.type("key_dtype"), site.node.type("value_dtype"))
    if not name[1] or types[0] not in _KEYS:
        return False
    names = list(dict.fromkeys(_names(site.drafts)))
    # Tables of TFLite have numbers from 0 on.
    options = HashtableOptions(
        table_id=-1 - names.index(name), key_dtype=types[0], value_dtype=types[1]
    )
    site.emit(Op.HASHTABLE, (), site.outputs, options)
    return True


def _name(node: Node) -> tuple[str, str]:
    return node["container"], node["shared_name"]


def _names(drafts: Drafts) -> Iterator[tuple[str, str]]:
    """The names of all tables."""
    codes = drafts.model.operator_codes
    for graph in drafts.model.subgraphs:
        for operator in graph.operators:
            custom = codes[operator.opcode_index].custom_code
            if custom == f"{PREFIX}HashTableV2":
                try:
                    yield _name(node_from(custom, custom, operator.custom_options))
                except ModelError:  # told when its subgraph is made ready
                    continue


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
