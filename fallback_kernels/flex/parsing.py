"""TensorFlow's operators that read bytes: numbers as they are stored, and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.ragged_rows import sparse_places
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.file.flex_table import TYPE_NUMBERS
from tflite_ort.schema.file.wire import Message, field
from tflite_ort.schema.values.flex import Node, node_of

View = OperatorView[Any]
Array = npt.NDArray[Any]

MOST_ELEMENTS = 1 << 28
# By the type that an operator asks for, the field of a feature that has such values.
_LISTS = {"string": 1, "float": 2, "int64": 3}


# Numbers as they are stored ---------------------------------------------------------------------


@flex_kernel("DecodeRaw")
def decode_raw(op: View, inputs: Inputs, state: State) -> Outputs:
    """The numbers that the bytes of texts of one length are."""
    (texts,), dtype = inputs, op.output.dtype
    rows = [bytes(text) for text in texts.reshape(-1)]
    sizes = {len(row) for row in rows}
    if len(sizes) > 1:
        raise KernelError(f"texts of {sorted(sizes)[:8]} bytes, expected one length")
    size = sizes.pop() if sizes else 0
    return (_numbers(op, rows, size, dtype).reshape(*texts.shape, -1 if rows else 0),)


@flex_kernel("SerializeTensor")
def serialize(op: View, inputs: Inputs, state: State) -> Outputs:
    """The bytes of TensorFlow's message of a tensor."""
    (array,) = inputs
    sizes = b"".join(field(2, field(1, size) if size else b"") for size in array.shape)
    content = field(1, TYPE_NUMBERS[node_of(op)["T"]]) + field(2, sizes)
    if array.dtype.hasobject:
        content += b"".join(field(8, bytes(text)) for text in array.reshape(-1))
    elif array.size:
        content += field(4, np.ascontiguousarray(array).tobytes())
    result = np.empty((), np.object_)
    result[()] = content
    return (result,)


