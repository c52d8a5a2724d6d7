"""The sections of a ``.litertlm`` file, verified; its header is a FlatBuffer of its own.

Bytes 0 to 7 are ``LITERTLM``; three 32-bit numbers are the version; the 64-bit number at byte 24
is where the header ends that begins at byte 32. Sections follow it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from typing import Any

import numpy as np

from tflite_ort.bundles.entries import FILE, MODEL, Entry, check_disjoint, check_distinct
from tflite_ort.schema import MalformedBundle, Table, UnsupportedSchema
from tflite_ort.schema.file.declare import child, children, one_of, scalar, string
from tflite_ort.schema.file.fields import (
    BOOL,
    FLOAT32,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Number,
    Union,
)
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.verify import read_table

MAGIC = b"LITERTLM"
VERSION = 1
_PREFIX = struct.Struct("<8s3L")
_HEADER_END, _HEADER_START = 24, 32

INT16, DOUBLE = Number("short", "h", 2), Number("double", "d", 8)

TYPES = {
    1: "GenericBinaryData",
    3: "TFLiteModel",
    4: "SP_Tokenizer",
    5: "LlmMetadataProto",
    6: "HF_Tokenizer_Zlib",
    7: "TFLiteWeights",
    8: "EmbeddingMetadataProto",
    9: "ExecutorMetadataProto",
    10: "TtsMetadataProto",
    11: "AsrMetadataProto",
}
_MODEL_TYPE = 3


def _value(name: str, content: Any) -> type[Table]:
    """A table of one value."""
    members = {"value": content, "__annotations__": {"value": Any}, "__doc__": "A value."}
    return type(f"{name}Value", (Table,), {**members, "__module__": __name__})


# The members of the union, in its order.
_VALUES = {
    name: _value(name, content)
    for name, content in (
        ("UInt8", scalar(0, UINT8)),
        ("Int8", scalar(0, INT8)),
        ("UInt16", scalar(0, UINT16)),
        ("Int16", scalar(0, INT16)),
        ("UInt32", scalar(0, UINT32)),
        ("Int32", scalar(0, INT32)),
        ("Float32", scalar(0, FLOAT32)),
        ("Bool", scalar(0, BOOL)),
        ("String", string(0)),
        ("UInt64", scalar(0, UINT64)),
        ("Int64", scalar(0, INT64)),
        ("Double", scalar(0, DOUBLE)),
    )
}
StringValue = _VALUES["String"]
Value = Union("VData", tuple(_VALUES.values()))


class KeyValue(Table):
    """One thing that is said."""

    key: str = string(0)
    value: Any = one_of((2, Value))


class SystemMetadata(Table):
    """What is said of the whole file."""

    entries: tuple[KeyValue, ...] = children(0, KeyValue)


class SectionObject(Table):
    """Where a section is, and what is said of it."""

    items: tuple[KeyValue, ...] = children(0, KeyValue)
    begin_offset: int = scalar(1, UINT64)
    end_offset: int = scalar(2, UINT64)
    data_type: int = scalar(3, UINT8)


class SectionMetadata(Table):
    """All sections."""

    objects: tuple[SectionObject, ...] = children(0, SectionObject)


class Header(Table):
    """The header of a file."""

    system_metadata: SystemMetadata | None = child(0, SystemMetadata)
    section_metadata: SectionMetadata | None = child(1, SectionMetadata)


def starts_litertlm(content: memoryview) -> bool:
    """Whether the bytes begin as a ``.litertlm`` file does."""
    return bytes(content[: len(MAGIC)]) == MAGIC


def litertlm_entries(content: memoryview) -> tuple[list[Entry], dict[str, Any]]:
    """The sections, and what is said of the whole file.

    Raises:
        MalformedBundle: the header is damaged, or sections overlap or leave the file.
        UnsupportedSchema: the file has another version.
    """
    header, end = _header(content)
    objects = header.section_metadata.objects if header.section_metadata else ()
    names, entries = _names(objects), []
    for name, each in zip(names, objects, strict=True):
        size = each.end_offset - each.begin_offset
        if size < 0 or each.end_offset > len(content):
            raise MalformedBundle(f"section {name!r} leaves the file", each.begin_offset)
        kind = MODEL if each.data_type == _MODEL_TYPE else TYPES.get(each.data_type, FILE)
        entry = Entry(
            name, kind, each.begin_offset, size, size, properties=_metadata_values(each.items)
        )
        entries.append(entry)
    spans = [(each.offset, each.offset + each.size, each.name) for each in entries]
    check_disjoint([(0, end, "the header"), *spans])
    said = header.system_metadata.entries if header.system_metadata else ()
    return entries, _metadata_values(said)


def _header(content: memoryview) -> tuple[Header, int]:
    """The header, and where it ends."""
    if len(content) < _HEADER_START:
        raise MalformedBundle(f"{len(content)} bytes are no .litertlm file")
    _, major, minor, patch = _PREFIX.unpack_from(content)
    if major != VERSION:
        raise UnsupportedSchema(
            f".litertlm version {major}.{minor}.{patch}, this library reads version {VERSION}"
        )
    (end,) = struct.unpack_from("<Q", content, _HEADER_END)
    if not _HEADER_START < end <= len(content):
        raise MalformedBundle(f"the header ends at {end}, outside the file", _HEADER_END)
    file = File(np.frombuffer(content[_HEADER_START:end], np.uint8))
    try:
        return read_table(file, file.follow(0), Header), end
    except Corrupt as corrupt:
        where = f"the header's {corrupt.path}: {corrupt.reason}"
        raise MalformedBundle(where, _HEADER_START + corrupt.offset) from None


def _names(objects: tuple[SectionObject, ...]) -> list[str]:
    """A name for each section: what kind of model it is, or its type; numbered where several
    sections would have one."""
    wished = [_wished(each) for each in objects]
    names, alike, taken = [], Counter(wished), Counter[str]()
    for wish in wished:
        stem, dot, suffix = wish.partition(".")
        names.append(f"{stem}_{taken[wish]}{dot}{suffix}" if alike[wish] > 1 else wish)
        taken[wish] += 1
    check_distinct(names)
    return names


def _wished(section: SectionObject) -> str:
    said = _metadata_values(section.items)
    kind = TYPES.get(section.data_type, f"section_type_{section.data_type}").lower()
    model = re.sub(r"[^A-Za-z0-9_]+", "_", str(said.get("model_type", ""))).strip("_")[:80]
    name = (model.lower() or kind).removeprefix("tf_lite_")
    if section.data_type == _MODEL_TYPE:
        return f"{name}.tflite"
    return f"{name}.{kind}" if model else kind


def _metadata_values(items: tuple[KeyValue, ...]) -> dict[str, Any]:
    return {each.key: each.value.value for each in items if each.value is not None}
