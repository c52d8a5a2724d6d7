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
from tflite_ort.decode.picture_input import PictureInput, picture_layout
from tflite_ort.decode.sampling import tensor_of
from tflite_ort.prediction.array_files import (
    DAMAGED,
    Details,
    InputError,
    dtype_name,
    open_plain,
    signature_of,
)
from tflite_ort.prediction.pictures import plain_picture

Array = npt.NDArray[Any]

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
# Where Pillow gives the 16 bits of a gray picture as integers of 32.
_WIDE = frozenset({"PNG", "PPM"})
# Of a file; some are read whole before it is known how large the picture is.
_MOST_BYTES = 1 << 30
# Of what Pillow reads. It gives a picture in PostScript to another program.
_FORMATS = ("BMP", "DIB", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


@dataclass(frozen=True, slots=True)
class Normalization:
    """How pixels 0..255 become real values, (pixel - mean) / std, per channel or one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)


def read_image(path: Path, details: Details, how: PictureInput | None = None) -> Array:
    """An image as input [1, H, W, C]: resized to H x W, converted to C channels.

    Args:
        how: what its pixels become; None: uint8 takes them as they are, int8 less 128, floats take
            0 to 1.

    Raises:
        InputError: Pillow is missing, the file is no image, or the input takes none.
        OSError: the file cannot be opened.
    """
    with open_plain(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > _MOST_BYTES:
            raise InputError(f"{path} has {size} bytes, a picture at most {_MOST_BYTES}")
        return _decoded(stream, details, how, path)


def decoded_image(
    content: bytes, details: Details, how: PictureInput | None, origin: object
) -> Array:
    """As `read_image`, of the bytes of a file; `origin` names them in errors."""
    return _decoded(io.BytesIO(content), details, how, origin)


def _decoded(
    stream: IO[bytes], details: Details, how: PictureInput | None, origin: object
) -> Array:
    channels = image_size(details)[2]
    with opened_picture(stream, origin) as file:
        file.load()
        image = converted(file, _MODES[channels])
    return _values(np.asarray(image), details, how)


def picture_pixels(path: Path) -> Array:
    """A picture as it is, uint8 [height, width, 3].

    Raises: as `read_image`.
    """
    with open_plain(path) as stream, opened_picture(stream, path) as picture:
        return np.array(converted(picture, "RGB"))


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
    pixels: Array, details: Details, how: PictureInput | None, origin: object
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
        return _values(pixels, details, how)
    given = pixels[..., 0] if pixels.shape[2:] == (1,) else pixels
    if given.shape[2:] not in ((), (3,), (4,)):
        raise InputError(f"{origin} has {given.shape[-1]} channels; an image has 1, 3 or 4")
    image = pillow_module(f"resizing {origin}").fromarray(np.ascontiguousarray(given))
    return _values(np.asarray(image.convert(_MODES[channels])), details, how)


def image_size(details: Details) -> tuple[int, int, int]:
    """(H, W, C) of an input; H or W is -1 where the model takes any.

    Raises:
        InputError: it takes no image.
    """
    layout = picture_layout(signature_of(details))
    if layout is None:
        raise InputError(
            f"input {details['name']!r} with shape {signature_of(details)} takes no image: "
            "that needs [1, H, W, C] or [1, C, H, W] with 1, 3 or 4 channels; other values come as "
            ".npy"
        )
    return layout.height, layout.width, layout.channels


def takes_images(details: Details) -> bool:
    """Whether an input has the shape of an image, [1, H, W, C], [H, W, C] or [1, C, H, W]."""
    return picture_layout(signature_of(details)) is not None


def pillow_module(task: str) -> Any:
    """Pillow's module of images.

    Raises:
        InputError: it is not installed; the message names the task.
    """
    pillow = optional_module("PIL.Image")
    if pillow is None:
        raise InputError(f"{task} needs Pillow: pip install 'tflite-ort[images]'")
    return pillow


def _values(pixels: Array, details: Details, how: PictureInput | None) -> Array:
    """Pixels [h, w] or [h, w, C], of the input's channels, as the input."""
    channels = image_size(details)[2]
    found = plain_picture(details, how)
    if found is None or not (found.dtype.startswith("float") or found.takes_pixels or found.scale):
        dtype = dtype_name(np.dtype(details["dtype"]))
        raise InputError(f"input {details['name']!r} of {dtype} takes no image")
    for parameter in (found.mean, found.std):
        if len(parameter) not in (1, channels):
            raise InputError(f"{len(parameter)} values given for {channels} channels")
    values = tensor_of(pixels.reshape(*pixels.shape[:2], channels), found)
    return values.reshape((1,) * (len(details["shape"]) - 3) + values.shape)


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
