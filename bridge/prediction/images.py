"""Pictures as values of a model's input."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import (
    DAMAGED,
    Details,
    InputError,
    dtype_name,
    open_plain,
    signature_of,
)

Array = npt.NDArray[Any]

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
# Where Pillow gives the 16 bits of a gray picture as integers of 32.
_WIDE = frozenset({"PNG", "PPM"})
_LEVELS = 256
# Of a file; some are read whole before it is known how large the picture is.
_MOST_BYTES = 1 << 30
# Of what Pillow reads. It gives a picture in PostScript to another program.
_FORMATS = ("BMP", "DIB", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


@dataclass(frozen=True, slots=True)
class Normalization:
    """How pixels 0..255 become real values, (pixel - mean) / std, per channel or one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)


def read_image(path: Path, details: Details, normalization: Normalization | None = None) -> Array:
    """An image as input [1, H, W, C]: resized to H x W, converted to C channels.

    Pixels go to uint8 as they are, to int8 less 128, to floats as 0..1. With a `normalization`
    they are real values, which a quantised input stores by its own scale and zero point.

    Raises:
        InputError: Pillow is missing, the file is no image, or the input takes none.
        OSError: the file cannot be opened.
    """
    with open_plain(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > _MOST_BYTES:
            raise InputError(f"{path} has {size} bytes, a picture at most {_MOST_BYTES}")
        return _decoded(stream, details, normalization, path)


def decoded_image(
    content: bytes, details: Details, normalization: Normalization | None, origin: object
) -> Array:
    """As `read_image`, of the bytes of a file; `origin` names them in errors."""
    return _decoded(io.BytesIO(content), details, normalization, origin)


def _decoded(
    stream: IO[bytes], details: Details, normalization: Normalization | None, origin: object
) -> Array:
    channels = image_size(details)[2]
    with opened_picture(stream, origin) as file:
        file.load()
        image = converted(file, _MODES[channels])
    return _values(image, details, normalization)


@contextmanager
def opened_picture(stream: IO[bytes], origin: object) -> Iterator[Any]:
    """Pillow's picture of the content of a file, in one of `_FORMATS`.

    Raises:
        InputError: Pillow is missing, or it is no such picture, damaged or too large; also if the
            block finds that.
    """
    pillow = pillow_module(f"reading the image {origin}")
    try:
        with pillow.open(stream, formats=_FORMATS) as picture:
            yield picture
    except pillow.DecompressionBombError as error:
        raise InputError(f"{origin} is too large: {error}") from error
    except InputError as error:
        raise InputError(f"{origin} {error}") from error
    except (*DAMAGED, OSError) as error:
        raise InputError(f"{origin} is not an image that can be read") from error


def is_picture(path: Path) -> bool:
    """Whether a plain file says that it is a picture, in one of `_FORMATS`.

    Raises: as `open_plain`.
    """
    pillow = pillow_module(f"reading {path}")
    with open_plain(path) as stream:
        try:
            pillow.open(stream, formats=_FORMATS)
        except pillow.UnidentifiedImageError:
            return False
        except (pillow.DecompressionBombError, *DAMAGED, OSError):
            return True
    return True


def image_of_pixels(
    pixels: Array, details: Details, normalization: Normalization | None, origin: object
) -> Array:
    """As `read_image`, of uint8 pixels [h, w, c] or [h, w] of any size.

    Raises:
        InputError: they are no such pixels, Pillow is missing, or the input takes no image.
    """
    height, width, channels = image_size(details)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or 0 in pixels.shape:
        raise InputError(
            f"{origin} is {dtype_name(pixels.dtype)} {pixels.shape}; an image is uint8 [h, w, c]"
        )
    if pixels.shape in {(height, width, channels), (height, width) if channels == 1 else ()}:
        return _shaped(pixels.reshape(height, width, channels), details, normalization)
    given = pixels[..., 0] if pixels.shape[2:] == (1,) else pixels
    if given.shape[2:] not in ((), (3,), (4,)):
        raise InputError(f"{origin} has {given.shape[-1]} channels; an image has 1, 3 or 4")
    image = pillow_module(f"resizing {origin}").fromarray(np.ascontiguousarray(given))
    return _values(image.convert(_MODES[channels]), details, normalization)


def image_size(details: Details) -> tuple[int, int, int]:
    """(H, W, C) of an input; H or W is -1 where the model takes any.

    Raises:
        InputError: it takes no image.
    """
    signature = signature_of(details)
    if not takes_images(details):
        raise InputError(
            f"input {details['name']!r} with shape {signature} takes no image: "
            "that needs [1, H, W, C] with 1, 3 or 4 channels"
        )
    height, width, channels = signature[-3:]
    return height, width, channels


def takes_images(details: Details) -> bool:
    """Whether an input has the shape of an image, [1, H, W, C] or [H, W, C]."""
    signature = signature_of(details)
    leads = len(signature) == 3 or (len(signature) == 4 and signature[0] in (-1, 1))
    return leads and signature[-1] in _MODES


def pillow_module(task: str) -> Any:
    """Pillow's module of images.

    Raises:
        InputError: it is not installed; the message names the task.
    """
    pillow = optional_module("PIL.Image")
    if pillow is None:
        raise InputError(f"{task} needs Pillow: pip install 'tflite-ort[images]'")
    return pillow


def _values(image: Any, details: Details, normalization: Normalization | None) -> Array:
    """Pillow's `image`, of the input's channels, as the input."""
    height, width, channels = image_size(details)
    size = (image.width if width < 0 else width, image.height if height < 0 else height)
    if image.size != size:
        image = resized(image, size)
    pixels = np.asarray(image).reshape(size[1], size[0], channels)
    return _shaped(pixels, details, normalization)


def converted(image: Any, mode: str) -> Any:
    """Pillow's `image` in another mode. Of 16 bits in a gray one the higher 8 count, as in one with
    colours; Pillow's own conversion would make all above 255 white.

    Raises:
        InputError: it holds integers of 32 bits or floats.
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in _WIDE):
        pixels = (np.asarray(image) >> 8).astype(np.uint8)
        return pillow_module("reading a picture of 16 bits").fromarray(pixels).convert(mode)
    if image.mode in ("I", "F"):
        raise InputError("has pixels of 32 bits, and nothing tells which value is white")
    return image if image.mode == mode else image.convert(mode)


def resized(image: Any, size: tuple[int, int]) -> Any:
    """Pillow's `image` with another (width, height), as TFLite's task library resizes: a pixel is
    weighed of the four around its place, also in a smaller picture, and pixels have their place in
    their middle."""
    pillow = pillow_module("resizing")
    steps = image.width / size[0], image.height / size[1]
    places = (steps[0], 0.0, 0.0, 0.0, steps[1], 0.0)
    return image.transform(size, pillow.Transform.AFFINE, places, pillow.Resampling.BILINEAR)


def _shaped(pixels: Array, details: Details, normalization: Normalization | None) -> Array:
    values = _pixel_values(pixels, details, normalization)
    return values.reshape((1,) * (len(details["shape"]) - 3) + pixels.shape)


def _pixel_values(pixels: Array, details: Details, normalization: Normalization | None) -> Array:
    """Pixels [H, W, C] in the input's dtype."""
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    if normalization is None and dtype == np.uint8:
        return pixels
    if normalization is None and dtype == np.int8:
        return (pixels ^ np.uint8(128)).view(np.int8)
    normalization = normalization or Normalization()
    for parameter in (normalization.mean, normalization.std):
        if len(parameter) not in (1, pixels.shape[-1]):
            raise InputError(f"{len(parameter)} values given for {pixels.shape[-1]} channels")
    if dtype.kind == "f":
        return _real(pixels, normalization).astype(dtype, copy=False)
    # There are 256 pixels in each channel: what each becomes is looked up.
    channels = pixels.shape[-1] if len(normalization.mean + normalization.std) > 2 else 1
    levels = np.repeat(np.arange(_LEVELS, dtype=np.uint8)[:, np.newaxis], channels, axis=1)
    table = _stored(levels, details, normalization)
    if channels == 1:
        return table[:, 0].take(pixels, mode="clip")
    return table[pixels, np.arange(channels)]


def _real(pixels: Array, normalization: Normalization) -> Array:
    """(pixel - mean) / std in float32, as TFLite's task library computes it."""
    rows = pixels.reshape(pixels.shape[0], -1)
    mean, std = (
        _repeated(parameter, rows.shape[1]) for parameter in (normalization.mean, normalization.std)
    )
    real = np.subtract(rows, mean, dtype=np.float32)
    return np.divide(real, std, out=real).reshape(pixels.shape)


def _repeated(parameter: tuple[float, ...], length: int) -> Array:
    """A value per channel for all pixels of a row; one for all stays one."""
    array = np.array(parameter, np.float32)
    return array if array.size == 1 else np.tile(array, length // array.size)


def _stored(pixels: Array, details: Details, normalization: Normalization) -> Array:
    """The codes of a quantised input for the real values of pixels [n, C]."""
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    scales = np.asarray(details["quantization_parameters"]["scales"])
    if dtype.kind not in "iu" or not scales.size:
        raise InputError(f"input {details['name']!r} of {dtype_name(dtype)} takes no image")
    real = (pixels - np.array(normalization.mean)) / np.array(normalization.std)
    limits = np.iinfo(dtype)
    zero_point = int(details["quantization_parameters"]["zero_points"][0])
    stored: Array = np.round(real / scales[0]) + zero_point
    return stored.clip(limits.min, limits.max).astype(dtype)
