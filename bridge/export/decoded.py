"""Exports whose outputs are decoded: boxes, landmarks, masks and classes."""

from __future__ import annotations

import os

import onnx

from tflite_ort.base.files import write_bytes
from tflite_ort.bundles.bundle import Source
from tflite_ort.decode.decoding import decoded
from tflite_ort.decode.networks import Kind
from tflite_ort.metadata import model_metadata
from tflite_ort.model import class_names
from tflite_ort.schema import ExportError, Model

# What `decode` may be besides True and False: decoded outputs, and a picture as the input.
IMAGE = "image"


def known_kind(model: Model, origin: Source | None, wanted: str = "") -> Kind | None:
    """What a model is that was read from `origin`; None where that is not known.

    Args:
        wanted: the kind that it is where nothing contradicts.

    Raises:
        MalformedModel: its metadata is damaged.
        BudgetExceeded: its files are larger than their budget.
    """
    return class_names.known_kind(model, model_metadata(model, origin), wanted=wanted)


def write_decoded(
    exported: onnx.ModelProto,
    model: Model,
    origin: Source | None,
    decode: bool | str,
    output: str | os.PathLike[str] | None,
) -> onnx.ModelProto:
    """The decoded form of what was exported, written to `output` if that is given.

    Raises:
        ExportError: the model is of no known kind, or takes no picture.
        OSError: it cannot be written.
    """
    kind = known_kind(model, origin)
    if kind is None:
        raise ExportError("the model is of no kind whose outputs are known: it cannot be decoded")
    result = decoded(exported, model, kind, image_input=decode == IMAGE)
    if output is not None:
        write_bytes(output, result.SerializeToString())
    return result
