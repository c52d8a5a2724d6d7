"""TensorFlow's node of a Flex operator: the vector [name, NodeDef] that its options are.

A NodeDef is a protocol buffer; only its attributes are read, field by field, nothing is evaluated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tflite_ort.optional import late
from tflite_ort.records import replace
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.options import CumsumOptions, StridedSliceOptions
from tflite_ort.schema.values.view import OperatorView

if TYPE_CHECKING:
    from tflite_ort.schema.file import custom_options
else:
    custom_options = late("tflite_ort.schema.file.custom_options")

Attributes = Mapping[str, Any]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Fields of a NodeDef, of an entry of its map, and of an attribute's value.
_OP, _ATTRIBUTES = 2, 5
_KEY, _VALUE = 1, 2
_TEXT, _INT, _FLOAT, _BOOL, _TYPE = 2, 3, 4, 5, 6


def node_attributes(op: OperatorView[Any]) -> Attributes:
    """The attributes of the node of `op`: bytes, int, float or bool by name; other kinds are left
    out."""
    data = b"" if op.custom_options is None else op.custom_options.tobytes()
    options = custom_options.flexbuffer(data)
    if not isinstance(options, list) or len(options) != 2:
        raise ModelError(f"{op.label}: the options are not a name and a node")
    name, node = options
    # What happens to be text is decoded as text.
    fields = list(_fields(node.encode() if isinstance(node, str) else node, op.label))
    if name not in [_decoded(value, op.label) for number, value in fields if number == _OP]:
        raise ModelError(f"{op.label}: the node is not of operator {name!r}")
    attributes: dict[str, Any] = {}
    for number, entry in fields:
        if number == _ATTRIBUTES:
            parts = dict(_fields(entry, op.label))
            key = _decoded(parts.get(_KEY, b""), op.label)
            attributes.update(_attribute(key, parts.get(_VALUE, b""), op.label))
    return attributes


def _attribute(name: str, data: Any, label: str) -> Attributes:
    for number, value in _fields(data, label):
        if number in (_TEXT, _TYPE):
            return {name: value}
        if number == _INT:
            return {name: value - 2**64 if value >= 2**63 else value}
        if number == _FLOAT and isinstance(value, bytes) and len(value) == 4:
            return {name: struct.unpack("<f", value)[0]}
        if number == _BOOL:
            return {name: bool(value)}
    return {}


def _fields(data: Any, label: str) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a message: an int, or the bytes of any other kind."""
    if not isinstance(data, bytes):
        raise ModelError(f"{label}: a part of the node is not a message")
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, label)
        kind, size = tag & 7, {_FIXED64: 8, _FIXED32: 4}.get(tag & 7)
        if kind == _VARINT:
            value, at = _varint(data, at, label)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at, label)
        if size is None or at + size > len(data):
            raise ModelError(f"{label}: the node is damaged at byte {at}")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int, label: str) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte, at = data[at], at + 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ModelError(f"{label}: the node is damaged at byte {at}")


def _decoded(text: Any, label: str) -> str:
    try:
        return bytes.decode(text)
    except (TypeError, UnicodeDecodeError) as error:
        raise ModelError(f"{label}: a name in the node is {text!r}") from error


def _strided_slice(attributes: Attributes) -> StridedSliceOptions:
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return StridedSliceOptions(**{mask: attributes.get(mask, 0) for mask in masks}, offset=False)


def _cumsum(attributes: Attributes) -> CumsumOptions:
    return CumsumOptions(
        exclusive=attributes.get("exclusive", False), reverse=attributes.get("reverse", False)
    )


# TensorFlow operators that are TFLite's under another name, and those of them with options.
SAME_AS_BUILTIN: dict[str, Op] = {
    "AddV2": Op.ADD,
    "Cumsum": Op.CUMSUM,
    "Maximum": Op.MAXIMUM,
    "Minimum": Op.MINIMUM,
    "Mul": Op.MUL,
    "RealDiv": Op.DIV,
    "StridedSlice": Op.STRIDED_SLICE,
    "Sub": Op.SUB,
}
_OPTIONS: dict[Op, Callable[[Attributes], Any]] = {
    Op.CUMSUM: _cumsum,
    Op.STRIDED_SLICE: _strided_slice,
}


def as_builtin(op: OperatorView[Any]) -> OperatorView[Any]:
    """A Flex operator of `SAME_AS_BUILTIN` as version 1 of TFLite's own."""
    builtin, attributes = SAME_AS_BUILTIN[op.name.removeprefix("Flex")], node_attributes(op)
    make = _OPTIONS.get(builtin)
    options = options_of(builtin, None) if make is None else make(attributes)
    return replace(op, op=builtin, custom_code=None, version=1, options=options)
