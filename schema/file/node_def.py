"""TensorFlow's node of a Flex operator: the vector [name, NodeDef] that its custom options are.

A NodeDef is a protocol buffer. It is read whole, and nothing of it is evaluated. What it holds is
no larger than a few times its bytes, but for a constant of few values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers import flexbuffers

from tflite_ort.base.records import record
from tflite_ort.schema.file.custom_options import flexbuffer
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import TENSOR_TYPES, TYPE_NAMES, TYPE_NUMBERS
from tflite_ort.schema.file.wire import Message, field

Array = npt.NDArray[Any]
# A value: str (text that is not UTF-8 with surrogates), int, float, bool; the name of a type; a
# shape with -1 for a size that is open, None for one of any rank; an array; a `Function`; a tuple
# of these.
Value = Any

# Fields of a NodeDef, of an entry of its map, and of a shape.
_NAME, _OP, _INPUT, _DEVICE, _ATTRIBUTES = 1, 2, 3, 4, 5
_KEY, _VALUE = 1, 2
_DIMENSIONS, _SIZE, _UNKNOWN_RANK = 2, 1, 3
# Of a function's name and its attributes.
_FUNCTION_NAME, _FUNCTION_ATTRIBUTES = 1, 2
# Functions in functions: TensorFlow's nest one or two deep.
_DEPTH = 8
# Of a tensor of one value for all elements.
_MOST_ELEMENTS = 1 << 20


@record(eq=False)
class Function:
    """The function that an attribute names, with the attributes that it is given."""

    name: str
    attributes: Mapping[str, Value]


@record(eq=False)
class NodeDef:
    """A node.

    Args:
        attributes: (kind, value) by name; the kind is such as ``int``, ``list(type)``, and
            ``list()`` of a list without elements.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    device: str
    attributes: Mapping[str, tuple[str, Value]]


def node_def(options: bytes, label: str) -> NodeDef:
    """The node that the custom options of a Flex operator hold.

    Args:
        label: of the operator, for errors.

    Raises:
        ModelError: they hold no node; says what is wrong.
    """
    malformed = partial(_malformed, label)
    vector = flexbuffer(options)
    if not isinstance(vector, list) or len(vector) != 2:
        raise malformed("the options are not a name and a node")
    name, content = vector
    # What happens to be text is decoded as text.
    content = content.encode() if isinstance(content, str) else content
    if not isinstance(content, bytes):
        raise malformed("the second of the options is not a node")
    node = Message(content, malformed)
    if node.text(_OP) != name:
        raise malformed(f"the node is not of operator {name!r}")
    return NodeDef(
        node.text(_OP),
        node.text(_NAME),
        node.texts(_INPUT),
        node.text(_DEVICE),
        _attributes(node, _ATTRIBUTES, malformed),
    )


def node_options(name: str, attributes: Mapping[str, tuple[str, Value]]) -> bytes:
    """Custom options with a node of operator `name`, with (kind, value) of types and bools."""
    parts = [
        field(_ATTRIBUTES, field(_KEY, key.encode()) + field(_VALUE, _WRITTEN[kind](value)))
        for key, (kind, value) in attributes.items()
    ]
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(name)
        builder.Blob(b"".join([field(_OP, name.encode()), *parts]))
    return bytes(builder.Finish())


_WRITTEN: Mapping[str, Callable[[Any], bytes]] = {
    "type": lambda value: field(6, TYPE_NUMBERS[value]),
    "bool": lambda value: field(5, int(value)),
}


def _malformed(label: str, reason: str) -> ModelError:
    return ModelError(f"{label}: {reason}")


def _attributes(
    message: Message, number: int, malformed: Callable[[str], ModelError], depth: int = 0
) -> dict[str, tuple[str, Value]]:
    if depth > _DEPTH:
        raise malformed(f"functions nested more than {_DEPTH} deep in a node")

    def entry(each: Message) -> tuple[str, tuple[str, Value]]:
        return each.text(_KEY), _value(each.message(_VALUE), malformed, depth)

    return dict(message.messages(number, entry))


def _value(
    message: Message, malformed: Callable[[str], ModelError], depth: int
) -> tuple[str, Value]:
    """The kind and the value of an attribute; the kind of one without a value is empty."""
    if 1 in message:
        items = message.message(1)
        for kind, number, read in _LISTS:
            if number in items:
                return f"list({kind})", read(items, number, malformed)
        if 9 in items:
            functions = items.messages(9, partial(_function, malformed=malformed, depth=depth))
            return "list(func)", functions
        return "list()", ()
    for kind, number, read in _SINGLE:
        if number in message:
            return kind, read(message, number, malformed)
    if 10 in message:
        return "func", _function(message.message(10), malformed, depth)
    return "", None


