"""TensorFlow's images: colors, crops, bicubic resizing, projections."""

from __future__ import annotations

from collections.abc import Callable
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


def crop_places(first: Array, last: Array, old: int, new: int) -> Array:
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
    y = crop_places(boxes[:, 0], boxes[:, 2], height, rows)[:, :, None, None]
    x = crop_places(boxes[:, 1], boxes[:, 3], width, columns)[:, None, :, None]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    y, x = (np.where(np.isfinite(v), v, 0).clip(0, n - 1) for v, n in ((y, height), (x, width)))
    number = images[:, None, None]

    def pick(at_y: Array, at_x: Array) -> Array:
        place = (number, at_y.astype(np.int64)[..., 0], at_x.astype(np.int64)[..., 0])
        return np.asarray(image[place], np.float32)

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


def _reflected(at: Array, size: int) -> Array:
    if size <= 1:
        return np.zeros_like(at)
    twice, long = at.dtype.type(2 * size), at.dtype.type(size)
    low = np.where(at < -twice, twice * np.trunc(-at / twice) + at, at)
    low = np.where(low < -long, low + twice, -low - 1)
    high = at - twice * np.trunc(at / twice)
    high = np.where(high >= long, twice - high - 1, high)
    return np.where(at < 0, low, np.where(at > size - 1, high, at)).clip(0, size - 1)


def _wrapped(at: Array, size: int) -> Array:
    if size <= 1:
        return np.zeros_like(at)
    last = at.dtype.type(size - 1)
    low = at + size * (np.trunc(-at / last) + 1)
    high = at - size * np.trunc(at / last)
    return np.where(at < 0, low, np.where(at > last, high, at)).clip(0, last)


# What TensorFlow takes for a place outside of an image.
_OUTSIDE: dict[str, Callable[[Array, int], Array]] = {
    "CONSTANT": lambda at, size: at,
    "NEAREST": lambda at, size: at.clip(0, size - 1),
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}


@flex_kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pixels of the places that a projection sends the new ones to."""
    images, transforms, sizes = inputs[:3]
    node, fill = node_of(op), np.float32(inputs[3].item() if len(inputs) > 3 else 0)
    outside, kind = _OUTSIDE.get(node["fill_mode"]), node["interpolation"]
    if outside is None or kind not in ("NEAREST", "BILINEAR"):
        raise KernelError(f"fill mode {node['fill_mode']!r}, interpolation {kind!r}")
    if len(transforms) not in (1, len(images)) or transforms.shape[1:] != (8,):
        raise KernelError(f"transforms {transforms.shape} of {len(images)} images")
    _, height, width, channels = images.shape
    rows, columns = _sides(sizes, len(images) * channels)
    y, x = np.arange(rows, dtype=np.float32)[:, None], np.arange(columns, dtype=np.float32)
    a = transforms.astype(np.float32).T[..., None, None]
    with np.errstate(all="ignore"):
        scale = a[6] * x + a[7] * y + 1
        at_x, at_y = ((a[i] * x + a[i + 1] * y + a[i + 2]) / scale for i in (0, 3))
        at_x, at_y = outside(at_x, width), outside(at_y, height)
    seen = (scale != 0) & np.isfinite(at_x) & np.isfinite(at_y)
    most = np.float32(LONGEST_SIDE)  # before numpy 2 clip widens floats for such a whole number
    at_x, at_y = (np.where(seen, at, np.float32(-2)).clip(-2, most) for at in (at_x, at_y))
    shape = (len(images), rows, columns)
    number = np.arange(len(images))[:, None, None]

    def pick(at_y: Array, at_x: Array) -> Array:
        inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
        i, j = (np.where(inside, at, 0).astype(np.int64) for at in (at_y, at_x))
        found = images[number, np.broadcast_to(i, shape), np.broadcast_to(j, shape)]
        return np.asarray(np.where(inside[..., None], found, fill.astype(images.dtype)))

    if kind == "NEAREST":
        return (pick(_rounded(at_y), _rounded(at_x)).astype(images.dtype),)
    low_y, low_x = np.floor(at_y), np.floor(at_x)
    past_y, past_x = (at_y - low_y)[..., None], (at_x - low_x)[..., None]
    wide = np.float64 if images.dtype == np.float64 else np.float32
    lines = [
        (1 - past_x) * pick(line, low_x).astype(wide) + past_x * pick(line, low_x + 1).astype(wide)
        for line in (low_y, low_y + 1)
    ]
    result = (1 - past_y) * lines[0] + past_y * lines[1]
    result = np.where(seen[..., None], result, fill)
    return (result.astype(images.dtype),)


def _rounded(x: Array) -> Array:
    """Halves away from 0."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x))


refuse_rest("images")
