"""Cases of operators that read sequence examples. The keys stand in the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.flex.cases import Case, texts
from tests.flex.cases_parsing import FLOATS, example, feature
from tests.flex.nodes import field


def lists(**features: Sequence[Any]) -> bytes:
    """FeatureLists: by name the values of each step; None for a step without a type."""

    def step(values: Any) -> bytes:
        return b"" if values is None else feature(values) if len(values) else field(3, b"")

    entries = (
        field(1, key.encode()) + field(2, b"".join(field(1, step(values)) for values in steps))
        for key, steps in features.items()
    )
    return field(2, b"".join(field(1, entry) for entry in entries))


SEQUENCES = texts(
    example(c=FLOATS, s=[b"x", b"\xff"], i=[3], j=[5, -6])
    + lists(v=[FLOATS, FLOATS * 2, FLOATS * 3], w=[[1, 2], [], [-3]], t=[[b"a"], [b"", b"b"]])
    + lists(u=[[], [2, 3]]),
    example(c=FLOATS[::-1], i=[7, 8]) + lists(v=[FLOATS * 5], w=[None, [4]]) + lists(w=[[9], [5]]),
    lists(v=[], t=[]) + example(c=FLOATS * 2),
)
CONTEXT = {"Ncontext_sparse": 2, "context_sparse_types": ["int64", "string"]}
CONTEXT |= {"Tcontext_dense": ["float"], "context_dense_shapes": [[2]]}
LISTS = {"Nfeature_list_sparse": 2, "feature_list_sparse_types": ["int64", "string"]}
LISTS |= {"Nfeature_list_dense": 1, "feature_list_dense_types": ["float"]}
LISTS |= {"feature_list_dense_shapes": [[2]]}
KEYS = {"context_sparse": [b"i", b"s"], "context_dense": [b"c"]}
KEYS |= {"feature_list_sparse": [b"w", b"t"], "feature_list_dense": [b"v"]}
DEFAULT = np.float32([])
# TensorFlow's interpreter gives no results without elements.
LESS = texts(SEQUENCES[0], example(c=FLOATS))
NOT_THERE = {"feature_list_dense": [b"q"]}


def first(serialized: Any, keys: dict[str, Sequence[bytes]], *empty: bytes, **known: Any) -> Case:
    """ParseSequenceExample, whose keys are attributes."""
    told = {f"{key}_keys": list(value) for key, value in keys.items()}
    told["feature_list_dense_missing_assumed_empty"] = list(empty)
    given = [serialized, texts(*[b""] * len(serialized)), DEFAULT]
    more = {"Ncontext_dense": 1}
    return _case("ParseSequenceExample", given, CONTEXT | LISTS | told | more, **known)


def second(
    serialized: Any, keys: dict[str, Sequence[bytes]], empty: bool = False, **known: Any
) -> Case:
    """ParseSequenceExampleV2, whose keys are inputs."""
    names = [f"{part}_{kind}" for part in ("context", "feature_list") for kind in _KINDS]
    given = [serialized, texts(), *(texts(*keys.get(name, ())) for name in names)]
    given += [np.array([empty] * len(keys["feature_list_dense"])), DEFAULT]
    ragged = {
        f"{part}_ragged_{kind}_types": types * len(keys.get(f"{part}_ragged", ()))
        for part in ("context", "feature_list")
        for kind, types in (("value", ["int64"]), ("split", ["int32"]))
    }
    return _case("ParseSequenceExampleV2", given, CONTEXT | LISTS | ragged, **known)


def one(
    serialized: bytes,
    keys: dict[str, Sequence[bytes]],
    *empty: bytes,
    more: Mapping[str, Any] = MappingProxyType({}),
    **known: Any,
) -> Case:
    """ParseSingleSequenceExample, each key of which is an input."""
    names = [key for value in keys.values() for key in value]
    given = [_text(serialized), texts(*empty), *map(_text, names), DEFAULT, _text(b"name")]
    told = CONTEXT | LISTS | {"Ncontext_dense": 1, **more}
    return _case("ParseSingleSequenceExample", given, told, **known)


_KINDS = ("sparse", "dense", "ragged")


def _text(value: bytes) -> Any:
    return texts(value).reshape(())


def _case(name: str, inputs: list[Any], attributes: dict[str, Any], **known: Any) -> Case:
    constants = [i for i, a in enumerate(inputs) if a.dtype == object and (i or not a.ndim)]
    return Case(name, inputs, attributes, constants, exports=False, **known)


def cases() -> Iterator[Case]:
    yield first(SEQUENCES[:2], KEYS, note="two")
    yield first(SEQUENCES, KEYS, note="all")
    yield first(LESS, KEYS, b"v", note="empty")
    yield first(SEQUENCES, KEYS | NOT_THERE, refused=True, note="missing")
    yield second(SEQUENCES, KEYS, note="all")
    yield second(LESS, KEYS, True, note="empty")
    yield second(SEQUENCES, KEYS | NOT_THERE, refused=True, note="missing")
    rows = {"context_ragged": [b"j"], "feature_list_ragged": [b"u"]}
    yield second(SEQUENCES, KEYS | rows, note="ragged")
    yield second(_text(SEQUENCES[0]), KEYS, note="single")
    yield one(SEQUENCES[0], KEYS, note="all")
    numbers = {"context_sparse": [b"i"], "feature_list_sparse": [b"w"]}
    types = {"context_sparse_types": ["int64"], "feature_list_sparse_types": ["int64"]}
    counts = {"Ncontext_sparse": 1, "Nfeature_list_sparse": 1}
    yield one(SEQUENCES[1], KEYS | numbers, more=types | counts, note="numbers")
    yield one(SEQUENCES[0], KEYS | NOT_THERE, refused=True, note="missing")
    yield one(SEQUENCES[0], KEYS | {"feature_list_dense": [b"w"]}, refused=True, note="type")
    yield one(SEQUENCES[0], KEYS | {"context_dense": [b"i"]}, refused=True, note="context type")
    yield one(SEQUENCES[0][:-3], KEYS, refused=True, note="damaged")
    short = example(c=FLOATS) + lists(v=[FLOATS[:1]])
    yield one(short, KEYS, refused=True, note="size")
    yield one(example(c=FLOATS) + lists(v=[FLOATS, None]), KEYS, refused=True, note="no values")


CASES = list(cases())
