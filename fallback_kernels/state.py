"""Variables and hash tables.

Their first input is the variable or table itself: which one a handle names is known before a run.
A table is an array without dimensions that holds a dictionary, or None as long as nothing has been
imported.
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


@kernel(Op.VAR_HANDLE, versions=(1, 1))
def var_handle(op: OperatorView[VarHandleOptions], inputs: Inputs, state: State) -> Outputs:
    """A number that nothing reads."""
    return (np.zeros(op.output.shape, op.output.dtype),)


@kernel(Op.READ_VARIABLE, versions=(1, 1))
def read_variable(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """A copy: the variable may be set anew in place."""
    return (inputs[0].copy(),)


@kernel(Op.ASSIGN_VARIABLE, versions=(1, 1))
def assign_variable(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The value, with its type and shape, whatever the variable was."""
    return (inputs[1],)


@kernel(Op.HASHTABLE, versions=(1, 1))
def hashtable(op: OperatorView[HashtableOptions], inputs: Inputs, state: State) -> Outputs:
    """A number that nothing reads."""
    return (np.zeros(op.output.shape, op.output.dtype),)


@kernel(Op.HASHTABLE_IMPORT, versions=(1, 1))
def hashtable_import(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """A table of the keys and values; the one there is, if there was an import before."""
    table, keys, values = inputs
    return (hash_table(keys, values) if table[()] is None else table,)


@kernel(Op.HASHTABLE_FIND, versions=(1, 1))
def hashtable_find(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """The value of each key, the default for a key that is not in the table."""
    table, keys, default = inputs
    _check_types(keys, default)
    content, rest = table.item(), default.reshape(-1)[0]
    if content is None:
        raise KernelError("nothing has been imported into the table")
    found = [content.get(key, rest) for key in keys.reshape(-1).tolist()]
    return (np.array(found, default.dtype).reshape(keys.shape),)


@kernel(Op.HASHTABLE_SIZE, versions=(1, 1))
def hashtable_size(op: OperatorView[None], inputs: Inputs, state: State) -> Outputs:
    """[1]: how many keys there are."""
    return (np.array([len(inputs[0][()] or ())], np.int64),)


def hash_table(keys: Array, values: Array) -> Array:
    """The table with these; of a key that comes twice the first value counts.

    Raises:
        KernelError: there is no such table.
    """
    _check_types(keys, values)
    if keys.shape != values.shape:
        raise KernelError(f"keys {list(keys.shape)} and values {list(values.shape)} differ")
    table = np.empty((), np.object_)
    table[()] = dict(zip(keys.reshape(-1)[::-1].tolist(), values.reshape(-1)[::-1], strict=True))
    return table


def _check_types(keys: Array, values: Array) -> None:
    if (keys.dtype, values.dtype) not in ((_NUMBERS, _TEXTS), (_TEXTS, _NUMBERS)):
        raise KernelError(f"tables from {keys.dtype} to {values.dtype} are not implemented")
