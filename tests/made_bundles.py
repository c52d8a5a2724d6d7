"""Bundles as Google lays them out, made of small models."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from tests.one_op import Node, T, graph_model
from tflite_ort.bundles.litertlm import (
    Header,
    KeyValue,
    SectionMetadata,
    SectionObject,
    StringValue,
    SystemMetadata,
)
from tflite_ort.schema import AddOptions, Op
from tflite_ort.schema.file.write import write_table

PAGE = 16 * 1024


def adding(number: float) -> bytes:
    """A model of one input [2] and one output: `number` more."""
    return graph_model(
        {"x": T((2,)), "c": T.constant(np.full(2, number, np.float32)), "y": T((2,))},
        [Node(Op.ADD, ["x", "c"], ["y"], AddOptions())],
        ["y"],
    )


def task(files: Mapping[str, bytes], *, packed: bool = False) -> bytes:
    """A ``.task``: stored files that begin at multiples of 4 bytes."""
    stream = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            start = stream.tell() + 30 + len(name.encode())
            gap = -start % 4
            info.extra = struct.pack("<2H", 0xD935, gap) + b"\0" * gap
            archive.writestr(info, content)
    return stream.getvalue()


def with_files(model: bytes, files: Mapping[str, bytes]) -> bytes:
    """A model with an archive behind it."""
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def litertlm(sections: Sequence[tuple[int, bytes, Mapping[str, str]]]) -> bytes:
    """A ``.litertlm``: of each section its type, its bytes and what is said of it."""
    objects, body = [], bytearray()
    for kind, content, said in sections:
        start = PAGE + len(body)
        objects.append(SectionObject(_said(said), start, start + len(content), kind))
        body += content + b"\0" * (-len(content) % PAGE)
    header = Header(SystemMetadata(_said({"Authors": "tests"})), SectionMetadata(tuple(objects)))
    table = write_table(header, b"LTLM")
    prefix = struct.pack("<8s3L", b"LITERTLM", 1, 5, 0).ljust(24, b"\0")
    return (prefix + struct.pack("<Q", 32 + len(table)) + table).ljust(PAGE, b"\0") + bytes(body)


def _said(pairs: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key, StringValue(value)) for key, value in pairs.items())


ONE, TWO = adding(1), adding(2)
TASK = task({"a_detector.tflite": ONE, "b_landmarks.tflite": TWO, "notes.txt": b"text"})
PACKED = task(
    {"a_detector.tflite": ONE, "b_landmarks.tflite": TWO, "zeros": bytes(1000)}, packed=True
)
NESTED = task(
    {"inner.task": TASK, "packed.task": PACKED, "main.tflite": with_files(ONE, {"l.txt": b"x"})}
)
WITH_FILES = with_files(ONE, {"labels.txt": b"cat\ndog"})
LITERTLM = litertlm(
    [
        (5, b"metadata", {}),
        (4, b"tokens", {}),
        (3, ONE, {"model_type": "tf_lite_prefill_decode", "backend_constraint": "cpu"}),
        (3, TWO, {"model_type": "tf_lite_embedder"}),
        (7, b"weights", {"model_type": "tf_lite_prefill_decode"}),
    ]
)
EVERY = {
    "task": TASK,
    "packed": PACKED,
    "nested": NESTED,
    "behind": WITH_FILES,
    "litertlm": LITERTLM,
}
