"""What a picture becomes for each input of a model, and how that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.decode.picture_input import PictureInput, picture_layout, prepared
from tflite_ort.decode.pixel_range import ASSUMED, pixel_range
from tflite_ort.metadata import Metadata
from tflite_ort.model.class_names import known_kind
from tflite_ort.prediction.array_files import Details, signature_of
from tflite_ort.schema import Model

if TYPE_CHECKING:
    from tflite_ort.decode.networks import Kind

# By the index of a tensor, what pictures become for it; None where it takes none.
Pictures = Callable[[int], PictureInput | None]

HOW_TO_CHANGE = "--mean 127.5 --std 127.5: -1 to 1; --mean 0 --std 1: 0 to 255"


def pictures_of(read: Callable[[], Model], metadata: Metadata, subgraph: int = 0) -> Pictures:
    """What pictures become for the inputs of a model.

    Args:
        read: gives the model, when a picture is first asked for.
    """

    @cache
    def known() -> Kind | None:
        return known_kind(read(), metadata) if subgraph == 0 else None

    @cache
    def of(index: int) -> PictureInput | None:
        model = read()
        graph = model.subgraphs[subgraph]
        kind = known() if list(graph.inputs) == [index] else None
        if kind is not None and kind.preparation is not None:
            return kind.preparation
        place = list(graph.inputs).index(index)
        told = metadata.inputs[place].table if len(metadata.inputs) == len(graph.inputs) else None
        return prepared(graph.tensors[index], pixel_range(model, subgraph, index, told))

    return of


def plain_picture(details: Details, known: PictureInput | None = None) -> PictureInput | None:
    """What a picture becomes for an input of the present sizes; None where it takes none.

    Args:
        known: what is known of it besides.
    """
    layout, dtype = picture_layout(signature_of(details)), np.dtype(details["dtype"])
    if layout is None or dtype.kind not in "fiu":
        return None
    how = known
    if how is None:
        source = "" if dtype.name in ("uint8", "int8") else ASSUMED
        how = PictureInput(-1, -1, dtype=dtype.name, source=source)
        if dtype.kind != "f" and source:
            how = replace(how, **_quantization(details))
    first = layout.channels_first
    return replace(how, height=layout.height, width=layout.width, channels_first=first)


def told_picture(
    how: PictureInput, mean: tuple[float, ...], std: tuple[float, ...], details: Details
) -> PictureInput:
    """`how` with the mean and standard deviation that a caller gives. A quantized input stores them
    by its own scale and zero point."""
    stored = {} if np.dtype(how.dtype).kind == "f" else _quantization(details)
    return replace(how, mean=mean, std=std, source="as --mean and --std say", **stored)


def _quantization(details: Details) -> dict[str, Any]:
    parameters = details["quantization_parameters"]
    scales, points = (np.asarray(parameters[name]) for name in ("scales", "zero_points"))
    if not scales.size:
        return {"scale": 0.0, "zero_point": 0}
    return {"scale": float(scales[0]), "zero_point": int(points[0]) if points.size else 0}


def picture_text(how: PictureInput) -> str:
    """What pixels become, and who says so."""
    fitted = ", fitted with a border" if how.letterbox else ""
    if how.takes_pixels:
        return f"pixels as they are{' less 128' if how.dtype == 'int8' else ''}{fitted}"
    mean, std = (" ".join(f"{n:g}" for n in numbers) for numbers in (how.mean, how.std))
    if how.source == ASSUMED:
        return f"pixels from 0 to 1, {ASSUMED} ({HOW_TO_CHANGE}){fitted}"
    return f"(pixel - {mean}) / {std}, {how.source}{fitted}"
