"""Hash tables that hold the same whenever they hold anything."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.schema import KernelError, Model, Op, TensorView
from tflite_ort.schema.values.resolve import operator_view, tensor_views
from tflite_ort.schema.values.view import VariableKey

with late:
    from tflite_ort.fallback_kernels import state

Tables = Mapping[VariableKey, npt.NDArray[np.object_]]


def table_key(table_id: int) -> VariableKey:
    """What a table is known by in all subgraphs."""
    return ("", table_id)


def constant_tables(model: Model) -> Tables:
    """The contents of the tables that always import the same, by key.

    A table keeps what is imported first. Of a subgraph, only its first import into a table can be
    that; these have to import the same constants wherever they are, since the caller chooses which
    subgraph runs first.
    """
    found: dict[VariableKey, npt.NDArray[np.object_] | None] = {}
    for subgraph, graph in enumerate(model.subgraphs):
        codes = {model.operator_codes[op.opcode_index].builtin_code for op in graph.operators}
        if Op.HASHTABLE_IMPORT not in codes:
            continue
        imports = _first_imports(model, subgraph)
        if imports is None:
            return {}
        for key, table in imports.items():
            same = table is not None and (key not in found or _equal(table, found[key]))
            found[key] = table if same else None
    return {key: table for key, table in found.items() if table is not None}


def _first_imports(
    model: Model, subgraph: int
) -> dict[VariableKey, npt.NDArray[np.object_] | None] | None:
    """By table, what a subgraph imports first, None if that is computed; None altogether where it
    is not told here which table is meant."""
    tensors = tensor_views(model, subgraph)
    handles: dict[int, VariableKey] = {}
    imports: dict[VariableKey, npt.NDArray[np.object_] | None] = {}
    for index in range(len(model.subgraphs[subgraph].operators)):
        op = operator_view(model, subgraph, index, tensors)
        if op.op is Op.HASHTABLE and op.outputs:
            handles[op.output.index] = table_key(op.options.table_id)
        if op.op is not Op.HASHTABLE_IMPORT:
            continue
        given = op.present_inputs()
        if len(given) != 3 or given[0].index not in handles:
            return None
        table, keys, values = given
        imports.setdefault(handles[table.index], _imported(keys, values, bool(op.origin)))
    return imports


def _imported(
    keys: TensorView, values: TensorView, of_tensorflow: bool
) -> npt.NDArray[np.object_] | None:
    if keys.data is None or values.data is None:
        return None
    try:
        return state.hash_table(keys.data, values.data, of_tensorflow=of_tensorflow)
    except KernelError:  # as the import will
        return None


def _equal(one: npt.NDArray[np.object_], other: npt.NDArray[np.object_] | None) -> bool:
    return other is not None and bool(one[()] == other[()])
