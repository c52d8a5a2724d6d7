"""Variables and hash tables.

The first input is the variable or the table itself, since it is known before a run which one a
handle names. A table is a scalar array that holds a dictionary, or None before the first import.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    HashtableOptions,
    KernelError,
    Op,
    OperatorView,
    VarHandleOptions,
)

_NUMBERS, _TEXTS = np.dtype(np.int64), np.dtype(np.object_)
_KEYS = (_NUMBERS, _TEXTS, np.dtype(np.int32))  # of TensorFlow's tables, which have any values


@kernel(Op.VAR_HANDLE, versions=(1, 1))
def var_handle(op: OperatorView[VarHandleOptions], inputs: Inputs, state: State) -> Outputs:
    """A number that nothing reads."""
    return (np.zeros(op.output.shape, op.output.dtype),)


@kernel(Op.READ_VARIABLE, versions=(1, 1))
def read_variable(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """A copy of the value, since a later assignment may write in place."""
    return (inputs[0].copy(),)


@kernel(Op.ASSIGN_VARIABLE, versions=(1, 1))
def assign_variable(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The value; its type and shape replace those of the variable."""
    return (inputs[1],)


@kernel(Op.HASHTABLE, versions=(1, 1))
def hashtable(op: OperatorView[HashtableOptions], inputs: Inputs, state: State) -> Outputs:
    """A number that nothing reads."""
    return (np.zeros(op.output.shape, op.output.dtype),)


@kernel(Op.HASHTABLE_IMPORT, versions=(1, 1))
def hashtable_import(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The table of the keys and values; after a first import the table does not change."""
    table, keys, values = inputs
    made = hash_table(keys, values, of_tensorflow=bool(op.origin)) if table[()] is None else table
    return (made,)


@kernel(Op.HASHTABLE_FIND, versions=(1, 1))
def hashtable_find(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The values of keys; the default for a key that is not in the table."""
    table, keys, default = inputs
    _check_types(keys, default, of_tensorflow=bool(op.origin))
    content, rest = table.item(), default.reshape(-1)[0]
    if content is None:
        raise KernelError("nothing has been imported into the table")
    found = [content.get(key, rest) for key in keys.reshape(-1).tolist()]
    return (np.array(found, default.dtype).reshape(keys.shape),)


@kernel(Op.HASHTABLE_SIZE, versions=(1, 1))
def hashtable_size(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The number of keys, [1]."""
    return (np.array([len(inputs[0][()] or ())], np.int64),)


def hash_table(keys: Array, values: Array, *, of_tensorflow: bool = False) -> Array:
    """The table with these; of a key that comes twice the first value counts. TensorFlow's tables
    have more types, and one value for a key.

    Raises:
        KernelError: there is no such table.
    """
    _check_types(keys, values, of_tensorflow=of_tensorflow)
    if keys.shape != values.shape:
        raise KernelError(f"keys {list(keys.shape)} and values {list(values.shape)} differ")
    table = np.empty((), np.object_)
    pairs = list(zip(keys.reshape(-1)[::-1].tolist(), values.reshape(-1)[::-1], strict=True))
    content = table[()] = dict(pairs)
    if of_tensorflow and any(content[key] != value for key, value in pairs):
        raise KernelError("a key has two values")
    return table


def _check_types(keys: Array, values: Array, *, of_tensorflow: bool) -> None:
    pair = (keys.dtype, values.dtype)
    known = pair in ((_NUMBERS, _TEXTS), (_TEXTS, _NUMBERS))
    if not (known or (of_tensorflow and keys.dtype in _KEYS)):
        raise KernelError(f"tables from {keys.dtype} to {values.dtype} are not implemented")
