"""Named texts in a model's metadata, each in a buffer of its own."""

from __future__ import annotations

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.schema.file.model import Buffer, Metadata, Model

# TFLite reserves this much for a text and fills up with zeros.
_TEXT_BYTES = 16


def metadata_text(model: Model, name: str) -> str | None:
    """The text stored as `name`, up to its first zero byte; None without one."""
    for entry in model.metadata:
        data = model.buffers[entry.buffer].data
        if entry.name == name and data is not None:
            return data.tobytes().partition(b"\0")[0].decode("ascii", "replace")
    return None


def with_metadata_text(model: Model, name: str, text: str) -> Model:
    """`model` with `text` (ASCII, 16 bytes at most) as `name`, in place of what had that name.

    Raises:
        ValueError: the text is too long or not ASCII.
    """
    encoded = text.encode("ascii")
    if len(encoded) > _TEXT_BYTES:
        raise ValueError(f"{name} {text!r} has {len(encoded)} bytes, at most {_TEXT_BYTES} fit")
    if metadata_text(model, name) == text:
        return model
    data = np.frombuffer(encoded.ljust(_TEXT_BYTES, b"\0"), np.uint8)
    others = tuple(entry for entry in model.metadata if entry.name != name)
    return replace(
        model,
        buffers=(*model.buffers, Buffer(data=data)),
        metadata=(*others, Metadata(name=name, buffer=len(model.buffers))),
    )
