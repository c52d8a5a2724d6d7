"""Exports whose outputs are decoded: boxes, landmarks, masks and classes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import onnx

from tflite_ort.base.files import write_bytes
from tflite_ort.bundles.bundle import Source
from tflite_ort.decode.decoding import decoded
from tflite_ort.decode.networks import Kind
from tflite_ort.export.form import Form
from tflite_ort.metadata import model_metadata
from tflite_ort.model import class_names
from tflite_ort.schema import ExportError, Model

# What `decode` may be besides True and False: decoded outputs, and a picture as the input.
IMAGE = "image"


def known_kind(
    model: Model, origin: Source | None, wanted: str = "", labels: Sequence[str] = ()
) -> Kind | None:
    """What a model is that was read from `origin`; None where that is not known.

    Args:
        wanted: the kind that it is where nothing contradicts.
        labels: names of its classes, in the place of its own.

    Raises:
        MalformedModel: its metadata is damaged.
        BudgetExceeded: its files are larger than their budget.
    """
    metadata = model_metadata(model, origin)
    return class_names.known_kind(model, metadata, tuple(labels), wanted=wanted)


def write_decoded(
    exported: onnx.ModelProto,
    model: Model,
    origin: Source | None,
    decode: bool | str,
    output: str | os.PathLike[str] | None,
    form: Form,
) -> onnx.ModelProto:
    """The decoded form of what was exported, written to `output` if that is given.

    Args:
        form: says the names of the classes, and what stays an input.

    Raises:
        ExportError: the model is of no known kind, takes no picture, or has not as many classes as
            there are labels.
        OSError: it cannot be written.
    """
    labels = form.labels
    kind = known_kind(model, origin, labels=labels)
    if kind is None:
        raise ExportError("the model is of no kind whose outputs are known: it cannot be decoded")
    if labels and kind.classes != len(labels):
        counted = kind.classes or "no known number of"
        raise ExportError(f"there are {len(labels)} labels, and the model has {counted} classes")
    result = decoded(exported, model, kind, image_input=decode == IMAGE)
    if not form.decode_inputs:
        _fix_choices(result.graph)
    if output is not None:
        write_bytes(output, result.SerializeToString())
    return result


def _fix_choices(graph: onnx.GraphProto) -> None:
    """Make constants of the inputs that have values: ONNX Runtime warns of others."""
    constants = {each.name for each in graph.initializer}
    given = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(given)
