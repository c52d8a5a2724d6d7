"""TensorFlow's images: colors, crops, bicubic resizing, projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.elementwise import computed
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.images import bicubic_weights
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, MOST_CELLS
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def _contrasted(x: Array, factor: Array) -> Array:
    mean = x.mean(axis=(-3, -2), keepdims=True, dtype=x.dtype)
    return np.asarray((x - mean) * factor.astype(x.dtype) + mean)


@flex_kernel("AdjustContrastv2")
def contrast(op: View, inputs: Inputs, state: State) -> Outputs:
    """The distance from the mean of rows and columns, times a factor."""
    return (computed(lambda x: _contrasted(x, inputs[1]), inputs[0]),)


def _hue(x: Array) -> tuple[Array, Array, Array]:
    """(hue, greatest, range) of [..., 3]; the hue in 0..1."""
    red, green, blue = np.moveaxis(x, -1, 0)
    high, spread = x.max(axis=-1), x.max(axis=-1) - x.min(axis=-1)
    number = x.dtype.type
    norm = number(1 / 6) / spread
    hue = np.where(
        red == high,
        norm * (green - blue),
        np.where(
            green == high, norm * (blue - red) + number(2 / 6), norm * (red - green) + number(4 / 6)
        ),
    )
    hue = np.where(spread > 0, hue, number(0))
    return np.where(hue < 0, hue + number(1), hue), high, spread


def _shares(hue: Array) -> Array:
    """How much of each color [..., 3] a hue has."""
    six = hue * hue.dtype.type(6)
    red = np.abs(six - 3) - 1
    green, blue = 2 - np.abs(six - 2), 2 - np.abs(six - 4)
    return np.stack([red, green, blue], axis=-1).clip(0, 1)


def _to_hsv(x: Array) -> Array:
    hue, high, spread = _hue(x)
    saturation = np.where(high > 0, spread / high, x.dtype.type(0))
    return np.stack([hue, saturation, high], axis=-1)


def _to_rgb(x: Array) -> Array:
    hue, saturation, value = np.moveaxis(x, -1, 0)
    shares = _shares(hue)
    return np.asarray(
        ((1 - saturation)[..., None] + saturation[..., None] * shares) * value[..., None]
    )


def _turned(x: Array, delta: Array) -> Array:
    hue, high, spread = _hue(x)
    turned = hue + delta.astype(x.dtype)
    shares = _shares(turned - np.floor(turned))
    return np.asarray((high - spread)[..., None] + spread[..., None] * shares)


def _saturated(x: Array, scale: Array) -> Array:
    hsv = _to_hsv(x)
    hsv[..., 1] = (hsv[..., 1] * scale.astype(x.dtype)).clip(0, 1)
    return _to_rgb(hsv)


@flex_kernel("RGBToHSV")
def rgb_to_hsv(op: View, inputs: Inputs, state: State) -> Outputs:
    """Hue, saturation and value."""
    return (computed(_to_hsv, inputs[0]),)


@flex_kernel("HSVToRGB")
def hsv_to_rgb(op: View, inputs: Inputs, state: State) -> Outputs:
    """Red, green and blue."""
    return (computed(_to_rgb, inputs[0]),)


@flex_kernel("AdjustHue")
def hue(op: View, inputs: Inputs, state: State) -> Outputs:
    """The hue plus a number, around the circle."""
    return (computed(lambda x: _turned(x, inputs[1]), inputs[0]),)


@flex_kernel("AdjustSaturation")
def saturation(op: View, inputs: Inputs, state: State) -> Outputs:
    """The saturation times a factor."""
    return (computed(lambda x: _saturated(x, inputs[1]), inputs[0]),)


def _sides(sizes: Array, rest: int) -> tuple[int, int]:
    if sizes.shape != (2,) or (sizes <= 0).any() or (sizes > LONGEST_SIDE).any():
        raise KernelError(f"an image cannot have size {sizes[:2].tolist()}")
    if int(sizes[0]) * int(sizes[1]) * max(rest, 1) > MOST_CELLS:
        raise KernelError(f"{rest} images of {sizes.tolist()} are too many")
    return int(sizes[0]), int(sizes[1])


def _places(first: Array, last: Array, old: int, new: int) -> Array:
    """[boxes, new]: where the rows of crops are among the old ones."""
    one, edge = np.float32(1), np.float32(old - 1)
    if new == 1:
        return np.asarray(np.float32(0.5) * (first + last) * edge)[:, None]
    scale = (last - first) * edge / np.float32(new - one)
    return (first * edge)[:, None] + np.arange(new, dtype=np.float32) * scale[:, None]


@flex_kernel("CropAndResize")
def crops(op: View, inputs: Inputs, state: State) -> Outputs:
    """A box of an image, resized; a pixel outside of the image is the extrapolation value."""
    image, boxes, images, sizes = inputs
    node, (_, height, width, channels) = node_of(op), image.shape
    rows, columns = _sides(sizes, len(boxes) * channels)
    if ((images < 0) | (images >= len(image))).any():
        raise KernelError("box_ind names images that are not there")
    y = _places(boxes[:, 0], boxes[:, 2], height, rows)[:, :, None, None]
    x = _places(boxes[:, 1], boxes[:, 3], width, columns)[:, None, :, None]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    y, x = (np.where(np.isfinite(v), v, 0).clip(0, n - 1) for v, n in ((y, height), (x, width)))
    number = images[:, None, None]

    def pick(at_y: Array, at_x: Array) -> Array:
        place = (number, at_y.astype(np.int64)[..., 0], at_x.astype(np.int64)[..., 0])
        return image[place].astype(np.float32)

    if node["method"] == "nearest":
        result = pick(np.floor(y + np.float32(0.5)), np.floor(x + np.float32(0.5)))
    else:
        past_y, past_x = y - np.floor(y), x - np.floor(x)
        lines = []
        for line in (np.floor(y), np.ceil(y)):
            left, right = pick(line, np.floor(x)), pick(line, np.ceil(x))
            lines.append(left + (right - left) * past_x)
        result = lines[0] + (lines[1] - lines[0]) * past_y
    return (np.where(inside, result, np.float32(node["extrapolation_value"])).astype(np.float32),)


@flex_kernel("ResizeBicubic")
def bicubic(op: View, inputs: Inputs, state: State) -> Outputs:
    """Products with the weights of rows and of columns; float32."""
    image, sizes = inputs
    node, x = node_of(op), image.astype(np.float32)
    new = _sides(sizes, image.shape[0] * image.shape[3])
    given = node["align_corners"], node["half_pixel_centers"]
    rows, columns = (
        bicubic_weights(old, size, *given) for old, size in zip(x.shape[1:3], new, strict=True)
    )
    return (np.einsum("rh,nhwc,sw->nrsc", rows, x, columns, optimize=True).astype(np.float32),)


refuse_rest("images")
