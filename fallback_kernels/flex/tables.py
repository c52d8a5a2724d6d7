"""TensorFlow's hash tables that change: what an operator changes is a table of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.flex.optimizers import of_values
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.maps import variant
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.registry import shown

View = OperatorView[Any]


@record(eq=False)
class _Table:
    """The value of each key, in the order in which the keys came."""

    entries: dict[Any, Array]


def _entries(table: Array) -> dict[Any, Array]:
    """Those of a table; a variable that nothing was assigned to has none."""
    value: Any = table[()] if not table.ndim else None
    if value is None:
        return {}
    if not isinstance(value, _Table):
        raise KernelError("a variant that is no table")
    return value.entries


def _held(entries: dict[Any, Array]) -> Outputs:
    return (variant(_Table(entries)),)


def _rows(values: Array, keys: Array) -> Array:
    """The values [number of keys, *value]."""
    if values.shape[: keys.ndim] != keys.shape:
        raise KernelError(f"keys {keys.shape} and values {values.shape} differ")
    return values.reshape(keys.size, *values.shape[keys.ndim :])


@flex_kernel("LookupTableInsertV2", "LookupTableImportV2", state=of_values)
def put(op: View, inputs: Inputs, state: State) -> Outputs:
    """The table with keys, in the place of those that are there; an import takes nothing over."""
    table, keys, values = inputs
    entries = dict(_entries(table)) if op.name == "FlexLookupTableInsertV2" else {}
    rows = _rows(values, keys).copy()
    if any(row.shape != held.shape for held in list(entries.values())[:1] for row in rows[:1]):
        raise KernelError(f"values of {rows.shape[1:]} in a table of others")
    entries.update(zip(keys.reshape(-1).tolist(), rows, strict=True))
    return _held(entries)


@flex_kernel("DestroyResourceOp", state=of_values)
def emptied(op: View, inputs: Inputs, state: State) -> Outputs:
    """A table without keys."""
    return _held({})


@flex_kernel("LookupTableRemoveV2", state=of_values)
def remove(op: View, inputs: Inputs, state: State) -> Outputs:
    """The table without keys."""
    gone = set(inputs[1].reshape(-1).tolist())
    return _held({key: row for key, row in _entries(inputs[0]).items() if key not in gone})


@flex_kernel("LookupTableFindV2", state=of_values)
def find(op: View, inputs: Inputs, state: State) -> Outputs:
    """The values of keys; for a key that is not there the default, one for all or one for each."""
    table, keys, default, shape = inputs
    entries, value_shape = _entries(table), tuple(shape.tolist())
    if default.shape not in (value_shape, (*keys.shape, *value_shape)):
        raise KernelError(f"a default of {default.shape} for values of {shown(shape)}")
    result = np.empty((*keys.shape, *value_shape), default.dtype)
    result[...] = default
    rows = result.reshape(keys.size, *value_shape)
    for place, key in enumerate(keys.reshape(-1).tolist()):
        if key in entries:
            rows[place] = _of_shape(entries[key], value_shape)
    return (result,)


def _of_shape(value: Any, shape: tuple[int, ...]) -> Any:
    if np.shape(value) != shape:
        raise KernelError(f"a value of {np.shape(value)}, expected {shape}")
    return value


@flex_kernel("LookupTableExportV2", state=of_values)
def export(op: View, inputs: Inputs, state: State) -> Outputs:
    """The keys and the values in the order in which they came; TensorFlow's order is that of
    hashes."""
    entries, shape = _entries(inputs[0]), tuple(inputs[1].tolist())
    keys, values = (tensor.dtype for tensor in op.outputs)
    found = np.empty(len(entries), keys)
    found[:] = list(entries)
    rows = np.empty((len(entries), *shape), values)
    for place, row in enumerate(entries.values()):
        rows[place] = _of_shape(row, shape)
    return found, rows


@flex_kernel("LookupTableSizeV2", state=of_values)
def size(op: View, inputs: Inputs, state: State) -> Outputs:
    """The number of keys."""
    return (np.array(len(_entries(inputs[0])), np.int64),)


refuse_rest("tables")
