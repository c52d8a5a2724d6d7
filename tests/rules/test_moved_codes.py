"""Codes that are moved between layers channels-last: the same codes, and no change of layout; and
floats that are moved between layers channels-first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    Conv2DOptions,
    DepthToSpaceOptions,
    Op,
    Padding,
    Pool2DOptions,
    ResizeNearestNeighborOptions,
    SpaceToDepthOptions,
    TensorType,
)

SEED = 5
CODES = [TensorType.INT8, TensorType.UINT8]


def between_layers(
    move: Op, options: Any, to: tuple[int, ...], type: TensorType, *operands: T
) -> Counter[str]:
    """The nodes of a network of a layer, `move` and a layer, once its codes are LiteRT's."""
    code: dict[str, Any] = {"type": type, "scale": 0.1, "zero_point": 77}
    weights: dict[str, Any] = {"type": type, "scale": 0.02, "zero_point": 0}
    if type is TensorType.UINT8:
        weights["zero_point"] = 128
    rng, layer = np.random.default_rng(SEED), Conv2DOptions(Padding.SAME, 1, 1)
    tensors, nodes = {"x": T((1, 6, 10, 16), **code)}, list[Node]()
    tensors |= {f"by{number}": each for number, each in enumerate(operands)}
    for number, (source, result, shape) in enumerate(
        (("x", "a", (1, 6, 10, 16)), ("b", "y", (*to[:3], 16)))
    ):
        if source == "b":
            tensors["b"] = T(to, **code)
            nodes.append(
                Node(
                    move,
                    ["a", *(f"by{i}" for i in range(len(operands)))],
                    ["b"],
                    options,
                    3 if operands else 1,
                )
            )
        filters = T((16, 3, 3, tensors[source].shape[3]), **weights).random(rng)
        tensors[f"w{number}"] = T.constant(filters, **weights)
        tensors[f"bias{number}"] = T.constant(np.zeros(16, np.int32), scale=0.002)
        tensors[result] = T(shape, **code)
        nodes.append(Node(Op.CONV_2D, [source, f"w{number}", f"bias{number}"], [result], layer, 3))
    content = graph_model(tensors, nodes, ["y"])
    x = tensors["x"].random(rng)
    np.testing.assert_array_equal(answers(content, [x])[0], litert(content, [x])[0])
    return optimised_nodes(content)


@pytest.mark.parametrize("type", CODES)
@pytest.mark.parametrize(
    "options",
    [
        ResizeNearestNeighborOptions(),
        ResizeNearestNeighborOptions(half_pixel_centers=True),
        ResizeNearestNeighborOptions(align_corners=True),
    ],
)
@pytest.mark.parametrize("to", [(12, 10), (6, 20), (5, 7), (3, 2)])
def test_pixels_are_gathered(
    to: tuple[int, int], options: ResizeNearestNeighborOptions, type: TensorType
) -> None:
    size, shape = T.constant(np.int32(to)), (1, *to, 16)
    made = between_layers(Op.RESIZE_NEAREST_NEIGHBOR, options, shape, type, size)
    assert made["Gather"] == sum(new != old for new, old in zip(to, (6, 10), strict=True))
    assert made["Resize"] == made["Transpose"] == 0


@pytest.mark.parametrize("type", CODES)
@pytest.mark.parametrize("side", [2, 4])
def test_channels_are_spread_by_one_move(side: int, type: TensorType) -> None:
    shape = (1, 6 * side, 10 * side, 16 // side**2)
    made = between_layers(Op.DEPTH_TO_SPACE, DepthToSpaceOptions(side), shape, type)
    assert (made["DepthToSpace"], made["Transpose"]) == (0, 1)


def spread(
    op: Op, images: int, cells: tuple[int, int], channels: int, side: int
) -> tuple[bytes, np.ndarray]:
    """Floats that are moved, with pools around them, and an input."""
    kind = SpaceToDepthOptions if op is Op.SPACE_TO_DEPTH else DepthToSpaceOptions
    before = (images, *cells, channels)
    after = (images, cells[0] * side, cells[1] * side, channels // side**2)
    if op is Op.SPACE_TO_DEPTH:
        before, after = after, before
    pool = Pool2DOptions(Padding.SAME, 1, 1, filter_width=2, filter_height=2)
    nodes = [
        Node(Op.MAX_POOL_2D, ["x"], ["a"], pool, 1),
        Node(op, ["a"], ["b"], kind(side), 1),
        Node(Op.MAX_POOL_2D, ["b"], ["y"], pool, 1),
    ]
    tensors = {"x": T(before), "a": T(before), "b": T(after), "y": T(after)}
    rng = np.random.default_rng(SEED)
    return graph_model(tensors, nodes, ["y"]), rng.standard_normal(before).astype(np.float32)


@pytest.mark.parametrize("op", [Op.DEPTH_TO_SPACE, Op.SPACE_TO_DEPTH])
@pytest.mark.parametrize(
    ("images", "cells", "channels", "side"),
    [(1, (16, 20), 16, 2), (3, (9, 7), 72, 3), (2, (5, 33), 32, 4), (1, (1, 64), 64, 8)],
)
def test_floats_are_moved_twice(
    op: Op, images: int, cells: tuple[int, int], channels: int, side: int
) -> None:
    content, x = spread(op, images, cells, channels, side)
    np.testing.assert_array_equal(answers(content, [x])[0], litert(content, [x])[0])
    made = optimised_nodes(content)
    assert made["DepthToSpace"] == made["SpaceToDepth"] == 0
    with without("spread channels"):
        assert optimised_nodes(content)["Transpose"] == made["Transpose"] - 2


def test_few_floats_are_moved_at_once() -> None:
    assert optimised_nodes(spread(Op.DEPTH_TO_SPACE, 1, (4, 4), 16, 2)[0])["DepthToSpace"] == 1
