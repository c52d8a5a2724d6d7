"""MediaPipe's custom operators: pooling with positions, and parts of images around faces.

NGramHash and KmeansEmbeddingLookup have no translation: ONNX has no operator that hashes texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.indices import with_first
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import custom_translator
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.shapes.mediapipe import transposed_padding
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.well_known_options import (
    LandmarksToMatrixOptions,
    map_options,
    pool_options,
    transpose_conv_options,
)

_MOST_PLACES = 1 << 24  # of unpooled cells, constants of 8 bytes


@custom_translator("Convolution2DTransposeBias", versions=(1, 1), constants=("filter",))
def convolution2dtransposebias(op: OperatorView[Any], g: Graph) -> None:
    """ConvTranspose with the filter [N, KH, KW, C] as [C, N, KH, KW]."""
    options, input, filter = transpose_conv_options(op), op["input"], op["filter"]
    kernel, strides = filter.shape[1:3], (options.stride_h, options.stride_w)
    (top, bottom), (left, right) = (
        transposed_padding(options.padding, *sizes)
        for sizes in zip(input.shape[1:3], kernel, strides, strict=True)
    )
    result = g.op(
        "ConvTranspose",
        g.read(input, layout=Layout.FIRST),
        g.weights(filter, permutation=(3, 0, 1, 2)),
        g.read(op["bias"]),
        kernel_shape=kernel,
        strides=strides,
        pads=[top, left, bottom, right],
    )
    g.write(op.output, result, layout=Layout.FIRST)


@custom_translator("MaxPoolingWithArgmax2D", versions=(1, 1))
def maxpoolingwithargmax2d(op: OperatorView[Any], g: Graph) -> None:
    """MaxPool with indices, which are converted from cells of the image to those of the window."""
    options, input = pool_options(op), op["input"]
    kernel, strides = (
        (options.filter_height, options.filter_width),
        (options.stride_h, options.stride_w),
    )
    padding = [
        explicit_padding(options.padding, *sizes)
        for sizes in zip(input.shape[1:3], kernel, strides, strict=True)
    ]
    pooled, cells = g.op_multi(
        "MaxPool",
        g.read(input, layout=Layout.FIRST),
        outputs=2,
        kernel_shape=kernel,
        strides=strides,
        pads=[before for before, _ in padding] + [after for _, after in padding],
    )
    output, positions = op.outputs
    activation = options.fused_activation_function
    g.write(output, pooled, layout=Layout.FIRST, activation=activation)
    first_cells = [
        np.arange(count) * stride - before
        for count, stride, (before, _) in zip(output.shape[1:3], strides, padding, strict=True)
    ]
    position = _in_window(g, cells, input.shape[1:3], first_cells, options.filter_width)
    position = g.cast(position, positions.dtype)
    if positions.dtype == np.float32:
        position = g.op("Add", position, g.constant(np.float32(0.1)))
    g.write(positions, position, layout=Layout.FIRST)


def _in_window(
    g: Graph,
    cells: ir.Value,
    size: Sequence[int],
    first_cells: Sequence[npt.NDArray[np.int64]],
    filter_width: int,
) -> ir.Value:
    """The positions in their windows, counted row by row, of `cells` [B, C, rows, columns].

    Args:
        cells: numbers of cells, counted over all images.
        size: (H, W) of an image.
        first_cells: where the windows begin.
    """
    width = g.ints(size[1])
    cell = g.op("Mod", cells, g.ints(math.prod(size)))
    tops, lefts = first_cells
    row = g.op("Sub", g.op("Div", cell, width), g.ints(tops[:, None]))
    column = g.op("Sub", g.op("Mod", cell, width), g.ints(lefts))
    return g.op("Add", g.op("Mul", row, g.ints(filter_width)), column)


@custom_translator("MaxUnpooling2D", versions=(1, 1))
def maxunpooling2d(op: OperatorView[Any], g: Graph) -> None:
    """ScatterElements into zeros, by the position of a cell in the whole output."""
    options, input = pool_options(op), op["input"]
    kernel = (options.filter_height, options.filter_width)
    if kernel != (options.stride_h, options.stride_w):
        raise Untranslatable(f"a filter of {kernel} with other strides")
    batch, height, width, channels = input.shape
    if math.prod(input.shape) > _MOST_PLACES:
        raise Untranslatable(f"an input of shape {input.shape}")
    first = np.arange(batch * height)[:, None] * kernel[0] * width + np.arange(width)
    first = first.reshape(batch, height, width, 1) * kernel[1] * channels + np.arange(channels)
    position = g.whole(op["indices"])
    filter_width = g.ints(kernel[1])
    row, column = (g.op(name, position, filter_width) for name in ("Div", "Mod"))
    row = g.op("Mul", row, g.ints(width * kernel[1] * channels))
    column = g.op("Mul", column, g.ints(channels))
    place = g.op("Add", g.op("Add", row, column), g.ints(first))
    zeros = g.op("ConstantOfShape", g.ints([math.prod(op.output.shape)]))
    cells = (g.reshape(value, (-1,)) for value in (place, g.read(input)))
    g.write(op.output, g.reshape(g.op("ScatterElements", zeros, *cells), op.output.shape))


@custom_translator("TransformTensorBilinear", versions=(2, 2))
def transformtensorbilinear(op: OperatorView[Any], g: Graph) -> None:
    """The image at the transformed centres of the output cells; 0 outside it.

    A place that counts is inside, so that it has four cells around it, of which some may be one.
    """
    image, places, zero = op["image"], places_of_cells(op, g), g.constant(np.float32(0))
    inside = _between_cells(g, image, places.nearest, places.sides)
    g.write(op.output, g.op("Where", places.outside, zero, inside))


class Places(NamedTuple):
    """Where the cells of the output lie in the image, (x, y) in cells.

    Attributes:
        sides: of the image.
        centres: of the output cells, transformed.
        nearest: the places in the image nearest to them, counted from the centre of its first cell.
        outside: whether they are elsewhere.
    """

    sides: npt.NDArray[np.float32]
    centres: ir.Value
    nearest: ir.Value
    outside: ir.Value


def places_of_cells(op: OperatorView[Any], g: Graph) -> Places:
    """The places that TransformTensorBilinear reads."""
    image, (_, rows, columns, _) = op["image"], op.output.shape
    sides = np.array(image.shape[2:0:-1], np.float32)
    y, x = np.indices((rows, columns)) + 0.5
    centres = np.stack([x, y], axis=-1).astype(np.float32)
    centre = transformed(g, op["transform"], g.constant(centres[None]))
    place = g.op("Sub", centre, g.constant(np.float32(0.5)))
    nearest = g.op("Min", g.op("Max", place, g.constant(np.float32(0))), g.constant(sides - 1))
    away = g.op("ReduceSum", g.op("Abs", g.op("Sub", place, nearest)), g.ints([3]))
    return Places(sides, centre, nearest, g.op("Greater", away, g.constant(np.float32(0))))


def _between_cells(
    g: Graph, image: TensorView, place: ir.Value, sides: npt.NDArray[np.float32]
) -> ir.Value:
    """The image [1, H, W, C] at places [1, rows, columns, (x, y)] in it, between its cells.

    Not every runtime has GridSample with the names that modes have since opset 20.
    """
    _, height, width, channels = image.shape
    low = g.op("Min", g.op("Floor", place), g.constant(np.maximum(sides - 2, 0)))
    part = g.op("Sub", place, low)
    x, y = (g.op("Gather", g.cast(low, ir.DataType.INT64), g.ints(axis), axis=3) for axis in (0, 1))
    first = g.op("Add", g.op("Mul", y, g.ints(width)), x)
    across, down = min(width - 1, 1), width * min(height - 1, 1)
    cells = g.reshape(g.read(image), (height * width, channels))

    def at(step: int) -> ir.Value:
        return g.op("Gather", cells, g.op("Add", first, g.ints(step)), axis=0)

    def mixed(start: ir.Value, end: ir.Value, axis: int) -> ir.Value:
        weight = g.op("Gather", part, g.ints([axis]), axis=3)
        return g.op("Add", start, g.op("Mul", g.op("Sub", end, start), weight))

    upper = mixed(at(0), at(across), 0)
    return mixed(upper, mixed(at(down), at(down + across), 0), 1)


@custom_translator("TransformLandmarks", versions=(2, 2))
def transformlandmarks(op: OperatorView[Any], g: Graph) -> None:
    """MatMul of x and y; z is unchanged."""
    landmarks = g.read(op["landmarks"])
    if op.output.shape[2] == 2:
        g.write(op.output, transformed(g, op["transform"], landmarks))
        return
    points, rest = g.op_multi("Split", landmarks, g.ints([2, 1]), outputs=2, axis=2)
    moved = transformed(g, op["transform"], points)
    g.write(op.output, g.op("Concat", moved, rest, axis=2))


def transformed(g: Graph, transform: TensorView, points: ir.Value) -> ir.Value:
    """Points [..., (x, y)] transformed by the first two rows of a matrix [1, 4, 4]."""
    matrix = g.reshape(g.read(transform), (4, 4))
    turn = g.op("Transpose", _part(g, matrix, (0, 0), (2, 2)), perm=[1, 0])
    shift = g.reshape(_part(g, matrix, (0, 3), (2, 4)), (2,))
    return g.op("Add", g.op("MatMul", points, turn), shift)


def _part(g: Graph, value: ir.Value, starts: Sequence[int], ends: Sequence[int]) -> ir.Value:
    """A slice along the first axes."""
    return g.op("Slice", value, g.ints(starts), g.ints(ends))


@custom_translator("Landmarks2TransformMatrix", versions=(2, 2))
def landmarks2transformmatrix(op: OperatorView[Any], g: Graph) -> None:
    """The bounding box of rotated points.

    The cosine and sine of the rotation are computed from the difference of two points, without the
    angle itself.
    """
    options = map_options(op, LandmarksToMatrixOptions)
    points, (_, count, width) = g.read(op["landmarks"]), op["landmarks"].shape
    if not is_known(width):
        points = with_first(g, points, g.ints([1, count, 3]), 3)
    points = _part(g, g.reshape(points, (-1, 3)), (0, 0), (count, 2))
    there = _turn(g, points, options)
    back = g.op("Transpose", there, perm=[1, 0])
    subset = g.op("Gather", points, g.ints(options.subset_idxs))
    upright = g.op("MatMul", subset, back)
    highest, lowest = (g.op(name, upright, g.ints([0])) for name in ("ReduceMax", "ReduceMin"))
    size = np.array([[options.output_width, options.output_height]], np.float32)
    growth = np.array([[options.scale_x, options.scale_y]], np.float32) / size
    scale = g.op("Mul", g.op("Sub", highest, lowest), g.constant(growth))
    middle = g.op("Mul", g.op("Add", highest, lowest), g.constant(np.float32(0.5)))
    centre = g.op("MatMul", back, g.op("Transpose", middle, perm=[1, 0]))
    turned = g.op("Mul", back, scale)
    shift = g.op("Sub", centre, g.op("MatMul", turned, g.constant(size.T / 2)))
    rest = g.constant([[0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
    rows = g.op("Concat", turned, g.constant(np.zeros((2, 1), np.float32)), shift, axis=1)
    g.write(op.output, g.reshape(g.op("Concat", rows, rest, axis=0), (1, 4, 4)))


def _turn(g: Graph, points: ir.Value, options: LandmarksToMatrixOptions) -> ir.Value:
    """[[cos, -sin], [sin, cos]] of the wanted angle less that from the left to the right point.

    Two equal points have the angle 0.
    """
    ends = (options.right_rotation_idx, options.left_rotation_idx)
    right, left = (g.op("Gather", points, g.ints([end])) for end in ends)
    difference = g.op("Sub", right, left)  # [1, (x, y)]
    length = g.op("ReduceL2", difference)
    apart = g.op("Greater", length, g.constant(np.float32(0)))
    direction = g.op(
        "Where", apart, g.op("Div", difference, length), g.constant([[1, 0]], np.float32)
    )
    cos, sin = math.cos(options.target_rotation_radians), math.sin(options.target_rotation_radians)
    # cos(a - b) = cos a cos b + sin a sin b, sin(a - b) = sin a cos b - cos a sin b
    entries = np.array([[cos, -sin, sin, cos], [sin, cos, -cos, sin]], np.float32)
    return g.reshape(g.op("MatMul", direction, g.constant(entries)), (2, 2))
