"""How a picture becomes an input: said by the metadata, shown by the model, or assumed.

All that read pictures take this from here: ``run``, ``predict``, `Predictor`, the tasks, and the
nodes of decoded exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.pixel_range import METADATA, PixelRange
from tflite_ort.schema import Tensor, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

LEVELS = 256
# What is outside a picture.
OUTSIDE = {"zeros": 0.0, "gray": 114.0}
CHANNELS = (1, 3, 4)


@dataclass(frozen=True, slots=True)
class PictureInput:
    """How a picture becomes the tensor that a network reads.

    Args:
        height, width: of the tensor; -1 where it has those of the picture.
        mean, std: (pixel - mean) / std, one or one per channel.
        letterbox: the region is made larger until it has the tensor's proportions; otherwise it is
            stretched.
        outside: what is outside the picture: a name in `OUTSIDE`, or its ``"border"``.
        dtype: of the tensor; integers take the pixels as they are, those of 8 bits with a sign less
            128.
        placed: an input ``places`` says where the elements of the tensor are in the picture, in
            32nds of pixels: x and y, float32 [2, height * width]. Otherwise they follow from the
            region of interest.
        gather: the node that reads the pixels, ``"GatherElements"`` or ``"Gather"``.
        scale, zero_point: integers store (pixel - mean) / std by these; a scale of 0: they take the
            pixels.
        bgr: blue is the first channel.
        channels_first: the tensor has its channels before its rows.
        source: where mean and std are from, as one says it.
    """

    height: int
    width: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)
    letterbox: bool = False
    outside: str = "border"
    dtype: str = "float32"
    placed: bool = False
    gather: str = "GatherElements"
    scale: float = 0.0
    zero_point: int = 0
    bgr: bool = False
    channels_first: bool = False
    source: str = METADATA

    @property
    def takes_pixels(self) -> bool:
        """Whether the tensor has the pixels as they are."""
        return not self.dtype.startswith("float") and not self.scale

    def codes(self) -> Array:
        """What an integer input stores for each pixel, [256], or [256, C] by channel."""
        levels = np.arange(LEVELS, dtype=np.float64)[:, np.newaxis]
        limits = np.iinfo(self.dtype)
        if self.takes_pixels:
            return (levels[:, 0] + (limits.min if limits.bits == 8 else 0)).astype(self.dtype)
        with np.errstate(all="ignore"):  # of numbers that a file makes up
            real = (levels - np.array(self.mean)) / np.array(self.std)
            stored = np.nan_to_num(np.round(real / self.scale) + self.zero_point)
        found: Array = stored.clip(limits.min, limits.max).astype(self.dtype)
        return found[:, 0] if found.shape[1] == 1 else found


class Layout(NamedTuple):
    """The sizes of a picture in a tensor; -1 for any."""

    height: int
    width: int
    channels: int
    channels_first: bool = False


def picture_layout(shape: Sequence[int]) -> Layout | None:
    """How a tensor of this shape holds a picture: [H, W, C], or [1, C, H, W]; None where it holds
    none."""
    if len(shape) not in (3, 4) or 0 in shape or (len(shape) == 4 and shape[0] not in (-1, 1)):
        return None
    height, width, channels = shape[-3:]
    if channels in CHANNELS:
        return Layout(height, width, channels)
    if len(shape) == 4 and shape[1] in CHANNELS and shape[2] > 1:
        return Layout(shape[2], shape[3], shape[1], channels_first=True)
    return None


def prepared(tensor: Tensor, found: PixelRange) -> PictureInput | None:
    """How a picture becomes `tensor`, whose pixels have a range; None where it takes no picture.

    An integer tensor takes the pixels as they are where that is what its scale and the range come
    to, within 1: so do MediaPipe and TFLite's task library.
    """
    signature = tensor.shape_signature
    shape = tuple(tensor.shape if signature is None or not len(signature) else signature)
    dtype, layout = NUMPY_DTYPE[tensor.type], picture_layout(shape)
    if layout is None or dtype.kind not in "fiu":
        return None
    how = PictureInput(
        layout.height,
        layout.width,
        found.mean,
        found.std,
        dtype=dtype.name,
        source=found.source,
        channels_first=layout.channels_first,
    )
    if dtype.kind == "f":
        return how
    scale, point = quantization_of(tensor)
    if tensor.type not in (TensorType.UINT8, TensorType.INT8):
        return replace(how, scale=scale, zero_point=point)
    if found.source != METADATA or not scale:
        return replace(how, source="")
    stored = replace(how, scale=scale, zero_point=point)
    wide, plain = stored.codes().astype(np.int32), how.codes().astype(np.int32)
    far = np.abs(wide.reshape(LEVELS, -1) - plain[:, np.newaxis]).max()
    return replace(how, source="") if far <= 1 else stored


def quantization_of(tensor: Tensor) -> tuple[float, int]:
    """Scale and zero point; a scale of 0 for none, and for several."""
    stored = tensor.quantization
    if stored is None or stored.scale is None or len(stored.scale) != 1:
        return 0.0, 0
    points = stored.zero_point
    return float(stored.scale[0]), int(points[0]) if points is not None and len(points) else 0
