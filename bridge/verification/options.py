"""The options of an operator as text."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from tflite_ort.schema import Table
from tflite_ort.schema.file.tables import fields_of

_LONG = 200


def option_texts(options: Any) -> dict[str, str]:
    """By name; what is long is cut."""
    if isinstance(options, Table):
        pairs = ((name, getattr(options, name)) for name in fields_of(type(options)))
    elif isinstance(options, dict):
        pairs = ((str(name), value) for name, value in options.items())
    else:
        return {}
    return {name: _text(value) for name, value in pairs}


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes) or (isinstance(value, np.ndarray) and value.size > _LONG):
        return f"{len(value)} bytes" if isinstance(value, bytes) else f"{value.size} values"
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
