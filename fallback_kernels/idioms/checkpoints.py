"""TensorFlow's checkpoints: of one file, and of an index beside files of data.

Both hold tensors by name, each as a whole or as slices. Nothing is compressed. Numbers are stored
with the low bytes first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.crc32c import masked_crc32c
from tflite_ort.fallback_kernels.idioms.sorted_tables import (
    Table,
    as_varint,
    read_varint,
    table_of,
)
from tflite_ort.schema import KernelError, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, type_of
from tflite_ort.schema.file.flex_table import TENSOR_TYPES, TYPE_NAMES, TYPE_NUMBERS
from tflite_ort.schema.file.wire import Message

Array = npt.NDArray[Any]
# (start, length) along each axis; a length of -1 is the whole axis.
Slice = tuple[tuple[int, int], ...]
_NAMES = {type: name for name, type in TENSOR_TYPES.items()}
_DIMENSIONS = 64
_VERSION = 1


@record(eq=False)
class Part:
    """A tensor, or a slice of one, with its name.

    Args:
        shape: of the whole tensor.
        where: the slice; None for the whole.
    """

    name: bytes
    array: Array
    shape: tuple[int, ...]
    where: Slice | None = None


def part(name: bytes, array: Array, told: bytes) -> Part:
    """An array with what is told of it: nothing, or such as ``4 3 1,2:-``.

    Raises:
        KernelError: this tells another shape.
    """
    if not told:
        return Part(name, array, array.shape)
    shape, where = told_slice(told)
    if _sizes(shape, where) != array.shape:
        raise KernelError(f"an array of shape {array.shape} as {told!r}")
    return Part(name, array, shape, where)


def told_slice(told: bytes) -> tuple[tuple[int, ...], Slice]:
    """The shape of a tensor and a slice of it, as a text tells them.

    Raises:
        KernelError: it tells none.
    """
    *sizes, text = told.decode("ascii", "replace").split(" ")
    where = []
    try:
        shape = tuple(map(int, sizes))
        for each in text.split(":") if text else ():
            start, _, length = each.partition(",")
            where.append((0, -1) if each == "-" else (int(start), int(length)))
        _check_inside(shape, tuple(where))
    except ValueError:
        raise KernelError(f"{told!r} tells no shape and slice") from None
    return shape, tuple(where)


def _check_inside(shape: Sequence[int], where: Slice) -> None:
    if len(shape) != len(where) or len(shape) > _DIMENSIONS or any(size < 0 for size in shape):
        raise ValueError(f"a slice {where} of {shape}")
    for size, (start, length) in zip(shape, where, strict=True):
        if (start, length) != (0, -1) and not (start >= 0 and 0 <= length <= size - start):
            raise ValueError(f"a slice {where} of {shape}")


def _sizes(shape: Sequence[int], where: Slice) -> tuple[int, ...]:
    return tuple(size if n < 0 else n for size, (_, n) in zip(shape, where, strict=True))


def cells(where: Slice) -> tuple[slice, ...]:
    """The cells of a slice."""
    return tuple(slice(None) if n < 0 else slice(start, start + n) for start, n in where)


# Messages ---------------------------------------------------------------------------------------


def _field(field: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return as_varint(field << 3) + as_varint(content % 2**64)
    return as_varint(field << 3 | 2) + as_varint(len(content)) + content


def _shape(shape: Iterable[int]) -> bytes:
    return b"".join(_field(2, _field(1, size) if size else b"") for size in shape)


def _slice(where: Slice) -> bytes:
    extents = []
    for start, length in where:
        content = _field(1, start) if start else b""
        extents.append(_field(1, content + _field(2, length) if length >= 0 else b""))
    return b"".join(extents)


def _read_shape(message: Message) -> tuple[int, ...]:
    return message.messages(2, lambda size: size.integer(1))


def _read_slice(message: Message) -> Slice:
    return message.messages(1, lambda each: (each.integer(1), each.integer(2) if 2 in each else -1))


def _key(name: bytes, where: Slice) -> bytes:
    """Where a slice stands in a table: an order of bytes that is that of its numbers."""
    escaped = name.replace(b"\xff", b"\xff\x00").replace(b"\x00", b"\x00\xff")
    count = bytes([1, len(where)]) if where else b"\0"
    return b"\0" + escaped + b"\0\1" + count + b"".join(_signed(n) for pair in where for n in pair)


def _signed(value: int) -> bytes:
    """A number whose first bits tell how many bytes it has."""
    magnitude = ~value if value < 0 else value
    length = max((magnitude.bit_length() + 7) // 7, 1)
    content = bytearray((value % 2**80).to_bytes(10, "big")[-length:])
    header = ((1 << 16) - (1 << (16 - length))) & 0xFFFF
    content[0] ^= header >> 8
    if length > 1:
        content[1] ^= header & 0xFF
    return bytes(content)


def _dtype_name(array: Array) -> str:
    type = type_of(array.dtype)
    if type is None or type not in _NAMES:
        raise KernelError(f"no checkpoint has {array.dtype}")
    return _NAMES[type]


def _malformed(name: str) -> Callable[[str], Any]:
    return lambda reason: KernelError(f"{name} is damaged: {reason}")


def _tensor_type(value: int, name: str) -> TensorType:
    found = TENSOR_TYPES.get(TYPE_NAMES.get(value, ""))
    if found is None:
        raise KernelError(f"{name} holds TensorFlow's type {value}")
    return found


# Of one file ------------------------------------------------------------------------------------

# The field of a TensorProto that has the values of a type.
_VALUES = dict.fromkeys(("int32", "uint8", "int16", "int8", "uint16"), 7)
_VALUES.update(float=5, double=6, string=8, complex64=9, int64=10, bool=11, complex128=12, half=13)


def one_file(parts: Sequence[Part]) -> bytes:
    """A checkpoint of one file.

    Raises:
        KernelError: it has no tensors of a type.
    """
    metas: dict[bytes, tuple[Part, list[Slice]]] = {}
    table = {}
    for each in parts:
        where = each.where or ((0, -1),) * len(each.shape)
        metas.setdefault(each.name, (each, []))[1].append(where)
        data = _field(1, each.name) + _field(2, _slice(where)) + _field(3, _tensor(each.array))
        table[_key(each.name, where)] = _field(2, data)
    content = b"".join(_field(1, _meta(*metas[name])) for name in sorted(metas))
    table[b""] = _field(1, content + _field(2, _field(1, _VERSION)))
    return table_of(table)


def _meta(first: Part, slices: Sequence[Slice]) -> bytes:
    type = TYPE_NUMBERS[_dtype_name(first.array)]
    content = _field(1, first.name) + _field(2, _shape(first.shape)) + _field(3, type)
    return content + b"".join(_field(4, _slice(each)) for each in slices)


def _tensor(array: Array) -> bytes:
    """A TensorProto with the values alone."""
    name = _dtype_name(array)
    field = _VALUES.get(name)
    if field is None:
        raise KernelError(f"a checkpoint of one file has no tensors of {name}")
    if not array.size:
        return b""
    if name == "string":
        return b"".join(_field(field, bytes(text)) for text in array.reshape(-1))
    if array.dtype.kind in "fc" and name != "half":
        return _field(field, _little(array))
    whole = array.view(np.uint16) if name == "half" else array
    return _field(field, b"".join(as_varint(n % 2**64) for n in whole.reshape(-1).tolist()))


def read_one_file(table: Table, name: str) -> dict[bytes, Callable[[], Array]]:
    """What makes each tensor of a checkpoint of one file."""
    whole = Message(table.get(b"") or b"", _malformed(name)).message(1)
    found: dict[bytes, Callable[[], Array]] = {}

    def tensor(meta: Message) -> None:
        key, shape = meta.blob(1), _read_shape(meta.message(2))
        type, slices = meta.integer(3), meta.messages(4, _read_slice)

        def made() -> Array:
            dtype = NUMPY_DTYPE[_tensor_type(type, name)]
            parts = [(where, _stored(table, key, where, type, name)) for where in slices]
            return _assembled(shape, dtype, parts, name)

        found[key] = made

    whole.messages(1, tensor)
    return found


def _stored(table: Table, key: bytes, where: Slice, type: int, name: str) -> Array:
    """The values of a slice, in a line."""
    value = table.get(_key(key, where))
    if value is None:
        raise KernelError(f"{name} is damaged: a slice of {key!r} is missing")
    data, kind = Message(value, _malformed(name)).message(2).message(3), TYPE_NAMES.get(type, "")
    dtype, field = NUMPY_DTYPE[_tensor_type(type, name)], _VALUES.get(kind)
    if field is None:
        raise KernelError(f"{name} holds {kind} tensors, which a checkpoint of one file has not")
    if kind == "string":
        return _texts(data.blobs(field))
    if kind == "half":
        return np.array(data.integers(field), np.uint64).astype(np.uint16).view(dtype)
    if dtype.kind in "fc":
        values = data.floats(field) if kind in ("float", "complex64") else data.doubles(field)
        return values[: len(values) // 2 * 2].view(dtype) if dtype.kind == "c" else values
    return np.array(data.integers(field), np.uint64).astype(dtype)


def _texts(values: Sequence[bytes]) -> Array:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


def _assembled(
    shape: tuple[int, ...], dtype: np.dtype[Any], parts: Sequence[tuple[Slice, Array]], name: str
) -> Array:
    """A tensor of slices, which have to be all of it."""
    total = 0
    for where, values in parts:
        try:
            _check_inside(shape, where)
        except ValueError as error:
            raise KernelError(f"{name} is damaged: {error}") from None
        total += values.size
        if prod(_sizes(shape, where)) != values.size:
            raise KernelError(f"{name} is damaged: {values.size} values of a slice {where}")
    if total != prod(shape) or any(size < 0 for size in shape):
        raise KernelError(f"{name} holds {total} values of a tensor of {shape}")
    result, free = np.empty(shape, dtype), np.ones(shape, np.bool_)
    for where, values in parts:
        place = cells(where)
        if not free[place].all():
            raise KernelError(f"{name} holds slices that overlap")
        free[place] = False
        result[place] = values.reshape(_sizes(shape, where))
    return result


# An index beside files of data ------------------------------------------------------------------


@record(eq=False)
class Entry:
    """Where a tensor is, as an index tells.

    Args:
        slices: where it is stored as slices, which have entries of their own.
    """

    type: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[Slice, ...]

    def written(self, shards_before: int = 0) -> bytes:
        """The message of it."""
        numbers = (3, self.shard + shards_before), (4, self.offset), (5, self.size)
        content = _field(1, self.type) + _field(2, _shape(self.shape))
        content += b"".join(_field(field, value) for field, value in numbers if value)
        if self.checksum:
            content += as_varint(6 << 3 | 5) + struct.pack("<I", self.checksum)
        return content + b"".join(_field(7, _slice(each)) for each in self.slices)


def indexed(parts: Sequence[Part]) -> tuple[bytes, bytes]:
    """The index of a checkpoint, and its data."""
    entries: dict[bytes, Entry] = {}
    data = bytearray()
    for each in parts:
        content, type = _content(each.array), TYPE_NUMBERS[_dtype_name(each.array)]
        place = (0, len(data), len(content), _checksum(each.array, content))
        data += content
        if each.where is None:
            entries[each.name] = Entry(type, each.shape, *place, ())
            continue
        before = entries.get(each.name)
        slices = (*(before.slices if before else ()), each.where)
        entries[each.name] = Entry(type, each.shape, 0, 0, 0, 0, slices)
        entries[_key(each.name, each.where)] = Entry(type, each.array.shape, *place, ())
    return index_of({key: entry.written() for key, entry in entries.items()}, 1), bytes(data)


def index_of(entries: Mapping[bytes, bytes], shards: int) -> bytes:
    """An index of these messages."""
    header = _field(1, shards) + _field(3, _field(1, _VERSION))
    return table_of({b"": header, **entries})


def read_index(content: bytes, name: str) -> tuple[dict[bytes, Entry], int]:
    """What an index tells, and how many files of data there are."""
    table, malformed = dict(Table.of(content, name).items()), _malformed(name)
    header = Message(table.pop(b"", b""), malformed)
    if header.integer(2):
        raise KernelError(f"{name} has numbers with the high bytes first, which are not read here")
    return {key: _entry(Message(value, malformed)) for key, value in table.items()}, max(
        header.integer(1), 0
    )


def _entry(message: Message) -> Entry:
    type, shard, offset, size = (message.integer(field) for field in (1, 3, 4, 5))
    shape, slices = _read_shape(message.message(2)), message.messages(7, _read_slice)
    return Entry(type, shape, shard, offset, size, message.fixed(6), slices)


def whole(
    key: bytes, entries: Mapping[bytes, Entry], data: Callable[[Entry], bytes], name: str
) -> Array:
    """A tensor of a checkpoint.

    Args:
        data: reads the bytes of an entry.
    """
    entry = entries[key]
    if not entry.slices:
        return _values(entry, data(entry), name).reshape(entry.shape)
    parts = []
    for where in entry.slices:
        held = entries.get(_key(key, where))
        if held is None or held.slices or held.type != entry.type:
            raise KernelError(f"{name} is damaged: a slice of {key!r} is missing")
        parts.append((where, _values(held, data(held), name)))
    return _assembled(entry.shape, NUMPY_DTYPE[_tensor_type(entry.type, name)], parts, name)


def _content(array: Array) -> bytes:
    """The bytes of an array: of texts their lengths, a checksum of these, and then the texts."""
    if array.dtype != object:
        return _little(array)
    parts = [bytes(text) for text in array.reshape(-1)]
    checksum = struct.pack("<I", masked_crc32c(_lengths(parts)))
    return b"".join(as_varint(len(part)) for part in parts) + checksum + b"".join(parts)


def _lengths(parts: Sequence[bytes]) -> bytes:
    """Lengths as they count in a checksum."""
    return b"".join(struct.pack("<I" if len(p) < 2**32 else "<Q", len(p)) for p in parts)


def _checksum(array: Array, content: bytes) -> int:
    if array.dtype != object:
        return masked_crc32c(content)
    parts = [bytes(text) for text in array.reshape(-1)]
    return masked_crc32c(_lengths(parts) + content[sum(len(as_varint(len(p))) for p in parts) :])


def _values(entry: Entry, content: bytes, name: str) -> Array:
    """The values of an entry, in a line."""
    dtype, count = NUMPY_DTYPE[_tensor_type(entry.type, name)], prod(entry.shape)
    if any(size < 0 for size in entry.shape) or count > max(len(content), 0):
        raise KernelError(f"{name} is damaged: {len(content)} bytes of a tensor of {entry.shape}")
    if dtype.hasobject:
        array = _read_texts(content, count, name)
    elif len(content) == count * dtype.itemsize:
        array = np.frombuffer(content, f"V{dtype.itemsize}").view(dtype)
    else:
        raise KernelError(f"{name} is damaged: {len(content)} bytes of a tensor of {entry.shape}")
    if entry.checksum and _checksum(array, content) != entry.checksum:
        raise KernelError(f"{name} is damaged: the checksum of a tensor does not fit")
    return array.copy()


def _read_texts(content: bytes, count: int, name: str) -> Array:
    lengths, at = [], 0
    for _ in range(count):
        length, at = read_varint(content, at, name)
        lengths.append(length)
    at += 4
    if at + sum(lengths) != len(content):
        raise KernelError(f"{name} is damaged: texts of {sum(lengths)} bytes in {len(content)}")
    parts = []
    for length in lengths:
        parts.append(content[at : at + length])
        at += length
    return _texts(parts)


def _little(array: Array) -> bytes:
    """The bytes of numbers, the low ones first."""
    order = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
    return array.astype(order).tobytes()
