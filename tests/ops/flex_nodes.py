"""Custom options of TensorFlow's operators: nodes, written as protocol buffers in a flexbuffer."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from tests.one_op import T
from tests.ops.custom_op import custom_model

Attributes = Mapping[str, Any]


def varint(number: int) -> bytes:
    number %= 2**64
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(value: bytes | bool | int | float) -> bytes:
    match value:
        case bytes():
            return field(2, value)
        case bool():
            return varint(5 << 3) + varint(value)
        case int():
            return varint(3 << 3) + varint(value)
    return varint(4 << 3 | 5) + struct.pack("<f", value)


def flex_options(name: str, attributes: Attributes) -> bytes:
    """The flexbuffer vector [name, NodeDef]. The node has an input and a device too."""
    entries = [
        field(5, field(1, key.encode()) + field(2, attribute(value)))
        for key, value in attributes.items()
    ]
    fields = [(1, b"scope/node"), (2, name.encode()), (3, b"x"), (4, b"/device:CPU:0")]
    node = b"".join([*(field(*part) for part in fields), *entries])
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(name)
        builder.Blob(node)
    return bytes(builder.Finish())


def flex_model(name: str, inputs: list[T], outputs: list[T], **attributes: Any) -> bytes:
    return custom_model(f"Flex{name}", inputs, outputs, flex_options(name, attributes))
