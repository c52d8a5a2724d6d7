"""A picture as the input of a model, by what the model and its metadata say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.metadata import TensorDescription

if TYPE_CHECKING:
    from PIL.Image import Image

Array = npt.NDArray[Any]


def as_input(picture: Image, detail: dict[str, Any], description: TensorDescription) -> Array:
    """`picture` scaled to the input's size, normalised and quantised.

    Args:
        detail: of the input, from `get_input_details`.
        description: with the mean and the standard deviation; without them a uint8 input gets the
            pixels and another one pixels divided by 255.
    """
    _, height, width, channels = detail["shape"]
    scaled = picture.convert("L" if channels == 1 else "RGB").resize((width, height))
    pixels = np.asarray(scaled).reshape(1, height, width, channels)
    if detail["dtype"] is np.uint8 and not description.std:
        return pixels
    real = (pixels - np.float32(description.mean or 0)) / np.float32(description.std or 255)
    return quantised(real, detail)


def quantised(real: Array, detail: dict[str, Any]) -> Array:
    """Real values in the type of a tensor."""
    dtype = np.dtype(detail["dtype"])
    scale, zero_point = detail["quantization"]
    if dtype.kind == "f" or not scale:
        return real.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(real / scale) + zero_point, limits.min, limits.max).astype(dtype)


def real(codes: Array, detail: dict[str, Any]) -> Array:
    """The values of a tensor as real numbers."""
    scale, zero_point = detail["quantization"]
    return np.asarray((codes.astype(np.float32) - zero_point) * scale if scale else codes)
