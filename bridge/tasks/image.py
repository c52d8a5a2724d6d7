"""Pictures, as ``mediapipe.Image`` has them."""

from __future__ import annotations

import enum
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import InputError, open_plain
from tflite_ort.prediction.images import converted, opened_picture

Array = npt.NDArray[Any]


class ImageFormat(enum.Enum):
    """What the channels of a picture are."""

    UNKNOWN = 0
    SRGB = 1
    SRGBA = 2
    GRAY8 = 3
    GRAY16 = 4
    SRGB48 = 7
    SRGBA64 = 8
    VEC32F1 = 9
    SBGRA = 11
    VEC32F2 = 12
    VEC32F4 = 13


# How many channels, 0 for no axis of them, and the type.
_CHANNELS = {
    ImageFormat.SRGB: (3, np.uint8),
    ImageFormat.SRGBA: (4, np.uint8),
    ImageFormat.SBGRA: (4, np.uint8),
    ImageFormat.GRAY8: (0, np.uint8),
    ImageFormat.GRAY16: (0, np.uint16),
    ImageFormat.SRGB48: (3, np.uint16),
    ImageFormat.SRGBA64: (4, np.uint16),
    ImageFormat.VEC32F1: (0, np.float32),
    ImageFormat.VEC32F2: (2, np.float32),
    ImageFormat.VEC32F4: (4, np.float32),
}


class Image:
    """A picture.

    Args:
        image_format: of the data.
        data: [height, width, channels] in RGB order, or [height, width]. Not copied.

    Raises:
        ValueError: the data are not of that format.
    """

    image_format: ImageFormat

    def __init__(self, image_format: ImageFormat, data: Array) -> None:
        if image_format not in _CHANNELS:
            raise ValueError(f"a picture has a format, got {image_format!r}")
        channels, dtype = _CHANNELS[image_format]
        array = np.asarray(data)
        shaped = array.ndim == 3 and array.shape[2] == channels if channels else array.ndim == 2
        if not shaped or array.dtype != dtype or not array.size:
            raise ValueError(
                f"{image_format.name} is {np.dtype(dtype)} [height, width"
                f"{f', {channels}' if channels else ''}], got {array.dtype} {list(array.shape)}"
            )
        self.image_format, self._data = image_format, array

    @classmethod
    def create_from_file(cls, file_name: str | os.PathLike[str]) -> Image:
        """Read a file, with Pillow or OpenCV.

        Raises:
            ImportError: neither is installed.
            OSError: it is no picture.
        """
        if optional_module("PIL.Image") is not None:
            try:
                with open_plain(file_name) as stream, opened_picture(stream, file_name) as picture:
                    return cls(ImageFormat.SRGB, np.array(converted(picture, "RGB")))
            except InputError as error:
                raise OSError(str(error)) from error
        opencv = optional_module("cv2")
        if opencv is None:
            raise ImportError("to read pictures install Pillow: pip install 'tflite-ort[images]'")
        pixels = opencv.imread(os.fspath(file_name))
        if pixels is None:
            raise OSError(f"{os.fspath(file_name)} is no picture")
        return cls(ImageFormat.SRGB, np.ascontiguousarray(pixels[..., ::-1]))

    @property
    def width(self) -> int:
        """In pixels."""
        return int(self._data.shape[1])

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self._data.shape[0])

    @property
    def channels(self) -> int:
        """How many."""
        return int(self._data.shape[2]) if self._data.ndim == 3 else 1

    @property
    def step(self) -> int:
        """How many bytes a row has."""
        return int(self._data.strides[0])

    def numpy_view(self) -> Array:
        """The data, to be read."""
        view = self._data.view()
        view.flags.writeable = False
        return view

    def __getitem__(self, place: tuple[int, ...]) -> Any:
        """A value, by row, column and channel."""
        return self._data[place].item()

    def is_contiguous(self) -> bool:
        """Whether no bytes lie between its rows."""
        return bool(self._data.flags.c_contiguous)

    def is_aligned(self, alignment_boundary: int) -> bool:
        """Whether all rows begin at multiples of so many bytes."""
        begin = self._data.__array_interface__["data"][0]
        return bool(begin % alignment_boundary == 0 == self.step % alignment_boundary)

    def is_empty(self) -> bool:
        """Never: there is no picture without pixels."""
        return False

    def uses_gpu(self) -> bool:
        """Never: pictures lie in main memory."""
        return False


def with_alpha(pixels: Array, alpha: Array | int) -> Array:
    """A picture with a fourth channel, uint8 [height, width, 4]."""
    made = np.empty((*pixels.shape[:2], 4), np.uint8)
    made[..., :3], made[..., 3] = pixels, alpha
    return made


def pixels_of(image: Image | Array) -> Array:
    """A picture as uint8 [height, width, 3], contiguous.

    Raises:
        ValueError: it is none.
    """
    array = image.numpy_view() if isinstance(image, Image) else np.asarray(image)
    if array.ndim == 2:
        array = np.repeat(array[:, :, np.newaxis], 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.dtype != np.uint8 or not array.size:
        raise ValueError(
            f"a picture is uint8 [height, width, 3], got {array.dtype} {list(array.shape)}; "
            "Image.create_from_file(path) reads a file"
        )
    bgr = isinstance(image, Image) and image.image_format is ImageFormat.SBGRA
    return np.ascontiguousarray(array[:, :, 2::-1] if bgr else array[:, :, :3])
