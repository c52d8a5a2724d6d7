"""Cases of operators that read bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.flex.cases import Case, texts
from tests.flex.nodes import field, varint

TYPES = ("half", "float", "double", "int32", "uint16", "uint8", "int16", "int8", "int64")


def case(name: str, inputs: list[Any], *, refused: bool = False, **attributes: Any) -> Case:
    """A case whose single texts stand in the file: the interpreter cannot set them."""
    single = [i for i, each in enumerate(inputs) if each.dtype == object and not each.ndim]
    if name.startswith("Parse"):
        single = [
            i for i, each in enumerate(inputs) if each.dtype == object and (i or not each.ndim)
        ]
    note = str(attributes)[:60]
    return Case(name, inputs, attributes, single, exports=False, refused=refused, note=note)


def raw() -> Iterator[Case]:
    """Cases of numbers as they are stored."""
    whole = texts(bytes(range(16)), bytes(range(240, 256))).reshape(1, 2)
    short = texts(bytes(range(16)), b"\x01\x02\x03\x04", b"", bytes(range(40)))
    for type in TYPES:
        for little in (True, False):
            yield case("DecodeRaw", [whole], out_type=type, little_endian=little)
        if type != "half":  # TensorFlow has no kernel
            yield case("DecodePaddedRaw", [short, np.int32(24)], out_type=type)
    yield case("DecodePaddedRaw", [whole, np.int32(8)], out_type="int16", little_endian=False)
    for type in ("complex64", "complex128"):
        yield case("DecodeRaw", [whole], out_type=type)
    yield case("DecodeRaw", [texts(b"\x00\x01", b"\x01\x00")], out_type="bool")
    yield case("DecodeRaw", [texts(b"abcd", b"abc")], out_type="uint8", refused=True)
    yield case("DecodeRaw", [texts(b"abc")], out_type="int16", refused=True)
    for size in (0, -1, 3):
        yield case("DecodePaddedRaw", [short, np.int32(size)], out_type="int16", refused=True)


def feature(values: Any) -> bytes:
    """A Feature: of floats packed, of integers one by one, of bytes."""
    if isinstance(values, np.ndarray):
        return field(2, field(1, values.astype("<f4").tobytes()))
    if values and isinstance(values[0], int):
        return field(3, b"".join(varint(1 << 3) + varint(value) for value in values))
    return field(1, b"".join(field(1, value) for value in values))


def example(**features: Any) -> bytes:
    entries = (field(1, k.encode()) + field(2, feature(v)) for k, v in features.items())
    return field(1, b"".join(field(1, entry) for entry in entries))


FLOATS = np.float32([0.5, -2])
EXAMPLES = texts(
    example(f=FLOATS, i=[1, -5, 2**62], s=[b"x", b"\xff"], v=[1, 2], t=[b"", b"y"], w=[3]),
    example(f=FLOATS[::-1], s=[b""], v=[1, 2, 3, 4], w=[4, 5]),
    example(f=FLOATS * 3, i=[7], other=[b"o"]) + example(f=FLOATS * 5),
    b"".join([example(f=FLOATS), b"\x12\x00"]),
)
NAMES = texts()
SPARSE = {"num_sparse": 2, "sparse_types": ["int64", "string"]}
DENSE = {"Tdense": ["float", "int64"], "dense_shapes": [[2], [-1, 2]]}
RAGGED = {"ragged_value_types": ["string", "int64"], "ragged_split_types": ["int32", "int64"]}
NONE = {"num_sparse": 0, "sparse_types": [], "Tdense": [], "dense_shapes": []}
DEFAULTS = [np.float32([8, 9]), np.int64(-1)]


def examples() -> Iterator[Case]:
    """Cases of examples."""
    sparse, dense, ragged = texts(b"i", b"s"), texts(b"f", b"v"), texts(b"t", b"w")
    keys = [NAMES, sparse, dense, ragged]
    yield case("ParseExampleV2", [EXAMPLES, *keys, *DEFAULTS], **SPARSE, **DENSE, **RAGGED)
    rows = {"ragged_value_types": [], "ragged_split_types": []}
    alone = [EXAMPLES[:1].reshape(()), NAMES, sparse, dense, NAMES]
    yield case("ParseExampleV2", [*alone, *DEFAULTS], **SPARSE, **DENSE, **rows)
    needed = {**NONE, **rows, "Tdense": ["int64"], "dense_shapes": [[3]]}
    three = [NAMES, NAMES, texts(b"i"), NAMES]
    yield case("ParseExampleV2", [EXAMPLES[:1], *three, np.int64([])], **needed)
    yield case("ParseExampleV2", [EXAMPLES, *three, np.int64([])], refused=True, **needed)
    one = {**needed, "dense_shapes": [[]]}
    yield case("ParseExampleV2", [EXAMPLES[1:], *three, np.int64(4)], refused=False, **one)
    yield case("ParseExampleV2", [EXAMPLES, *three, np.int64(4)], refused=True, **one)
    other = {**NONE, **rows, "num_sparse": 1, "sparse_types": ["float"]}
    wrong = [NAMES, texts(b"i"), NAMES, NAMES]
    yield case("ParseExampleV2", [EXAMPLES, *wrong], refused=True, **other)
    for damaged in (b"\x0a\x05", b"abc", b"\x0a\x02\x0a\xff"):
        yield case("ParseExampleV2", [texts(damaged), *wrong], refused=True, **other)
    single = {"sparse_keys": ["i", "s"], "dense_keys": ["f", "v"], **SPARSE, **DENSE}
    yield case("ParseSingleExample", [EXAMPLES[:1].reshape(()), *DEFAULTS], **single)
    first = {"Nsparse": 2, "Ndense": 2, "sparse_types": SPARSE["sparse_types"], **DENSE}
    names = [key.reshape(()) for key in (sparse[:1], sparse[1:], dense[:1], dense[1:])]
    yield case("ParseExample", [EXAMPLES, NAMES, *names, *DEFAULTS], **first)


def serialized() -> Iterator[Case]:
    for array in (
        np.float32([[1, 2.5], [-3, 0]]),
        np.arange(200, dtype=np.int64).reshape(2, 0 + 100),
        np.array([True, False]),
        np.array(7, np.uint8),
        np.zeros((0, 3), np.float32),
        np.float16([1.5]),
        np.complex64([1 + 2j]),
        texts(b"a", b"", b"\xff\0"),
    ):
        yield Case("SerializeTensor", [array], exports=False)


CASES = [*raw(), *examples(), *serialized()]
