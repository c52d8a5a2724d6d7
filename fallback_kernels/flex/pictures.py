"""TensorFlow's operators that read and write pictures: BMP and the writing of PNG here, the others
by Pillow where it gives the pixels, or the bytes, that TensorFlow gives."""

from __future__ import annotations

import io
import math
import struct
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.fallback_kernels.idioms.fast_jpeg import fast_pixels
from tflite_ort.fallback_kernels.idioms.png_writing import png_of
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
Pixels = npt.NDArray[Any]

_MOST_PIXELS = 1 << 26
_STARTS = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "BMP": b"BM"}
# What Pillow reads a picture as, by its number of channels.
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_CHANNELS = {"1": 1, "L": 1, "I;16": 1, "LA": 2, "RGB": 3, "RGBA": 4}
_WHOLE = {"L", "RGB", "I;16B", "RGB;16B"}  # how Pillow calls what PNGs store in whole bytes
_BMP_HEADER = struct.Struct("<2s4x4xI4xiiHH")


@flex_kernel("DecodePng", "DecodeJpeg")
def decode_one(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pixels [H, W, channels] of a PNG or a JPEG; each operator reads both."""
    return (_decoded(op, _content(inputs[0])),)


@flex_kernel("DecodeAndCropJpeg")
def decode_part(op: View, inputs: Inputs, state: State) -> Outputs:
    """A part of the pixels of a JPEG."""
    content, window = _content(inputs[0]), inputs[1].tolist()
    if _kind(content) != "JPEG" or len(window) != 4:
        raise KernelError(f"a part {window} of what is no JPEG, or no part")
    pixels, (y, x, height, width) = _decoded(op, content), window
    inside = y + height <= pixels.shape[0] and x + width <= pixels.shape[1]
    if min(y, x) < 0 or min(height, width) <= 0 or not inside:
        raise KernelError(f"a part {window} of {pixels.shape[:2]} pixels")
    if pixels.shape[2] == 3 and _ends_within(content, x, width, pixels.shape[1]):
        raise KernelError(f"a part {window} of a JPEG with fewer columns of colours")
    return (np.ascontiguousarray(pixels[y : y + height, x : x + width]),)


def _ends_within(content: bytes, x: int, width: int, whole: int) -> bool:
    """Whether a part has a first or last column whose colours TensorFlow makes of those in the part
    alone: where several columns have one, and the part does not begin or end with the picture."""
    layers = _pillow("reading a JPEG").open(io.BytesIO(content), formats=["JPEG"]).layer
    step = max(layer[1] for layer in layers)
    if all(layer[1] == step for layer in layers):
        return False
    begins = x > 0 and x % (8 * step) == 0
    return begins or (x + width < whole and (x + width) % step == 0)


def _decoded(op: View, content: bytes) -> Pixels:
    node = node_of(op)
    attributes = node.attributes
    if attributes.get("ratio", 1) != 1 or not attributes.get("fancy_upscaling", True):
        raise KernelError("a JPEG of another size, or without fancy upscaling, is not implemented")
    method = attributes.get("dct_method", "")
    if method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise KernelError(f"dct_method {method} is not implemented")
    kind = _kind(content)
    if kind not in ("PNG", "JPEG"):
        raise KernelError(f"a picture of {kind} is not implemented here")
    exact = method == "INTEGER_ACCURATE"
    return _pixels(content, kind, node["channels"], op.output.dtype, exact=exact)


@flex_kernel("DecodeBmp")
def decode_bmp(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pixels [H, W, channels] of a BMP."""
    return (_bmp(_content(inputs[0]), node_of(op)["channels"]),)


@flex_kernel("DecodeGif")
def decode_gif(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pixels [1, H, W, 3] of a GIF of one frame."""
    content = _content(inputs[0])
    if _kind(content) != "GIF":
        raise KernelError("it is not a GIF")
    return (_pixels(content, "GIF", 3, np.dtype(np.uint8))[None],)


@flex_kernel("DecodeImage")
def decode_image(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pixels of a picture of any of these formats."""
    content, node, dtype = _content(inputs[0]), node_of(op), op.output.dtype
    kind, channels = _kind(content), node["channels"]
    stored = np.dtype(np.uint16 if dtype.kind == "f" and kind == "PNG" else dtype)
    if kind == "GIF":
        if channels not in (0, 3):
            raise KernelError(f"{channels} channels of a GIF")
        pixels = _pixels(content, kind, 3, np.dtype(np.uint8))
        pixels = pixels[None] if node["expand_animations"] else pixels
    elif kind == "BMP":
        pixels = _bmp(content, channels)
    else:
        stored = stored if kind == "PNG" else np.dtype(np.uint8)
        pixels = _pixels(content, kind, channels, stored)
    if pixels.dtype == dtype:
        return (pixels,)
    if dtype.kind == "f":
        largest = np.iinfo(pixels.dtype).max
        return (pixels.astype(np.float32) * np.float32(1 / largest),)
    return (pixels.astype(np.uint16) << 8,)  # of a PNG they come out of the decoder, 257 times


def _content(text: Any) -> bytes:
    if text.ndim:
        raise KernelError(f"contents have shape {list(text.shape)}, expected a scalar")
    return bytes(text[()])


def _kind(content: bytes) -> str:
    for kind, start in _STARTS.items():
        if content.startswith(start):
            return kind
    raise KernelError("it is no PNG, JPEG, GIF or BMP")


def _bmp(content: bytes, channels: int) -> Pixels:
    if len(content) < _BMP_HEADER.size or not content.startswith(b"BM"):
        raise KernelError("it is not a BMP")
    _, start, width, height, _, bits = _BMP_HEADER.unpack_from(content)
    found, rows = bits // 8, abs(height)
    if bits not in (8, 24, 32) or channels not in (0, found):
        raise KernelError(f"a BMP of {bits} bits for {channels} channels")
    if width <= 0 or rows == 0:
        raise KernelError(f"a BMP of {width} times {height}")
    step = (width * found + 3) // 4 * 4
    if start + step * (rows - 1) + width * found > len(content):
        raise KernelError("a BMP ends early")
    content = content[start : start + step * rows].ljust(step * rows, b"\0")
    lines = np.frombuffer(content, np.uint8).reshape(rows, step)
    pixels = lines[:, : width * found].reshape(rows, width, found)
    pixels = pixels[::-1] if height > 0 else pixels
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[found]
    return np.ascontiguousarray(pixels[:, :, order])


def _pillow(what: str) -> Any:
    pillow = optional_module("PIL.Image")
    if pillow is None:
        raise KernelError(f"{what} needs Pillow: pip install 'tflite-ort[images]'")
    return pillow


def _pixels(
    content: bytes, kind: str, channels: int, dtype: np.dtype[Any], *, exact: bool = False
) -> Pixels:
    """The pixels of a picture.

    Args:
        exact: a JPEG is decoded accurately, not in the faster way that TensorFlow takes else.
    """
    pillow = _pillow(f"reading a {kind}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
            image = pillow.open(io.BytesIO(content), formats=[kind])
            if image.width * image.height > _MOST_PIXELS:
                raise KernelError(f"a picture of {image.width} times {image.height}")
            if kind == "JPEG":
                return _of_jpeg(image, channels, exact)
            return _of_gif(image) if kind == "GIF" else _of_png(image, channels, dtype)
    except KernelError:
        raise
    except (
        pillow.DecompressionBombError,
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        IndexError,
        struct.error,
    ) as error:
        raise KernelError(f"the {kind} is damaged: {error}") from None


def _of_jpeg(image: Any, channels: int, exact: bool) -> Pixels:
    if image.mode not in ("L", "RGB") or channels not in (0, 1, 3):
        raise KernelError(f"a JPEG of mode {image.mode} for {channels} channels")
    if not exact:
        wanted = channels or _CHANNELS[image.mode]
        pixels = fast_pixels(image, _MODES[wanted])
        return np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] < wanted else pixels
    if channels == 1:  # the decoder leaves the colours out
        image.draft("L", image.size)
    wanted = channels or _CHANNELS[image.mode]
    image.load()
    if image.mode != _MODES[wanted] and image.mode != "L":
        raise KernelError(f"a JPEG of mode {image.mode} as gray is not implemented")
    return np.array(image.convert(_MODES[wanted])).reshape(image.height, image.width, wanted)


def _of_gif(image: Any) -> Pixels:
    whole = [tile[1] for tile in image.tile] == [(0, 0, *image.size)]
    if getattr(image, "n_frames", 1) != 1 or "transparency" in image.info or not whole:
        raise KernelError("a GIF of several frames, or with transparent pixels, is not implemented")
    image.load()
    return np.array(image.convert("RGB"))


def _of_png(image: Any, channels: int, dtype: np.dtype[Any]) -> Pixels:
    stored = {str(tile[3]) for tile in image.tile}
    if image.mode == "P":
        image.load()
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif "transparency" in image.info or image.mode not in _CHANNELS:
        raise KernelError(f"a PNG of mode {image.mode} with these colours is not implemented")
    found = _CHANNELS[image.mode]
    wanted = channels or found
    if wanted < 3 <= found:
        raise KernelError(f"a PNG of {found} channels as gray is not implemented")
    wide = image.mode == "I;16"
    if dtype.itemsize == 2 and not wide and any("16" in each for each in stored):
        raise KernelError("colours of 16 bits are not implemented")
    if wanted == 4 and found in (1, 3) and not stored <= _WHOLE:
        raise KernelError("alpha beside pixels of less than 8 bits is not implemented")
    if wide:
        pixels = np.array(image)[:, :, None]
        pixels = pixels if dtype.itemsize == 2 else (pixels >> 8).astype(np.uint8)
    else:
        mode = "L" if image.mode == "1" else image.mode
        pixels = np.array(image.convert(mode)).reshape(image.height, image.width, found)
        pixels = pixels.astype(np.uint16) * np.uint16(257) if dtype.itemsize == 2 else pixels
    return np.ascontiguousarray(_with_channels(pixels, wanted))


def _with_channels(pixels: Pixels, wanted: int) -> Pixels:
    """Gray as three colours, alpha left out or opaque."""
    found = pixels.shape[-1]
    colours, alpha = pixels[..., : 1 if found < 3 else 3], pixels[..., found - 1 :]
    if found in (1, 3):
        alpha = np.full_like(alpha, np.iinfo(pixels.dtype).max)
    if wanted >= 3 and colours.shape[-1] == 1:
        colours = np.repeat(colours, 3, axis=-1)
    return colours if wanted in (1, 3) else np.concatenate([colours, alpha], -1)


# Written ----------------------------------------------------------------------------------------


@flex_kernel("EncodePng")
def encode_png(op: View, inputs: Inputs, state: State) -> Outputs:
    """The PNG of each picture [..., H, W, channels]."""
    (pixels,), level = inputs, node_of(op)["compression"]
    if pixels.ndim < 3 or pixels.shape[-1] not in (1, 2, 3, 4) or not pixels.size:
        raise KernelError(f"pixels of shape {list(pixels.shape)} are no pictures")
    if not -1 <= level <= 9:
        raise KernelError(f"compression {level}")
    batch = pixels.shape[:-3]
    pictures = pixels.reshape(math.prod(batch), *pixels.shape[-3:])
    return (_texts([png_of(each, level) for each in pictures], batch),)


def _texts(contents: Sequence[bytes], shape: tuple[int, ...]) -> Any:
    made = np.empty(len(contents), np.object_)
    made[:] = contents
    return made.reshape(shape)


@flex_kernel("EncodeJpeg")
def encode_jpeg(op: View, inputs: Inputs, state: State) -> Outputs:
    """The JPEG of a picture [H, W, channels]."""
    node, (pixels,) = node_of(op), inputs
    channels = pixels.shape[-1] if pixels.ndim == 3 else 0
    if node["format"] and channels != {"grayscale": 1, "rgb": 3}[node["format"]]:
        raise KernelError(f"{channels} channels of a {node['format']} picture")
    density = node["x_density"], node["y_density"]
    if not all(0 <= each < 1 << 16 for each in density):
        raise KernelError(f"a density of {density}")
    content = _jpeg(
        pixels,
        quality=node["quality"],
        subsampling=2 if node["chroma_downsampling"] and channels > 1 else 0,
        progressive=node["progressive"],
        optimize=node["optimize_size"],
        dpi=density,
    )
    unit = {"in": b"\1", "cm": b"\2"}[node["density_unit"]]
    content = content[:_UNIT] + unit + content[_UNIT + 1 :]
    if node["xmp_metadata"]:
        told = _XMP + node["xmp_metadata"].encode("utf-8", "surrogateescape")
        if len(told) > _LONGEST_PART:
            raise KernelError(f"metadata of {len(told)} bytes")
        part = b"\xff\xe1" + struct.pack(">H", len(told) + 2) + told
        content = content[:_FIRST_PART] + part + content[_FIRST_PART:]
    return (_texts([content], ()),)


@flex_kernel("EncodeJpegVariableQuality")
def encode_jpeg_of_quality(op: View, inputs: Inputs, state: State) -> Outputs:
    """The JPEG of a picture [H, W, channels] in a quality."""
    pixels, quality = inputs
    channels = pixels.shape[-1] if pixels.ndim == 3 else 0
    sampling = 2 if channels > 1 else 0
    content = _jpeg(pixels, int(quality.item()), subsampling=sampling, dpi=(300, 300))
    return (_texts([content], ()),)


# Where a JPEG has the unit of its density, and where its first part ends.
_UNIT, _FIRST_PART = 13, 20
_LONGEST_PART = (1 << 16) - 3
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


def _jpeg(pixels: Pixels, quality: int, **told: Any) -> bytes:
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise KernelError(f"pixels of shape {list(pixels.shape)} are no picture")
    if max(pixels.shape[:2]) >= 1 << 16 or not 0 <= quality <= 100:
        raise KernelError(f"pixels of shape {list(pixels.shape)} in quality {quality}")
    image = _pillow("writing a JPEG").fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    stream = io.BytesIO()
    try:
        image.save(stream, "JPEG", quality=quality, **told)
    except (OSError, ValueError) as error:
        raise KernelError(f"the JPEG is not written: {error}") from None
    return stream.getvalue()