@flex_kernel("DecodePaddedRaw")
def decode_padded_raw(op: View, inputs: Inputs, state: State) -> Outputs:
    """As `decode_raw`, of texts that are cut, or filled with zeros, to one length."""
    texts, dtype, size = inputs[0], op.output.dtype, int(inputs[1].item())
    rows = [bytes(text) for text in texts.reshape(-1)]
    if size <= 0 or size * max(len(rows), 1) > MOST_ELEMENTS:
        raise KernelError(f"{len(rows)} texts of {size} bytes")
    if not node_of(op)["little_endian"] and any(len(row) % dtype.itemsize for row in rows):
        raise KernelError("a text that ends within a number is not implemented")
    rows = [row[:size].ljust(size, b"\0") for row in rows]
    return (_numbers(op, rows, size, dtype).reshape(*texts.shape, size // dtype.itemsize),)


def _numbers(op: View, rows: Sequence[bytes], size: int, dtype: np.dtype[Any]) -> Array:
    if size % dtype.itemsize:
        raise KernelError(f"texts of {size} bytes are no numbers of {dtype.itemsize}")
    little = node_of(op)["little_endian"]
    if not little and dtype.kind == "c":
        raise KernelError("complex numbers with the high bytes first are not implemented")
    words = np.frombuffer(b"".join(rows), f"V{dtype.itemsize}").copy()
    if not little:
        octets = words.view(np.uint8).reshape(-1, dtype.itemsize)[:, ::-1]
        words = np.ascontiguousarray(octets)
    return words.reshape(-1).view(dtype)


# Examples ---------------------------------------------------------------------------------------


@record
class Wanted:
    """What an operator takes from examples.

    Args:
        sparse, ragged: (key, type) each; of ragged ones with the type of the splits.
        dense: (key, type, shape, default) each.
    """

    sparse: list[tuple[bytes, str]]
    dense: list[tuple[bytes, str, tuple[int, ...], Array]]
    ragged: list[tuple[bytes, str, np.dtype[Any]]]


Feature = tuple[int, Message]  # the field of its list, and the list
Example = Mapping[bytes, Feature]


@flex_kernel("ParseExampleV2", "ParseExample")
def parseexample_of(op: View, inputs: Inputs, state: State) -> Outputs:
    """The features of examples, of a list of them or of one alone."""
    node = node_of(op)
    parts = node.parts(node.operator.inputs, inputs)
    keys = [
        [bytes(key) for array in parts.get(name, ()) for key in np.asarray(array).reshape(-1)]
        for name in ("sparse_keys", "dense_keys", "ragged_keys")
    ]
    wanted = asked(node.attributes, keys, parts["dense_defaults"])
    (serialized,) = parts["serialized"]
    if serialized.ndim > 1 or (op.name.endswith("ParseExample") and not serialized.ndim):
        raise KernelError(f"examples have shape {list(serialized.shape)}")
    return _outputs(wanted, serialized.reshape(-1), single=not serialized.ndim)


@flex_kernel("ParseSingleExample")
def parse_singleexample_of(op: View, inputs: Inputs, state: State) -> Outputs:
    """The features of an example."""
    node, (serialized, *defaults) = node_of(op), inputs
    keys = [
        [key.encode("utf-8", "surrogateescape") for key in node[name]]
        for name in ("sparse_keys", "dense_keys")
    ]
    if serialized.ndim:
        raise KernelError(f"an example has shape {list(serialized.shape)}")
    wanted = asked(node.attributes, [*keys, []], defaults)
    return _outputs(wanted, serialized.reshape(-1), single=True)


def asked(
    attributes: Mapping[str, Any], keys: Sequence[list[bytes]], defaults: Sequence[Array]
) -> Wanted:
    """What an operator with these attributes takes."""
    sparse, dense, ragged = keys
    splits = [Node.type_of(name) for name in attributes.get("ragged_split_types", ())]
    dtypes = [np.dtype(np.int32 if type.name == "INT32" else np.int64) for type in splits]
    if len({*sparse, *dense, *ragged}) < len(sparse) + len(dense) + len(ragged):
        raise KernelError("a feature is asked for twice")
    columns = (
        (sparse, attributes["sparse_types"]),
        (dense, attributes["Tdense"], attributes["dense_shapes"], defaults),
        (ragged, attributes.get("ragged_value_types", ()), dtypes),
    )
    for column in columns:
        if len({len(part) for part in column}) > 1:
            raise KernelError("the numbers of keys, types and shapes differ")
    return Wanted(*(list(zip(*column, strict=True)) for column in columns))


def example_of(content: bytes) -> Example:
    """The features of an Example by name; of one that stands twice the last counts."""
    found: dict[bytes, Feature] = {}
    for features in Message(content, ModelError).blobs(1):
        for entry in Message(features, ModelError).blobs(1):
            pair = Message(entry, ModelError)
            feature = feature_of(pair.message(2))
            found.pop(pair.blob(1), None)
            if feature is not None:
                found[pair.blob(1)] = feature
    return found


def feature_of(message: Message) -> Feature | None:
    """A feature; None where it has no values of a type."""
    lists = [number for number in message.numbers if number in _LISTS.values()]
    if len(lists) > 1:
        raise KernelError("a feature of several types")
    return (lists[0], message.message(lists[0])) if lists else None


def values_of(feature: Feature, key: bytes, type: str) -> Array:
    """The values of a feature."""
    field, values = feature
    if field != _LISTS[type]:
        raise KernelError(f"feature {key!r} does not have values of {type}")
    if type == "float":
        return np.asarray(values.floats(1), np.float32)
    if type == "int64":
        return np.array([n % 2**64 for n in values.integers(1)], np.uint64).view(np.int64)
    texts = values.blobs(1)
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array


def _values(example: Example, key: bytes, type: str) -> Array | None:
    """The values of a feature; None where the example has none of this name."""
    return values_of(example[key], key, type) if key in example else None


def nothing(type: str) -> Array:
    """No values."""
    return np.empty(0, {"float": np.float32, "int64": np.int64, "string": np.object_}[type])


def _outputs(wanted: Wanted, serialized: Array, *, single: bool) -> Outputs:
    try:
        examples = [example_of(bytes(each)) for each in serialized]
        return taken(wanted, examples, single=single)
    except ModelError as error:
        raise KernelError(f"an example is damaged: {error}") from None


def taken(wanted: Wanted, examples: Sequence[Example], *, single: bool) -> Outputs:
    """What is wanted, in the order of the outputs. A single example has no bounds of rows."""
    sparse = [_sparse(examples, key, type, single) for key, type in wanted.sparse]
    dense = [_dense(examples, *each, single) for each in wanted.dense]
    ragged = [_ragged(examples, key, type, dtype) for key, type, dtype in wanted.ragged]
    columns = [array for i in range(3) for array in (each[i] for each in sparse)]
    splits = [bounds[:0] if single else bounds for _, bounds in ragged]
    return (*columns, *dense, *(values for values, _ in ragged), *splits)


def _rows(examples: Sequence[Example], key: bytes, type: str) -> Iterator[Array]:
    for example in examples:
        values = _values(example, key, type)
        yield nothing(type) if values is None else values


def _sparse(
    examples: Sequence[Example], key: bytes, type: str, single: bool
) -> tuple[Array, Array, Array]:
    rows = list(_rows(examples, key, type))
    places, sizes = sparse_places(rows)
    first = 1 if single else 0
    return places[:, first:], np.concatenate([nothing(type), *rows]), sizes[first:]


def _ragged(
    examples: Sequence[Example], key: bytes, type: str, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    rows = list(_rows(examples, key, type))
    splits = np.cumsum([0, *map(len, rows)]).astype(dtype)
    return np.concatenate([nothing(type), *rows]), splits


def _dense(
    examples: Sequence[Example],
    key: bytes,
    type: str,
    shape: tuple[int, ...] | None,
    default: Array,
    single: bool,
) -> Array:
    if shape is None or any(size < 0 for size in shape[1:]):
        raise KernelError(f"feature {key!r} has shape {shape}")
    step = int(np.prod(shape[1:]))
    rows = []
    for example in examples:
        values = _values(example, key, type)
        if values is None:
            values = _filling(key, shape, default)
        if shape[:1] != (-1,) and values.size != int(np.prod(shape)):
            raise KernelError(f"feature {key!r} has {values.size} values, expected {list(shape)}")
        if shape[:1] == (-1,) and (not step or values.size % step):
            raise KernelError(f"feature {key!r} has {values.size} values, no rows of {step}")
        rows.append(values.reshape(shape))
    if shape[:1] == (-1,):
        rows = _filled(key, rows, default)
    if single:
        return rows[0]
    return np.stack(rows) if rows else np.empty((0, *shape), nothing(type).dtype)


def _filling(key: bytes, shape: tuple[int, ...], default: Array) -> Array:
    """What stands for a feature that an example does not have."""
    if shape[:1] == (-1,):
        return default.reshape(-1)[:0]
    if not default.size:
        raise KernelError(f"an example does not have feature {key!r}, which has no default")
    return default


def _filled(key: bytes, rows: Sequence[Array], default: Array) -> list[Array]:
    """Rows of one length, with the default at the end of shorter ones."""
    length = max(map(len, rows), default=0)
    if sum(row[:1].size for row in rows) * length > MOST_ELEMENTS:
        raise KernelError(f"{len(rows)} examples of {length} values")
    if default.size != 1 and any(len(row) < length for row in rows):
        raise KernelError(f"feature {key!r} has a default of {default.size} values, expected one")
    made = []
    for row in rows:
        whole = np.empty((length, *row.shape[1:]), row.dtype)
        whole[: len(row)] = row
        if len(row) < length:
            whole[len(row) :] = default.reshape(-1)[0]
        made.append(whole)
    return made
