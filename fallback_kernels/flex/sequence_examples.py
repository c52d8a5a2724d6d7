"""TensorFlow's operators that read sequence examples: features, and lists of features by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.parsing import (
    MOST_ELEMENTS,
    Feature,
    asked,
    example_of,
    feature_of,
    nothing,
    taken,
    values_of,
)
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.file.wire import Message
from tflite_ort.schema.values.flex import Node, node_of

View = OperatorView[Any]
Steps = Sequence[Feature | None]  # None for a step without values
Lists = Sequence[Mapping[bytes, Steps]]  # of each example

_RANKS = {"FlexParseSequenceExample": (1,), "FlexParseSingleSequenceExample": (0,)}
_PARTS = ("context", "feature_list")
_KINDS = ("sparse", "dense", "ragged")
# By what an operator of examples calls an attribute, what these call it for a part.
_NAMES = {
    "sparse_types": "{}_sparse_types",
    "Tdense": "Tcontext_dense",
    "dense_shapes": "{}_dense_shapes",
    "ragged_value_types": "{}_ragged_value_types",
    "ragged_split_types": "{}_ragged_split_types",
}


@flex_kernel("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample")
def parse_sequences(op: View, inputs: Inputs, state: State) -> Outputs:
    """The features of sequence examples and their lists of features, of a list of examples or of
    one alone."""
    node = node_of(op)
    given = node.parts(node.operator.inputs, inputs)
    (serialized,) = given["serialized"]
    single = not serialized.ndim
    if serialized.ndim not in _RANKS.get(op.name, (0, 1)):
        raise KernelError(f"sequence examples have shape {list(serialized.shape)}")
    keys, lists = (
        [_keys(node, given, f"{part}_{kind}_keys") for kind in _KINDS] for part in _PARTS
    )
    wanted = asked(_attributes(node, "context"), keys, given["context_dense_defaults"])
    contents = [bytes(each) for each in serialized.reshape(-1)]
    try:
        context = taken(wanted, [example_of(each) for each in contents], single=single)
        found = [dict(_lists_of(each)) for each in contents]
        steps = _Steps(node, lists, _may_be_missing(node, given, lists[1])).taken(found, single)
    except ModelError as error:
        raise KernelError(f"a sequence example is damaged: {error}") from None
    if single and wanted.ragged:
        count = len(wanted.ragged)
        context = (*context[:-count], *map(_unset, context[-count:]))
    return (*context, *steps)


def _keys(node: Node, given: Mapping[str, Sequence[Array]], name: str) -> list[bytes]:
    """Keys, which are an attribute or inputs."""
    if name in given:
        return [bytes(key) for array in given[name] for key in array.reshape(-1)]
    return _texts(node.attributes.get(name, ()))


def _texts(texts: Sequence[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts]


def _attributes(node: Node, part: str) -> dict[str, Any]:
    return {name: node.attributes.get(own.format(part), ()) for name, own in _NAMES.items()}


def _may_be_missing(
    node: Node, given: Mapping[str, Sequence[Array]], dense: Sequence[bytes]
) -> set[bytes]:
    """The dense lists that are empty where an example does not have them."""
    name = "feature_list_dense_missing_assumed_empty"
    if name not in given:
        return set(_texts(node[name]))
    (told,) = given[name]
    if told.dtype.hasobject:
        return {bytes(key) for key in told.reshape(-1)}
    if told.size != len(dense):
        raise KernelError(f"{told.size} marks of {len(dense)} lists of features")
    return {key for key, empty in zip(dense, told.reshape(-1).tolist(), strict=True) if empty}


def _lists_of(content: bytes) -> Iterator[tuple[bytes, Steps]]:
    """The lists of features of a sequence example by name; of one that stands twice the last
    counts."""
    for lists in Message(content, ModelError).blobs(2):
        for entry in Message(lists, ModelError).blobs(1):
            pair = Message(entry, ModelError)
            yield pair.blob(1), pair.message(2).messages(1, feature_of)


class _Steps:
    """What an operator takes from lists of features."""

    def __init__(self, node: Node, keys: Sequence[Sequence[bytes]], missing: set[bytes]) -> None:
        attributes, self._missing = _attributes(node, "feature_list"), missing
        dense_types = node["feature_list_dense_types"]
        self._has_lengths = node.operator.name != "ParseSingleSequenceExample"
        columns = (
            (keys[0], attributes["sparse_types"]),
            (keys[1], dense_types, attributes["dense_shapes"]),
            (keys[2], attributes["ragged_value_types"], attributes["ragged_split_types"]),
        )
        if any(len({len(part) for part in column}) > 1 for column in columns):
            raise KernelError("the numbers of keys, types and shapes differ")
        self._sparse, self._dense, self._ragged = (
            list(zip(*column, strict=True)) for column in columns
        )

    def taken(self, examples: Lists, single: bool) -> Outputs:
        """All outputs, in the order of the operator."""
        sparse = [_sparse(examples, key, type, single) for key, type in self._sparse]
        dense = [self._of_dense(examples, *each) for each in self._dense]
        ragged = [_ragged(examples, *each, single=single) for each in self._ragged]
        values = [whole[0] if single else whole for whole, _ in dense]
        lengths = [lengths[0] if single else lengths for _, lengths in dense]
        columns = [array for i in range(3) for array in (each[i] for each in sparse)]
        rows = [array for i in range(3) for array in (each[i] for each in ragged)]
        return (*columns, *values, *(lengths if self._has_lengths else ()), *rows)

    def _of_dense(
        self, examples: Lists, key: bytes, type: str, shape: tuple[int, ...] | None
    ) -> tuple[Array, Array]:
        """The values [example, step, *shape], with zeros after the last step, and the numbers of
        steps."""
        if shape is None or any(size < 0 for size in shape):
            raise KernelError(f"feature {key!r} has shape {shape}")
        found = []
        for example in examples:
            if key not in example and key not in self._missing:
                raise KernelError(f"a sequence example does not have {key!r}")
            found.append([_values(step, key, type) for step in example.get(key, ())])
        lengths = np.array([len(steps) for steps in found], np.int64)
        most, empty = int(lengths.max(initial=0)), nothing(type)
        if len(found) * most * prod(shape) > MOST_ELEMENTS:
            raise KernelError(f"{len(found)} sequence examples of {most} steps")
        fill = b"" if empty.dtype.hasobject else 0
        whole = np.full((len(found), most, *shape), fill, empty.dtype)
        for row, steps in enumerate(found):
            for place, values in enumerate(steps):
                if values.size != prod(shape):
                    raise KernelError(f"{key!r} has {values.size} values, expected {list(shape)}")
                whole[row, place] = values.reshape(shape)
        return whole, lengths


def _values(step: Feature | None, key: bytes, type: str) -> Array:
    if step is None:
        raise KernelError(f"a step of {key!r} has no values")
    return values_of(step, key, type)


def _all(examples: Lists, key: bytes, type: str) -> list[list[Array]]:
    """The values of each step of each example."""
    return [
        [nothing(type) if step is None else values_of(step, key, type) for step in steps]
        for steps in (example.get(key, ()) for example in examples)
    ]


def _sparse(examples: Lists, key: bytes, type: str, single: bool) -> tuple[Array, Array, Array]:
    """Indices [example, step, place], values and sizes; of one example without the first."""
    whole = _all(examples, key, type)
    places = [
        (row, step, place)
        for row, steps in enumerate(whole)
        for step, values in enumerate(steps)
        for place in range(len(values))
    ]
    indices = np.array(places, np.int64).reshape(-1, 3)
    steps = [values for each in whole for values in each]
    widest = max(map(len, steps), default=0)
    sizes = np.array([len(whole), max(map(len, whole), default=0), widest], np.int64)
    first = 1 if single else 0
    return indices[:, first:], np.concatenate([nothing(type), *steps]), sizes[first:]


def _ragged(
    examples: Lists, key: bytes, type: str, splits: str, *, single: bool
) -> tuple[Array, Array, Array]:
    """Values, the bounds of the examples among the steps, and of the steps among the values."""
    whole, dtype = _all(examples, key, type), np.dtype(splits)
    steps = [values for each in whole for values in each]
    outer, inner = (np.cumsum([0, *map(len, each)]).astype(dtype) for each in (whole, steps))
    return np.concatenate([nothing(type), *steps]), _unset(outer) if single else outer, inner


def _unset(bounds: Array) -> Array:
    """In the place of bounds of one example alone, which TensorFlow leaves unset."""
    return np.zeros((), bounds.dtype)
