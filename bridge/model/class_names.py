"""What the classes of a model are called: by its metadata, by what an exporter packed with it, or
by a file of names."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.metadata import Metadata
from tflite_ort.schema import Model
from tflite_ort.schema.file.model_metadata import AssociatedFileType, SubGraphMetadata

with late:
    from tflite_ort.decode import kinds

if TYPE_CHECKING:
    from tflite_ort.decode.networks import Kind

AXIS_LABELS = AssociatedFileType.TENSOR_AXIS_LABELS
# What ultralytics packs behind a model, and the most bytes of it that are read.
_EXPORTED = ("metadata.json", "temp_meta.txt")
_MOST_BYTES = 1 << 20
_MOST_NAMES = 1 << 20
# The columns of a table of names, the best first.
_COLUMNS = ("display_name", "name", "label", "class")
# Where a configuration has them.
_KEYS = ("id2label", "names", "labels", "classes")

# Fields of an item in a label map, and a numbered name in YAML.
_FIELD = re.compile(r"\b(\w+)\s*:\s*(?:(\d{1,9})\b|[\"']([^\"'\n]*)[\"'])")
_ITEM = re.compile(r"^[ \t]+(\d{1,6}):[ \t]*(\S.*)$", re.MULTILINE)

_LONGEST_NUMBER = 10

_UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError)


def known_kind(
    model: Model,
    metadata: Metadata,
    labels: tuple[str, ...] = (),
    named: str = "",
    wanted: str = "",
) -> Kind | None:
    """What a model is, by its outputs and metadata; None where that is not known.

    Args:
        labels: names of its classes, in the place of its own.
        named: what it is said to be, a name in `kinds.KINDS`.
        wanted: the kind that it is where nothing contradicts.

    Raises:
        MalformedModel: what it says of a detector is damaged.
    """
    told = metadata.table.subgraph_metadata if metadata.table is not None else ()
    graph = told[0] if told else SubGraphMetadata()
    return kinds.kind_of(model, graph, labels or class_names(metadata), named, wanted)


def class_names(metadata: Metadata) -> tuple[str, ...]:
    """The names that a model has of its classes; empty without."""
    for output in metadata.outputs:
        types = {each.type for each in output.table.associated_files}
        # Of an only output whose values have names, no place has one.
        if output.labels and (len(metadata.outputs) > 1 or AXIS_LABELS in types):
            return tuple(_unnumbered(list(output.labels)))
    for name in _EXPORTED:
        content = metadata.files.get(name, b"")
        if 0 < len(content) <= _MOST_BYTES:
            return _of_any(_parsed(content.decode("utf-8", "replace")))
    return ()


def names_of(text: str, suffix: str) -> tuple[str, ...]:
    """The names in a file: a line each, a table in CSV, JSON such as a ``config.json``, a label map
    of TensorFlow's, or what ultralytics writes beside a model, ``metadata.yaml``.

    Args:
        suffix: of the file.
    """
    if suffix == ".json":
        return _of_any(_parsed(text))
    if suffix == ".pbtxt":
        return _of_label_map(text)
    if suffix in (".yaml", ".yml"):
        return _of_any({int(number): name.strip("'\" ") for number, name in _ITEM.findall(text)})
    lines = text.splitlines()
    if suffix == ".csv" and lines:
        rows = list(csv.reader(io.StringIO(text)))
        column = next((rows[0].index(each) for each in _COLUMNS if each in rows[0]), None)
        if column is not None:
            return tuple(row[column] for row in rows[1:] if len(row) > column)
        return tuple(row[-1] for row in rows if row)
    return tuple(_unnumbered([line.strip() for line in lines]))


def _of_label_map(text: str) -> tuple[str, ...]:
    """The names in a label map: of each item what is shown, or its name, under its number, which
    detectors count from 1."""
    found = dict[int, str]()
    for item in text.split("item")[1:]:
        fields = {name: words or number for name, number, words in _FIELD.findall(item)}
        name = fields.get("display_name") or fields.get("name", "")
        if name and fields.get("id", "").isdecimal():
            found[int(fields["id"])] = name
    first = 0 if 0 in found else 1
    return _of_any({number - first: name for number, name in found.items()})


def _unnumbered(lines: list[str]) -> list[str]:
    """Lines without their numbers, where each begins with its own."""
    while lines and not lines[-1]:
        lines.pop()
    heads = [line.split(maxsplit=1) for line in lines]
    numbered = all(
        len(head) == 2 and head[0].rstrip(":") == str(place) for place, head in enumerate(heads)
    )
    return [head[1] for head in heads] if lines and numbered else lines


def _parsed(text: str) -> Any:
    """JSON, or what Python writes of a dictionary; None where it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except _UNREADABLE:
            continue
    return None


def _of_any(found: Any) -> tuple[str, ...]:
    """The names in lists, in dictionaries by number, and under the keys that have them."""
    if isinstance(found, Mapping):
        for key in _KEYS:
            if names := _of_any(found.get(key)):
                return names
        if found and all(isinstance(each, int) for each in found.values()):  # by name
            found = {number: name for name, number in found.items()}
        decimal = {str(key): each for key, each in found.items() if str(key).isdecimal()}
        numbers = {int(key): each for key, each in decimal.items() if len(key) < _LONGEST_NUMBER}
        if not numbers or len(numbers) != len(found) or max(numbers) > _MOST_NAMES:
            return ()
        return tuple(str(numbers.get(number, "")) for number in range(max(numbers) + 1))
    if isinstance(found, list | tuple):
        return tuple(each for each in found if isinstance(each, str))
    return ()
