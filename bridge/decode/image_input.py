"""A picture of any size as the input: crop, rotation, letterbox and normalisation in the graph.

A region of interest is five numbers: the middle x and y, width and height, in 0..1 of the picture,
and the rotation in radians, clockwise as the picture is seen. Pixels are interpolated as on
MediaPipe's CPU path: coordinates in 32nds of a pixel, results rounded to 8 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.picture_input import OUTSIDE, PictureInput
from tflite_ort.decode.sampling import WHOLE

FRACTIONS = 32.0
DEGREES = np.float32(180.0 / math.pi)


Array = npt.NDArray[Any]

_MOST_BYTES = 2**31 - 3


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


def add_image_input(nodes: Nodes, tensor: str, how: PictureInput) -> Projection:
    """Make `tensor`, which was an input of the graph, from a picture and a region of interest."""
    image = nodes.input("image", np.uint8, ["height", "width", 3])
    roi = nodes.input("roi", np.float32, [5], WHOLE)
    shape = nodes.op("Shape", image)
    size = nodes.cast(nodes.pick(shape, 1, 0), np.float32)
    region = _region(nodes, roi, size, how)
    if how.placed:
        at = nodes.input("places", np.float32, [2, how.height * how.width])
    else:
        at = places(nodes, region.centre, region.extent, region.angle, how.height, how.width)
    values = _sampled(nodes, image, nodes.pick(shape, 1, 0), at, how)
    nodes.named(tensor, normalised(nodes, values, how))
    return region.projection(nodes, size)


def add_region(nodes: Nodes, how: PictureInput) -> Projection:
    """The projection of `add_image_input` without the picture, from inputs ``size``, its width and
    height, and ``roi``."""
    size = nodes.input("size", np.float32, [2])
    roi = nodes.input("roi", np.float32, [5], WHOLE)
    return _region(nodes, roi, size, how).projection(nodes, size)


@dataclass(frozen=True, slots=True)
class _Region:
    """A region of interest: its middle and its sides in pixels, [2], its turn, and what z is
    multiplied by."""

    centre: str
    extent: str
    angle: str
    depth: str

    def projection(self, nodes: Nodes, size: str) -> Projection:
        """From points of the tensor to those of a picture of this size."""
        cosine, sine = nodes.op("Cos", self.angle), nodes.op("Sin", self.angle)
        pixels = _pixel_matrix(nodes, self.centre, self.extent, cosine, sine)
        return Projection(nodes.div(pixels, size), self.depth, cosine, sine, size)


def _region(nodes: Nodes, roi: str, size: str, how: PictureInput) -> _Region:
    centre = nodes.mul(nodes.part(roi, 0, 2), size)
    extent = nodes.mul(nodes.part(roi, 2, 4), size)
    depth = nodes.div(nodes.pick(extent, 0), nodes.pick(size, 0))
    if how.letterbox:
        extent = _with_proportions(nodes, extent, how.height / how.width)
    return _Region(centre, extent, nodes.pick(roi, 4), depth)


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


def _sampled(nodes: Nodes, image: str, shape: str, at: str, how: PictureInput) -> str:
    """Pixels [1, 3, height, width] in 0..255.

    Only the four pixels around each place are read, so that the size of the picture does not
    matter. All sums are multiples of 1/1024 below 256: they are exact.

    Args:
        shape: width and height of the picture, int64 [2].
        at: where the tensor's elements are in it, in 32nds of pixels: x and y, float32 [2, N].
    """
    last = nodes.sub(nodes.reshape(nodes.cast(shape, np.float32), 2, 1), 1.0)
    at, low = _between_pixels(nodes, at, last, how)
    first, steps = _bytes(nodes, low, shape, bgr=how.bgr)
    flat = _flat(nodes, image)
    across, down = nodes.ops("Split", steps, outputs=2, num_outputs=2)
    right, below = nodes.add(first, across), nodes.add(first, down)
    corners = (first, right), (below, nodes.add(right, down))
    mix = _between if how.outside == "border" else _between_or_outside
    fill = OUTSIDE.get(how.outside, 0.0)
    x, y = nodes.ops("Split", nodes.sub(at, low), outputs=2, num_outputs=2)
    more_x, more_y = nodes.ops("Split", nodes.op("Min", last, 1.0), outputs=2, num_outputs=2)
    upper, lower = (
        mix(nodes, *ends, x, more_x)
        for ends in (
            (_pixels(nodes, flat, start, how, fill), _pixels(nodes, flat, end, how, fill))
            for start, end in corners
        )
    )
    mixed = mix(nodes, upper, lower, y, more_y)
    whole = nodes.op("Floor", nodes.add(mixed, fill + 0.5))
    return nodes.reshape(whole, 1, 3, how.height, how.width)


def _between_pixels(nodes: Nodes, at: str, last: str, how: PictureInput) -> tuple[str, str]:
    """Places in pixels, and the first of the two columns and rows there; x and y, float32 [2, N].

    Args:
        at: in 32nds of pixels.
        last: column and row of the picture, [2, 1].
    """
    if how.outside == "border":
        at = _limited(nodes, at, nodes.mul(last, FRACTIONS))
    at = nodes.mul(at, 1 / FRACTIONS)
    # So that there is a second one, but in a picture of one column or row.
    return at, _limited(nodes, nodes.op("Floor", at), nodes.sub(last, 1.0))


def _limited(nodes: Nodes, values: str, last: str) -> str:
    return nodes.op("Max", nodes.op("Min", values, last), 0.0)


def _bytes(nodes: Nodes, low: str, shape: str, *, bgr: bool) -> tuple[str, str]:
    """Which bytes of the picture pixels in columns and rows `low` have, int32 [3, N], and how many
    bytes further those in the next column and row are, [2]; 0 where there is only one."""
    width = nodes.pick(shape, 0)
    counts = nodes.mul(nodes.join(np.array([1]), nodes.reshape(width, 1)), 3)
    more = nodes.op("Min", nodes.sub(shape, 1), 1)
    counts, steps = (nodes.cast(each, np.int32) for each in (counts, nodes.mul(counts, more)))
    begins = nodes.mul(nodes.cast(low, np.int32), nodes.reshape(counts, 2, 1))
    columns, rows = nodes.ops("Split", begins, outputs=2, num_outputs=2)
    channels = np.arange(3, dtype=np.int32)[:: -1 if bgr else 1].reshape(3, 1)
    return nodes.add(nodes.add(columns, rows), channels), steps


def _flat(nodes: Nodes, image: str) -> str:
    """All bytes of a picture, [bytes]. The graph fails where int32 cannot count them."""
    count = nodes.op("Size", image)
    wrong = nodes.op("Div", count, _MOST_BYTES)
    one = nodes.op("Gather", np.array([-1]), nodes.reshape(wrong, 1))
    return nodes.op("Reshape", image, one)


def _pixels(nodes: Nodes, flat: str, places: str, how: PictureInput, fill: float) -> str:
    """Bytes [3, N] as float32, less what is outside the picture."""
    found = nodes.op(how.gather, flat, nodes.reshape(places, -1), axis=0)
    values = nodes.cast(nodes.reshape(found, 3, -1), np.float32)
    return nodes.sub(values, fill) if fill else values


def _between(nodes: Nodes, low: str, high: str, part: str, more: str) -> str:
    """What is `part` of the way from `low` to `high`."""
    return nodes.add(low, nodes.mul(nodes.sub(high, low), part))


def _between_or_outside(nodes: Nodes, low: str, high: str, part: str, more: str) -> str:
    """The same where there are zeros around the picture, and `part` is below 0 or above 1 there.

    Args:
        more: 0.0 if `high` is `low`, because the picture has no more pixels, otherwise 1.0.
    """
    near = nodes.op("Relu", nodes.sub(1.0, nodes.op("Abs", part)))
    other = nodes.op("Relu", nodes.sub(1.0, nodes.op("Abs", nodes.sub(part, 1.0))))
    return nodes.add(nodes.mul(low, near), nodes.mul(high, nodes.mul(other, more)))


def normalised(nodes: Nodes, values: str, how: PictureInput) -> str:
    """Pixels [1, C, height, width] as [1, height, width, C], or the channels first, as the network
    wants them."""
    if how.dtype == "float32":
        mean, std = (np.array(each, np.float32).reshape(-1, 1, 1) for each in (how.mean, how.std))
        values = nodes.mul(nodes.sub(values, mean) if mean.any() else values, 1 / std)
    elif not how.takes_pixels:
        values = _looked_up(nodes, values, how.codes())
    elif how.dtype == "int8":
        values = nodes.sub(values, 128.0)
    last = values if how.channels_first else nodes.op("Transpose", values, perm=[0, 2, 3, 1])
    return nodes.cast(last, how.dtype)


def _looked_up(nodes: Nodes, values: str, table: Array) -> str:
    """What a table [256], or [256, C] by channel, has for pixels [1, C, height, width]."""
    places = nodes.cast(values, np.int32)
    if table.ndim == 2:
        first = np.arange(table.shape[1], dtype=np.int32).reshape(-1, 1, 1) * len(table)
        places = nodes.add(places, first)
    return nodes.op("Gather", np.ascontiguousarray(table.T).reshape(-1), places)


def no_projection(nodes: Nodes) -> Projection:
    """Points stay as they are, in 0..1 of the tensor."""
    matrix = nodes.op("Identity", np.array([[1, 0], [0, 1], [0, 0]], np.float32))
    one, zero = nodes.op("Identity", 1.0), nodes.op("Identity", 0.0)
    return Projection(matrix, one, one, zero, None)


def projected(nodes: Nodes, points: str, to: Projection) -> str:
    """Points [..., 2] of the tensor as points of the picture."""
    linear = nodes.op("MatMul", points, nodes.part(to.matrix, 0, 2))
    return nodes.add(linear, nodes.pick(to.matrix, 2))


def places(nodes: Nodes, centre: str, extent: str, angle: str, height: int, width: int) -> str:
    """Where the elements of a tensor are, in 32nds of pixels: x and y, float32 [2, N].

    These are the nodes of what `tflite_ort.decode.warp` computes with numpy. Corners are rounded to
    float32 as OpenCV rounds them; places are polynomials of column and row in float64. In a region
    that is not turned, places in the middle between two 32nds go to the even one.

    Args:
        centre, extent: x and y, width and height of the region in pixels, float32 [2].
        angle: by how much it is turned, in radians, float32.
    """
    upper_left, upper_right, lower_right, lower_left = _corners(nodes, centre, extent, angle)
    left, up = nodes.sub(upper_right, lower_right), nodes.sub(lower_left, lower_right)
    skew = nodes.sub(nodes.add(nodes.sub(upper_left, upper_right), lower_right), lower_left)
    area = _cross(nodes, left, up)
    g = nodes.div(_cross(nodes, skew, up), area)
    h = nodes.div(_cross(nodes, left, skew), area)
    by_column = _slope(nodes, upper_left, upper_right, g, width)
    by_row = _slope(nodes, upper_left, lower_left, h, height)
    columns = np.arange(width, dtype=np.float64).reshape(1, 1, width)
    rows = np.arange(height, dtype=np.float64).reshape(1, height, 1)
    start = nodes.reshape(upper_left, 2, 1, 1)
    down = nodes.add(nodes.mul(nodes.reshape(by_row, 2, 1, 1), rows), start)
    at = nodes.add(nodes.mul(nodes.reshape(by_column, 2, 1, 1), columns), down)
    factor = nodes.sub(np.float64(FRACTIONS), nodes.mul(h, rows * (FRACTIONS / height)))
    factor = nodes.sub(factor, nodes.mul(g, columns * (FRACTIONS / width)))
    whole = nodes.op("Round", nodes.mul(at, factor))
    return nodes.reshape(nodes.cast(whole, np.float32), 2, -1)


def _corners(nodes: Nodes, centre: str, extent: str, angle: str) -> list[str]:
    """Upper left, upper right, lower right and lower left: float64 [2], of numbers of float32."""
    degrees = nodes.cast(nodes.mul(angle, DEGREES), np.float64)
    turn = nodes.div(nodes.mul(degrees, np.float64(math.pi)), np.float64(180))
    halves = [
        nodes.mul(nodes.reshape(nodes.cast(nodes.op("Sin", each), np.float32), 1), 0.5)
        for each in (turn, nodes.add(turn, np.float64(math.pi / 2)))
    ]
    sine, cosine = halves
    width, height = nodes.pick(extent, 0), nodes.pick(extent, 1)
    along = nodes.mul(height, nodes.join(sine, nodes.op("Neg", cosine)))
    across = nodes.mul(width, nodes.join(cosine, sine))
    lower_left = nodes.sub(nodes.sub(centre, along), across)
    upper_left = nodes.sub(nodes.add(centre, along), across)
    twice = nodes.mul(centre, 2.0)
    upper_right, lower_right = nodes.sub(twice, lower_left), nodes.sub(twice, upper_left)
    found = (upper_left, upper_right, lower_right, lower_left)
    return [nodes.cast(each, np.float64) for each in found]


def _cross(nodes: Nodes, a: str, b: str) -> str:
    both = nodes.mul(a, nodes.pick(b, 1, 0))
    return nodes.sub(nodes.pick(both, 0), nodes.pick(both, 1))


def _slope(nodes: Nodes, start: str, end: str, bent: str, count: int) -> str:
    """How far it is from an element to the next one, [2]."""
    whole = nodes.add(nodes.sub(end, start), nodes.mul(end, bent))
    return nodes.div(whole, np.float64(count))
