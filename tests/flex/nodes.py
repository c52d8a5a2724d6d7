"""Custom options of TensorFlow's operators: nodes, written as protocol buffers in a flexbuffer."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from tests.one_op import T
from tests.ops.custom_op import custom_model
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES, TYPE_NUMBERS, flex_operator

Attributes = Mapping[str, Any]


class _Octets(bytes):
    """Bytes that a builder of flexbuffers writes as a text, as TensorFlow's converter does."""

    def encode(self, *_: object) -> bytes:
        return bytes(self)


def varint(number: int) -> bytes:
    number %= 2**64
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(value: str | bytes | bool | int | float) -> bytes:
    match value:
        case str():
            return field(2, value.encode())
        case bytes():
            return field(2, value)
        case bool():
            return varint(5 << 3) + varint(value)
        case int():
            return varint(3 << 3) + varint(value)
    return varint(4 << 3 | 5) + struct.pack("<f", value)


def shape(sizes: Sequence[int] | None) -> bytes:
    """A TensorShapeProto."""
    if sizes is None:
        return varint(3 << 3) + varint(1)
    return b"".join(field(2, varint(1 << 3) + varint(size)) for size in sizes)


def tensor(values: Any) -> bytes:
    """A TensorProto with the bytes of an array."""
    array = np.asarray(values)
    names = {type: name for name, type in TENSOR_TYPES.items()}
    number = TYPE_NUMBERS[names[tensor_type(array.dtype)]]
    return (
        varint(1 << 3) + varint(number) + field(2, shape(array.shape)) + field(4, array.tobytes())
    )


def typed_attribute(kind: str, value: Any) -> bytes:
    """An AttrValue of a kind of the table."""
    if kind.startswith("list("):
        items = b"".join(typed_attribute(kind[5:-1], each) for each in value)
        return field(1, items)
    match kind:
        case "string":
            return field(2, value.encode() if isinstance(value, str) else value)
        case "int":
            return varint(3 << 3) + varint(int(value))
        case "float":
            return varint(4 << 3 | 5) + struct.pack("<f", value)
        case "bool":
            return varint(5 << 3) + varint(bool(value))
        case "type":
            return varint(6 << 3) + varint(TYPE_NUMBERS[value])
        case "shape":
            return field(7, shape(value))
        case "tensor":
            return field(8, tensor(value))
    return field(10 if kind == "func" else 9, field(1, value.encode()))


def wrapped(name: str, entries: Mapping[str, bytes]) -> bytes:
    """The flexbuffer vector [name, NodeDef]. The node has an input and a device too."""
    parts = [field(5, field(1, key.encode()) + field(2, value)) for key, value in entries.items()]
    fields = [(1, b"scope/node"), (2, name.encode())]
    node = b"".join([*(field(*part) for part in fields), *parts])
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(name)
        builder.String(_Octets(node))
    return bytes(builder.Finish())


def flex_options(name: str, attributes: Attributes) -> bytes:
    """Options with attributes of the kind that their values have."""
    return wrapped(name, {key: attribute(value) for key, value in attributes.items()})


def declared_options(name: str, attributes: Attributes) -> bytes:
    """Options with attributes of the kinds of the table."""
    operator = flex_operator(name)
    assert operator is not None, name
    kinds = {key: each.type for key, each in operator.attributes.items()}
    return wrapped(name, {key: typed_attribute(kinds[key], v) for key, v in attributes.items()})


def flex_model(name: str, inputs: list[T], outputs: list[T], **attributes: Any) -> bytes:
    """A model of one operator; attributes that the types of the tensors tell are added."""
    given = {**told_by(name, inputs, outputs), **attributes}
    return custom_model(f"Flex{name}", inputs, outputs, declared_options(name, given))


def told_by(name: str, inputs: Sequence[T], outputs: Sequence[T]) -> dict[str, Any]:
    """The attributes that the types and the number of tensors tell, as far as each input and output
    but one is a single tensor."""
    operator = flex_operator(name)
    assert operator is not None, name
    names = {type: key for key, type in TENSOR_TYPES.items()}
    told: dict[str, Any] = {}
    for arguments, tensors in ((operator.inputs, inputs), (operator.outputs, outputs)):
        several = len(tensors) - sum(each.is_single for each in arguments)
        at = 0
        for each in arguments:
            count = 1 if each.is_single else several
            part = [names[tensor.type] for tensor in tensors[at : at + count]]
            at += count
            if each.count:
                told[each.count] = count
            if each.is_attribute and (part or each.is_list):
                told[each.type] = part if each.is_list else part[0]
    return told