def _function(message: Message, malformed: Callable[[str], ModelError], depth: int) -> Function:
    attributes = _attributes(message, _FUNCTION_ATTRIBUTES, malformed, depth + 1)
    return Function(message.text(_FUNCTION_NAME), attributes)


def _text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")


def _type(number: int, malformed: Callable[[str], ModelError]) -> str:
    if number not in TYPE_NAMES:
        raise malformed(f"TensorFlow's element type {number} is not known")
    return TYPE_NAMES[number]


def _shape(message: Message) -> tuple[int, ...] | None:
    if message.integer(_UNKNOWN_RANK):
        return None
    return message.messages(_DIMENSIONS, lambda each: max(each.integer(_SIZE), -1))


def _tensor(message: Message, malformed: Callable[[str], ModelError]) -> Array:
    """A TensorProto: its bytes, or a list of values of which the last one is repeated."""
    name, shape = _type(message.integer(1), malformed), _shape(message.message(2))
    type = TENSOR_TYPES.get(name)
    if type is None or type in (TensorType.RESOURCE, TensorType.VARIANT):
        raise malformed(f"a constant of type {name} in a node")
    if shape is None or -1 in shape:
        raise malformed("a constant without a shape in a node")
    dtype, count, content = NUMPY_DTYPE[type], math.prod(shape), message.blob(4)
    if content and type is not TensorType.STRING:
        if len(content) != count * dtype.itemsize:
            raise malformed(f"a constant of shape {shape} has {len(content)} bytes in a node")
        return np.frombuffer(content, dtype).reshape(shape)
    values = _listed(message, type)
    if count > max(_MOST_ELEMENTS, len(values)) or len(values) > count:
        raise malformed(f"a constant of shape {shape} has {len(values)} values in a node")
    array = np.full(count, b"" if dtype.hasobject else 0, dtype)
    if len(values):
        array[: len(values)] = values
        array[len(values) :] = values[-1:]
    return array.reshape(shape)


def _listed(message: Message, type: TensorType) -> Array:
    """The values of a constant that are listed one by one."""
    dtype = NUMPY_DTYPE[type]
    if type is TensorType.STRING:
        texts = np.empty(len(message.blobs(8)), object)
        texts[:] = message.blobs(8)
        return texts
    if type in (TensorType.FLOAT32, TensorType.COMPLEX64):
        floats = message.floats(5 if type is TensorType.FLOAT32 else 9)
        return floats if type is TensorType.FLOAT32 else floats[: len(floats) // 2 * 2].view(dtype)
    if type in (TensorType.FLOAT64, TensorType.COMPLEX128):
        doubles = message.doubles(6 if type is TensorType.FLOAT64 else 12)
        return doubles[: len(doubles) // 2 * 2].view(dtype) if dtype.kind == "c" else doubles
    if type in (TensorType.FLOAT16, TensorType.BFLOAT16):
        return _integers(message, 13, np.uint16).view(dtype)
    number = {TensorType.INT64: 10, TensorType.BOOL: 11}.get(type)
    number = number or {TensorType.UINT32: 16, TensorType.UINT64: 17}.get(type, 7)
    return _integers(message, number, np.uint64).astype(dtype)


def _integers(message: Message, number: int, dtype: npt.DTypeLike) -> Array:
    bits = np.dtype(dtype).itemsize * 8
    return np.array([value % (1 << bits) for value in message.integers(number)], dtype)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


# Kind, field, and what reads it.
_SINGLE: tuple[tuple[str, int, Callable[[Message, int, Any], Value]], ...] = (
    ("string", 2, lambda m, n, _: _text(m.blob(n))),
    ("int", 3, lambda m, n, _: m.integer(n)),
    ("float", 4, lambda m, n, _: m.float(n)),
    ("bool", 5, lambda m, n, _: bool(m.integer(n))),
    ("type", 6, lambda m, n, bad: _type(m.integer(n), bad)),
    ("shape", 7, lambda m, n, _: _shape(m.message(n))),
    ("tensor", 8, lambda m, n, bad: _tensor(m.message(n), bad)),
)
_LISTS: tuple[tuple[str, int, Callable[[Message, int, Any], Value]], ...] = (
    ("string", 2, lambda m, n, _: tuple(map(_text, m.blobs(n)))),
    ("int", 3, lambda m, n, _: tuple(map(_signed, m.integers(n)))),
    ("float", 4, lambda m, n, _: tuple(m.floats(n).tolist())),
    ("bool", 5, lambda m, n, _: tuple(map(bool, m.integers(n)))),
    ("type", 6, lambda m, n, bad: tuple(_type(each, bad) for each in m.integers(n))),
    ("shape", 7, lambda m, n, _: m.messages(n, _shape)),
    ("tensor", 8, lambda m, n, bad: m.messages(n, partial(_tensor, malformed=bad))),
)
