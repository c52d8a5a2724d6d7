"""Writes a :class:`Model` as the bytes of a .tflite file: what read_model reads, field for field."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

import flatbuffers
import numpy as np

from tflite_ort.schema.declare import (
    Array,
    Child,
    Children,
    Field,
    Local,
    Number,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Table,
    Vector,
    View,
)
from tflite_ort.schema.enums import BuiltinOperator
from tflite_ort.schema.model import Model

IDENTIFIER = b"TFL3"
# FlatBuffers' offsets are signed 32-bit; what the structure needs is small beside the data.
INLINE_LIMIT = 2**31 - 2**24
_ALIGNMENT = 16


def write_model(model: Model, *, inline_limit: int = INLINE_LIMIT) -> bytes:
    """The bytes of a .tflite file.

    Args:
        inline_limit: when buffers and custom options have more bytes than this together, they are
            written after the FlatBuffer and referred to by position, as TFLite does beyond 2 GB.
    """
    appended = Appended() if _data_size(model) > inline_limit else None
    writer = Writer(appended)
    root = writer.table(model)
    writer.builder.Finish(root, file_identifier=IDENTIFIER)
    ...
