"""A picture of any size as the input: crop, rotation, letterbox and normalisation in the graph.

A region of interest is five numbers: the middle x and y, width and height, in 0..1 of the picture,
and the rotation in radians, clockwise as the picture is seen. Pixels are interpolated as on
MediaPipe's CPU path: coordinates in 32nds of a pixel, results rounded to 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflite_ort.decode.nodes import Nodes

WHOLE = (0.5, 0.5, 1.0, 1.0, 0.0)
_FRACTIONS = 32.0
_MOST_BYTES = 2**31 - 3


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a picture becomes the tensor that a network reads.

    Args:
        height, width: of the tensor.
        mean, std: (pixel - mean) / std, one or one per channel.
        letterbox: the region is made larger until it has the tensor's proportions; otherwise it is
            stretched.
        outside: what is outside the picture: ``"zeros"`` or its ``"border"``.
        dtype: of the tensor; integers take the pixels as they are, signed ones less 128.
    """

    height: int
    width: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)
    letterbox: bool = False
    outside: str = "border"
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Projection:
    """How points of the tensor, in 0..1, become points of the picture.

    Args:
        matrix: float32 [3, 2]; (x, y, 1) times it is a point in 0..1 of the picture.
        depth: what z is multiplied by.
        cosine, sine: of the rotation.
        size: width and height of the picture, float32 [2]; None where there is no picture.
    """

    matrix: str
    depth: str
    cosine: str
    sine: str
    size: str | None


def add_image_input(nodes: Nodes, tensor: str, how: Preparation) -> Projection:
    """Make `tensor`, which was an input of the graph, from a picture and a region of interest."""
    image = nodes.input("image", np.uint8, ["height", "width", 3])
    roi = nodes.input("roi", np.float32, [5], WHOLE)
    shape = nodes.op("Shape", image)
    size = nodes.cast(nodes.pick(shape, 1, 0), np.float32)
    centre = nodes.mul(nodes.part(roi, 0, 2), size)
    extent = nodes.mul(nodes.part(roi, 2, 4), size)
    depth = nodes.div(nodes.pick(extent, 0), nodes.pick(size, 0))
    if how.letterbox:
        extent = _with_proportions(nodes, extent, how.height / how.width)
    angle = nodes.pick(roi, 4)
    cosine, sine = nodes.op("Cos", angle), nodes.op("Sin", angle)
    pixels = _pixel_matrix(nodes, centre, extent, cosine, sine)
    values = _sampled(nodes, image, nodes.pick(shape, 1, 0), pixels, how)
    nodes.named(tensor, _normalised(nodes, values, how))
    return Projection(nodes.div(pixels, size), depth, cosine, sine, size)


def _with_proportions(nodes: Nodes, extent: str, ratio: float) -> str:
    """Width and height of a region made larger until its height is `ratio` times its width."""
    swapped = nodes.pick(extent, 1, 0)
    wished = nodes.mul(swapped, np.array([1 / ratio, ratio], np.float32))
    return nodes.op("Max", extent, wished)


def _pixel_matrix(nodes: Nodes, centre: str, extent: str, cosine: str, sine: str) -> str:
    """[3, 2]: what (x, y, 1) in 0..1 of the tensor is multiplied by to give pixels."""
    turned = nodes.matrix([[cosine, sine], [nodes.op("Neg", sine), cosine]])
    sides = nodes.mul(turned, nodes.reshape(extent, 2, 1))
    middle = nodes.mul(nodes.op("ReduceSum", sides, np.array([0]), keepdims=1), 0.5)
    return nodes.join(sides, nodes.sub(nodes.reshape(centre, 1, 2), middle))


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """The two pixels next to a place along an axis, of which one may be outside the picture.

    Args:
        low, high: where their rows or columns begin among the picture's bytes, int32 [1, N].
        part: how far the place is from the lower to the higher one, float32 [1, N].
        inside: of each, 1.0 or 0.0; None where places are within the picture.
    """

    low: str
    high: str
    part: str
    inside: tuple[str, str] | None


def _sampled(nodes: Nodes, image: str, shape: str, pixels: str, how: Preparation) -> str:
    """Pixels [1, 3, height, width] in 0..255.

    Only the pixels around each place are read, so that the size of the picture does not matter.

    Args:
        shape: width and height of the picture.
    """
    at = _places(nodes, pixels, how)
    counts = nodes.join(np.array([3]), nodes.mul(nodes.pick(shape, 0), np.array([3])))
    x, y = (
        _neighbours(nodes, *parts, how.outside)
        for parts in zip(
            nodes.ops("Split", at, outputs=2, num_outputs=2),
            nodes.ops("Split", nodes.cast(shape, np.float32), outputs=2, num_outputs=2),
            nodes.ops("Split", nodes.cast(counts, np.int32), outputs=2, num_outputs=2),
            strict=True,
        )
    )
    flat = _flat(nodes, image)
    rows = [
        _mixed(nodes, *(_pixels(nodes, flat, row, column) for column in (x.low, x.high)), x)
        for row in (y.low, y.high)
    ]
    mixed = nodes.op("Floor", nodes.add(_mixed(nodes, rows[0], rows[1], y), 0.5))
    return nodes.reshape(mixed, 1, 3, how.height, how.width)


