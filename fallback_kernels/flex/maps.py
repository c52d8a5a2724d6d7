"""TensorFlow's maps from tensors to tensors: what an operator changes is a map of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.maps import TensorMap, key_of, map_of, variant
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView

View = OperatorView[Any]


@flex_kernel("TensorMapInsert")
def inserted(op: View, inputs: Inputs, state: State) -> Outputs:
    """The map with a value under a key, in place of the one that was there."""
    whole, key, value = inputs
    entries = {**map_of(whole).entries, key_of(key): (key.copy(), value.copy())}
    return (variant(TensorMap(entries)),)


@flex_kernel("TensorMapLookup")
def found(op: View, inputs: Inputs, state: State) -> Outputs:
    """The value under a key."""
    value = _entry(*inputs)[1]
    if value.dtype != op.output.dtype:
        raise KernelError(f"a value of {value.dtype}, expected {op.output.dtype}")
    return (value.copy(),)


@flex_kernel("TensorMapErase")
def erased(op: View, inputs: Inputs, state: State) -> Outputs:
    """The map without a key."""
    _entry(*inputs)
    entries = dict(map_of(inputs[0]).entries)
    del entries[key_of(inputs[1])]
    return (variant(TensorMap(entries)),)


def _entry(whole: Array, key: Array) -> tuple[Array, Array]:
    entry = map_of(whole).entries.get(key_of(key))
    if entry is None:
        raise KernelError("the map does not have this key")
    return entry


@flex_kernel("TensorMapHasKey")
def has_key(op: View, inputs: Inputs, state: State) -> Outputs:
    """Whether there is a key."""
    return (np.array(key_of(inputs[1]) in map_of(inputs[0]).entries),)


@flex_kernel("TensorMapSize")
def size(op: View, inputs: Inputs, state: State) -> Outputs:
    """How many keys there are."""
    return (np.array(len(map_of(inputs[0]).entries), np.int32),)


@flex_kernel("TensorMapStackKeys")
def keys(op: View, inputs: Inputs, state: State) -> Outputs:
    """The keys in the order in which they came; TensorFlow's order is that of hashes."""
    found = [key for key, _ in map_of(inputs[0]).entries.values()]
    if any(key.shape != found[0].shape or key.dtype != op.output.dtype for key in found):
        raise KernelError("keys of several shapes or types")
    return (np.stack(found) if found else np.empty(0, op.output.dtype),)


refuse_rest("maps")
