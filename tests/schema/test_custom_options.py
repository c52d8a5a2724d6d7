"""Custom options: flexbuffers as the flatbuffers package writes them, and damaged ones."""

from __future__ import annotations

import struct

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T, one_op_model
from tflite_ort.schema import BudgetExceeded, ModelError, read_model
from tflite_ort.schema.file.custom_options import Value, custom_options, flexbuffer
from tflite_ort.schema.values.resolve import operator_view, tensor_views

keys = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-3e38, 3e38)  # the package writes no larger ones
    | st.text(max_size=9)
    | st.binary(max_size=9)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)
maps = st.dictionaries(keys, values, max_size=6)


def dumped(value: Value) -> bytes:
    return bytes(flexbuffers.Dumps(value))


@given(maps)
def test_map_comes_back(value: dict[str, Value]) -> None:
    assert custom_options(dumped(value)) == value


@given(values)
def test_value_comes_back(value: Value) -> None:
    assert flexbuffer(dumped(value)) == value


@given(maps, st.data())
def test_damaged_bytes_are_a_map_or_come_back(value: dict[str, Value], data: st.DataObject) -> None:
    damaged = bytearray(dumped(value))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[data.draw(st.integers(0, 3)) :])
    options = custom_options(cut)
    assert isinstance(options, dict) or options == cut


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        flexbuffer(data)
    except ModelError as error:
        assert "not a flexbuffer" in str(error)


def built(element: str, numbers: list[int] | list[float], fixed: bool = False) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("v")
        if fixed:
            builder.FixedTypedVectorFromElements(numbers)
        else:
            builder.TypedVectorFromElements(numbers, getattr(flexbuffers.Type, element))
    return bytes(builder.Finish())


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    ("element", "numbers"),
    [("INT", [-1, 300]), ("UINT", [1, 2, 70000]), ("FLOAT", [0.5, -2.0, 0.1, 3.0])],
)
def test_typed_vectors(element: str, numbers: list[int] | list[float], fixed: bool) -> None:
    assert custom_options(built(element, numbers, fixed)) == {"v": numbers}


def test_vectors_of_flags_and_of_keys() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        with builder.TypedVector("flags"):
            builder.Bool(True)
            builder.Bool(False)
        with builder.TypedVector("names"):
            builder.Key("x")
            builder.Key("y")
    decoded = custom_options(bytes(builder.Finish()))
    assert decoded == {"flags": [True, False], "names": ["x", "y"]}


def test_numbers_by_reference() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.IndirectInt("i", -5)
        builder.IndirectUInt("u", 2**63)
        builder.IndirectFloat("f", 0.1)
    assert custom_options(bytes(builder.Finish())) == {"i": -5, "u": 2**63, "f": 0.1}


def test_text_that_is_not_utf8_comes_as_bytes() -> None:
    data = dumped(["name", "text"]).replace(b"text", b"\xff\xfe\x00\x01")
    assert flexbuffer(data) == ["name", b"\xff\xfe\x00\x01"]


def test_what_is_no_map_stays_bytes() -> None:
    for data in (dumped([1, 2]), dumped(7), struct.pack("<6i", 1, 2, 2, 3, 3, 0), b"\x04"):
        assert custom_options(data) == data
    assert custom_options(b"") == {}


def test_depth_is_bounded() -> None:
    value: Value = 1
    for _ in range(60):
        value = [value]
    assert flexbuffer(dumped(value)) == value
    for _ in range(20):
        value = [value]
    with pytest.raises(ModelError, match="nested more than 64 deep"):
        flexbuffer(dumped(value))


def test_vectors_that_refer_to_one_another_many_times_are_refused() -> None:
    """Forty vectors of ten references to the one before: 10 ** 40 values in 1 kB."""
    data, last = bytearray([1, 7, int(flexbuffers.Type.INT) << 2]), 1
    for _ in range(40):
        size_at = len(data)
        data.append(10)
        start = len(data)
        data += bytes(start + i - last for i in range(10))
        data += bytes([int(flexbuffers.Type.VECTOR) << 2] * 10)
        last = start
        assert size_at + 1 == start
    data += bytes([len(data) - last, int(flexbuffers.Type.VECTOR) << 2, 1])
    with pytest.raises(BudgetExceeded, match="asks for 16385 option values"):
        flexbuffer(bytes(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "leaves the buffer"),
        (b"\x01\x04", "a root of 4 bytes"),
        (b"\x01\x04\x03", "a root of 3 bytes"),
        (b"\x01\xfc\x01", "type 63"),
        (b"\x05\x14\x01", "leaves the buffer"),
        (b"\x09\x00\x01\x14\x01", "9 elements that leave the buffer"),
        (b"ab\x02\x10\x01", "a key without an end"),
        (b"\x00\x00\x0c\x01", "a number of 1 bytes"),
    ],
)
def test_damage_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        flexbuffer(data)


@pytest.mark.parametrize("data", [dumped({"offset": 1.0}), b"\x00\x01\x02\x03", None])
def test_operator_view_has_the_options(data: bytes | None) -> None:
    model = read_model(one_op_model("Own", [T((2,))], [T((2,))], data))
    view = operator_view(model, 0, 0, tensor_views(model, 0))
    assert view.options == custom_options(data or b"")