def _places(nodes: Nodes, pixels: str, how: Preparation) -> str:
    """Where the tensor's elements are in the picture: x and y in 32nds of a pixel, whole numbers,
    float32 [2, N]."""
    y, x = np.mgrid[: how.height, : how.width]
    points = np.stack([x / how.width, y / how.height, np.ones(x.shape)]).reshape(3, -1)
    matrix = nodes.op("Transpose", nodes.mul(pixels, _FRACTIONS), perm=[1, 0])
    return nodes.op("Round", nodes.op("MatMul", matrix, points.astype(np.float32)))


def _neighbours(nodes: Nodes, at: str, size: str, count: str, outside: str) -> _Neighbours:
    """The pixels around places [1, N] along an axis.

    Args:
        size: of the picture.
        count: of bytes from one to the next.
    """
    last = nodes.sub(size, 1.0)
    if outside == "border":
        at = _limited(nodes, at, nodes.mul(last, _FRACTIONS))
    at = nodes.mul(at, 1 / _FRACTIONS)
    low = nodes.op("Floor", at)
    part, high = nodes.sub(at, low), nodes.add(low, 1.0)
    within = [_limited(nodes, each, last) for each in (low, high)]
    begins = [nodes.mul(nodes.cast(each, np.int32), count) for each in within]
    if outside == "border":
        return _Neighbours(*begins, part, None)
    first, second = (
        nodes.cast(nodes.op("Equal", *pair), np.float32)
        for pair in zip((low, high), within, strict=True)
    )
    return _Neighbours(*begins, part, (first, second))


def _limited(nodes: Nodes, values: str, last: str) -> str:
    return nodes.op("Max", nodes.op("Min", values, last), 0.0)


def _flat(nodes: Nodes, image: str) -> str:
    """All bytes of a picture, [bytes]. The graph fails where int32 cannot count them."""
    count = nodes.op("Size", image)
    wrong = nodes.op("Div", count, _MOST_BYTES)
    one = nodes.op("Gather", np.array([-1]), nodes.reshape(wrong, 1))
    return nodes.op("Reshape", image, one)


def _pixels(nodes: Nodes, flat: str, row: str, column: str) -> str:
    """The pixels in `row` and `column` as float32 [3, N]."""
    begins = nodes.add(row, column)
    places = nodes.add(begins, np.arange(3, dtype=np.int32).reshape(3, 1))
    found = nodes.op("GatherElements", flat, nodes.reshape(places, -1), axis=0)
    return nodes.cast(nodes.reshape(found, 3, -1), np.float32)


def _mixed(nodes: Nodes, low: str, high: str, along: _Neighbours) -> str:
    """What is between two pixels. All numbers are multiples of 1/1024 below 256: it is exact."""
    if along.inside is not None:
        low, high = (
            nodes.mul(each, there) for each, there in zip((low, high), along.inside, strict=True)
        )
    return nodes.add(low, nodes.mul(nodes.sub(high, low), along.part))


def _normalised(nodes: Nodes, values: str, how: Preparation) -> str:
    """[1, height, width, 3] as the network wants them."""
    if how.dtype == "float32":
        mean, std = (np.array(each, np.float32).reshape(-1, 1, 1) for each in (how.mean, how.std))
        values = nodes.mul(nodes.sub(values, mean) if mean.any() else values, 1 / std)
    elif how.dtype == "int8":
        values = nodes.sub(values, 128.0)
    return nodes.cast(nodes.op("Transpose", values, perm=[0, 2, 3, 1]), how.dtype)


def no_projection(nodes: Nodes) -> Projection:
    """Points stay as they are, in 0..1 of the tensor."""
    matrix = nodes.op("Identity", np.array([[1, 0], [0, 1], [0, 0]], np.float32))
    one, zero = nodes.op("Identity", 1.0), nodes.op("Identity", 0.0)
    return Projection(matrix, one, one, zero, None)


def projected(nodes: Nodes, points: str, to: Projection) -> str:
    """Points [..., 2] of the tensor as points of the picture."""
    linear = nodes.op("MatMul", points, nodes.part(to.matrix, 0, 2))
    return nodes.add(linear, nodes.pick(to.matrix, 2))
