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
    crop, start = _cropped(nodes, image, pixels, size)
    values = _sampled(nodes, crop, _moved(nodes, pixels, start), how)
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


def _cropped(nodes: Nodes, image: str, pixels: str, size: str) -> tuple[str, str]:
    """The part of the picture that the region touches, and the pixel where it begins [2]."""
    corners = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]], np.float32)
    at = nodes.op("MatMul", corners, pixels)
    axis = np.array([0])
    first = nodes.sub(nodes.op("Floor", nodes.op("ReduceMin", at, axis, keepdims=0)), 1.0)
    last = nodes.add(nodes.op("Ceil", nodes.op("ReduceMax", at, axis, keepdims=0)), 2.0)
    start = nodes.op("Max", nodes.op("Min", first, nodes.sub(size, 1.0)), 0.0)
    end = nodes.op("Max", nodes.op("Min", last, size), nodes.add(start, 1.0))
    ends = [nodes.cast(nodes.pick(each, 1, 0), np.int64) for each in (start, end)]
    return nodes.op("Slice", image, *ends, np.array([0, 1])), start


def _moved(nodes: Nodes, pixels: str, start: str) -> str:
    """The matrix [3, 2] for the pixels of a part of the picture that begins at `start`."""
    offset = nodes.op("Pad", nodes.reshape(start, 1, 2), np.array([2, 0, 0, 0]))
    return nodes.sub(pixels, offset)


def _sampled(nodes: Nodes, crop: str, pixels: str, how: Preparation) -> str:
    """Pixels [1, 3, height, width] in 0..255.

    Coordinates are computed as two rows, x and y, in 32nds of a pixel.
    """
    y, x = np.mgrid[: how.height, : how.width]
    points = np.stack([x / how.width, y / how.height, np.ones(x.shape)]).reshape(3, -1)
    matrix = nodes.op("Transpose", nodes.mul(pixels, _FRACTIONS), perm=[1, 0])
    at = nodes.op("Round", nodes.op("MatMul", matrix, points.astype(np.float32)))
    sizes = nodes.reshape(nodes.pick(nodes.op("Shape", crop), 1, 0), 2, 1)
    sizes = nodes.cast(sizes, np.float32)
    if how.outside == "border":  # twice as fast as GridSample's own way
        last = nodes.mul(nodes.sub(sizes, 1.0), _FRACTIONS)
        at = nodes.op("Max", nodes.op("Min", at, last), 0.0)
    wide, sizes = _of_even_binary_size(nodes, crop, sizes)
    # GridSample wants the middle of the first and of the last pixel half a pixel inside -1..1.
    inner = nodes.sub(nodes.op("Reciprocal", sizes), 1.0)
    grid = nodes.add(nodes.mul(at, nodes.div(2 / _FRACTIONS, sizes)), inner)
    pairs = nodes.reshape(nodes.op("Transpose", grid, perm=[1, 0]), 1, how.height, how.width, 2)
    planes = nodes.op("Transpose", wide, perm=[2, 0, 1])
    picture = nodes.cast(nodes.op("Unsqueeze", planes, np.array([0])), np.float32)
    options = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    sampled = nodes.op("GridSample", picture, pairs, **options)
    return nodes.op("Floor", nodes.add(sampled, 0.5))


def _of_even_binary_size(nodes: Nodes, crop: str, sizes: str) -> tuple[str, str]:
    """A picture with zeros at its right and lower edges, so that its sizes are powers of two, and
    these sizes [2, 1]: then all that GridSample computes is exact."""
    powers = nodes.op("Ceil", nodes.mul(nodes.op("Log", sizes), float(np.log2(np.e))))
    wide = nodes.op("Pow", 2.0, powers)
    more = nodes.reshape(nodes.cast(nodes.sub(wide, sizes), np.int64), 2)
    zeros = np.zeros(3, np.int64)
    ends = nodes.join(zeros, nodes.pick(more, 1, 0), zeros[:1])
    return nodes.op("Pad", crop, ends), wide


def _normalised(nodes: Nodes, values: str, how: Preparation) -> str:
    """[1, height, width, 3] as the network wants them."""
    if how.dtype == "float32":
        mean, std = (np.array(each, np.float32).reshape(-1, 1, 1) for each in (how.mean, how.std))
        values = nodes.mul(nodes.sub(values, mean), 1 / std)
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
