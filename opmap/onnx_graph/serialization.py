"""ONNX models as bytes, in the encoding of protocol buffers.

A field is a key (its number in onnx.proto and how it is encoded) and a value: an integer of 7 bits
a byte, four bytes, or a length and so many bytes. These three forms are all that ONNX takes. The
bytes are those that the `onnx` package writes for the same model; without it a process starts
sooner, and weights are copied once.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph import ir

# Parts of the encoded model. Large weights stay where they are until the parts are joined.
Part = bytes | memoryview

_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_EXTERNAL = 1  # DataLocation
# AttributeProto.AttributeType
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)

# The fields of a TensorProto for integers, and up to how many bytes they are tried.
_INTEGERS = {ir.DataType.INT32: 5, ir.DataType.INT64: 7}
_MOST_SMALL = 1 << 14

# Longer lists are not kept; paddings have two numbers for each dimension.
_FEW = 16

_NOWHERE: Mapping[str, Place] = MappingProxyType({})


@record
class Place:
    """Where the bytes of an initializer are that is written without them.

    Args:
        location: the path of a file beside the model, or a name that its reader knows.
        offset: the place there, in bytes.
    """

    location: str
    offset: int


def serialized(
    model: ir.Model,
    *,
    external: Mapping[str, Place] = _NOWHERE,
    fed: Collection[str] = (),
    small: bool = False,
) -> bytes:
    """`model` as a ModelProto.

    Args:
        external: by name, initializers whose bytes are elsewhere.
        fed: names of initializers that become inputs of the graph.
        small: integers take as many bytes as they need, which takes longer to write.
    """
    graph = _graph(model.graph, _Texts(), external, fed, small)
    opsets = model.opset_imports.items()
    return b"".join(
        (
            _int(1, model.ir_version),
            *[_text(number, text) for number, text in _model_texts(model) if text],
            _sized(7, sum(map(len, graph))),
            *graph,
            *[_opset(domain, version) for domain, version in opsets],
            *[_entry(14, key, value) for key, value in sorted(model.metadata_props.items())],
        )
    )


@lru_cache(maxsize=64)
def _opset(domain: str, version: int) -> bytes:
    return _bytes(8, (_text(1, domain) if domain else b"") + _int(2, version))


class _Texts(dict[str, bytes]):
    """Texts as they are written, with their lengths: a name is written wherever it is read."""

    def __missing__(self, text: str) -> bytes:
        encoded = text.encode()
        size = len(encoded)
        self[text] = made = (_SMALL[size] if size < 128 else _varint(size)) + encoded
        return made


def _model_texts(model: ir.Model) -> Iterable[tuple[int, str]]:
    """Texts on the model, by field."""
    return (2, model.producer_name), (3, model.producer_version), (6, model.doc_string)


def _graph(
    graph: ir.Graph,
    texts: _Texts,
    external: Mapping[str, Place] = _NOWHERE,
    fed: Collection[str] = (),
    small: bool = False,
) -> Sequence[Part]:
    outputs = set(map(id, graph.outputs))
    computed = [value for node in graph.nodes for value in node.outputs if value.dtype is not None]
    parts: list[Part] = [_node(node, texts) for node in graph.nodes]
    if graph.name:
        parts.append(_text(2, graph.name))
    for name, value in graph.initializers.items():
        if name not in fed:
            parts += _initializer(name, value, external.get(name), small)
    parts += [_value(11, value, texts) for value in graph.inputs]
    parts += [_value(11, graph.initializers[name], texts) for name in fed]
    parts += [_value(12, value, texts) for value in graph.outputs]
    parts += [_value(13, value, texts) for value in computed if id(value) not in outputs]
    return parts


def _node(node: ir.Node, texts: _Texts) -> bytes:
    """A NodeProto, as a field of its graph."""
    parts = [_INPUT + texts["" if value is None else value.name] for value in node.inputs]
    parts += [_OUTPUT + texts[value.name] for value in node.outputs]
    if node.name:
        parts.append(_NAME + texts[node.name])
    parts.append(_OP_TYPE + texts[node.op_type])
    if node.attributes:
        parts += [_attribute(name, value) for name, value in node.attributes.items()]
    if node.domain:
        parts.append(_text(7, node.domain))
    return _bytes(1, b"".join(parts))


def _attribute(name: str, value: ir.Attribute) -> bytes:
    """An AttributeProto, as a field of its node."""
    if isinstance(value, int):
        return _kept_attribute(name, value)
    if isinstance(value, (list, tuple)) and len(value) <= _FEW and set(map(type, value)) <= {int}:
        return _kept_attribute(name, tuple(value))
    return _new_attribute(name, value)


def _new_attribute(name: str, value: ir.Attribute) -> bytes:
    return _bytes(5, _text(1, name) + _attribute_value(value))


# Layers have the same strides and paddings.
_kept_attribute = lru_cache(maxsize=1024)(_new_attribute)


def _attribute_value(value: ir.Attribute) -> bytes:
    if isinstance(value, int):
        return _int(3, value) + _int(20, _INT)
    if isinstance(value, float):
        return _float(2, value) + _int(20, _FLOAT)
    if isinstance(value, str):
        return _text(4, value) + _int(20, _STRING)
    if isinstance(value, ir.Tensor):
        return _bytes(5, b"".join(_tensor("", value))) + _int(20, _TENSOR)
    if isinstance(value, ir.Graph):
        return _bytes(6, b"".join(_graph(value, _Texts()))) + _int(20, _GRAPH)
    return _attribute_list(value)


def _attribute_list(values: Sequence[int] | Sequence[float] | Sequence[str]) -> bytes:
    parts: list[bytes] = []
    kinds = set()
    for value in values:
        if isinstance(value, int):
            parts.append(_int(8, value))
            kinds.add(_INTS)
        elif isinstance(value, float):
            parts.append(_float(7, value))
            kinds.add(_FLOATS)
        else:
            parts.append(_text(9, value))
            kinds.add(_STRINGS)
    if len(kinds) > 1:
        raise TypeError(f"an attribute of several types: {values!r}")
    return b"".join(parts) + _int(20, kinds.pop() if kinds else _INTS)


def _value(number: int, value: ir.Value, texts: _Texts) -> bytes:
    """A ValueInfoProto, as a field of its graph."""
    name = _NAME_OF_VALUE + texts[value.name]
    content = name if value.dtype is None else name + _type(value.dtype, value.shape)
    return _bytes(number, content)


@lru_cache(maxsize=1024)
def _type(dtype: ir.DataType, shape: ir.Shape | None) -> bytes:
    """The field of a ValueInfoProto that says both."""
    sizes = b"" if shape is None else _bytes(2, b"".join([_bytes(1, _dimension(s)) for s in shape]))
    return _bytes(2, _bytes(1, _int(1, dtype) + sizes))


def _dimension(size: int | str | None) -> bytes:
    if size is None:
        return b""
    return _text(2, size) if isinstance(size, str) else _int(1, size)


def _initializer(name: str, value: ir.Value, place: Place | None, small: bool) -> Iterable[Part]:
    assert value.const_value is not None
    tensor = _tensor(name, value.const_value, place, small)
    return _sized(5, sum(map(len, tensor))), *tensor


def _tensor(
    name: str, tensor: ir.Tensor, place: Place | None = None, small: bool = False
) -> Sequence[Part]:
    """The parts of a TensorProto."""
    kind = _kind(tensor.shape, tensor.dtype)
    title = _text(8, name) if name else b""
    if place is not None:
        return kind, title, _external(place.location, place.offset, tensor.nbytes)
    if tensor.dtype is ir.DataType.STRING:
        return kind, b"".join(_bytes(6, word) for word in tensor.array.reshape(-1)), title
    if small and tensor.dtype in _INTEGERS and 0 < tensor.nbytes <= _MOST_SMALL:
        integers = b"".join(map(_varint, tensor.array.reshape(-1).tolist()))
        if len(integers) < tensor.nbytes:
            return kind, _bytes(_INTEGERS[tensor.dtype], integers), title
    return kind, title, _sized(9, tensor.nbytes), tensor.data()


@lru_cache(maxsize=256)
def _external(location: str, offset: int, length: int) -> bytes:
    """The fields of a TensorProto that say where its bytes are."""
    fields = {"location": location, "offset": offset, "length": length}
    entries = [_entry(13, key, str(value)) for key, value in fields.items()]
    return b"".join(entries) + _int(14, _EXTERNAL)


@lru_cache(maxsize=1024)
def _kind(shape: tuple[int, ...], dtype: ir.DataType) -> bytes:
    """The fields of a TensorProto that say both."""
    return b"".join([_int(1, size) for size in shape]) + _int(2, dtype)


def _entry(number: int, key: str, value: str) -> bytes:
    """A StringStringEntryProto."""
    return _bytes(number, _text(1, key) + _text(2, value))


# Fields --------------------------------------------------------------------------------------


def _int(number: int, value: int) -> bytes:
    return _OF_VARINT[number] + (_SMALL[value] if 0 <= value < 128 else _varint(value))


def _float(number: int, value: float) -> bytes:
    return _OF_FIXED32[number] + struct.pack("<f", value)


def _text(number: int, value: str) -> bytes:
    encoded = value.encode()
    size = len(encoded)
    return _OF_BYTES[number] + (_SMALL[size] if size < 128 else _varint(size)) + encoded


def _bytes(number: int, value: bytes) -> bytes:
    size = len(value)
    return _OF_BYTES[number] + (_SMALL[size] if size < 128 else _varint(size)) + value


def _sized(number: int, size: int) -> bytes:
    """What stands before so many bytes of a field."""
    return _OF_BYTES[number] + _varint(size)


def _varint(value: int) -> bytes:
    """An integer of 64 bits, 7 a byte, the lowest first; a negative one as what it is modulo
    2**64."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL = tuple(bytes([value]) for value in range(128))
# By encoding, the keys of fields by their numbers.
_OF_VARINT, _OF_BYTES, _OF_FIXED32 = (
    tuple([_varint(number << 3 | encoding) for number in range(21)])
    for encoding in (_VARINT, _BYTES, _FIXED32)
)
# Of a NodeProto and a ValueInfoProto.
_INPUT, _OUTPUT, _NAME, _OP_TYPE = _OF_BYTES[1:5]
_NAME_OF_VALUE = _OF_BYTES[1]
