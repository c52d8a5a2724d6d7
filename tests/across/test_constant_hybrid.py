"""Constant floats meet integer weights as the option `hybrid` says, as computed ones do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    TensorType,
    TransposeConvOptions,
)

INT8 = TensorType.INT8
IMAGE, SIZE = (1, 3, 4, 8), np.array([1, 6, 8, 8], np.int32)
DEPTHWISE = DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1)
UP = TransposeConvOptions(Padding.SAME, 2, 2)
LAYERS: dict[Op, tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    Op.FULLY_CONNECTED: (FullyConnectedOptions(), (3, 8), (5, 8), (3, 5)),
    Op.BATCH_MATMUL: (BatchMatMulOptions(), (2, 3, 8), (2, 8, 5), (2, 3, 5)),
    Op.CONV_2D: (Conv2DOptions(Padding.SAME, 1, 1), IMAGE, (8, 3, 3, 8), IMAGE),
    Op.DEPTHWISE_CONV_2D: (
        DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1),
        IMAGE,
        (1, 3, 3, 8),
        IMAGE,
    ),
    Op.TRANSPOSE_CONV: (UP, IMAGE, (8, 3, 3, 8), (1, 6, 8, 8)),
}


def model(op: Op, given: T, weights: T) -> bytes:
    """What comes of floats and weights is added to the input."""
    options, _, _, made = LAYERS[op]
    tensors = {"x": T(made), "given": given, "weights": weights}
    tensors |= {"size": T.constant(SIZE), "sums": T(made), "y": T(made)}
    inputs = ["size", "weights", "given"] if op is Op.TRANSPOSE_CONV else ["given", "weights"]
    if op is not Op.BATCH_MATMUL:
        tensors["bias"] = T.constant(np.linspace(-1, 1, made[-1], dtype=np.float32))
        inputs.append("bias")
    nodes = [Node(op, inputs, ["sums"], options, 3), Node(Op.ADD, ["x", "sums"], ["y"])]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("op", LAYERS, ids=lambda op: op.name)
def test_constants_meet_integer_weights(op: Op) -> None:
    rng = np.random.default_rng(0)
    _, shape, of_weights, made = LAYERS[op]
    x = rng.normal(size=shape).astype(np.float32)
    codes = rng.integers(-127, 128, of_weights).astype(np.int8)
    several = op is Op.DEPTHWISE_CONV_2D  # LiteRT takes no other
    weights = T.constant(codes, INT8, scale=[0.02] * 8 if several else 0.02, axis=3 * several)
    coded, feeds = model(op, T.constant(x), weights), [np.zeros(made, np.float32)]
    # LiteRT ends the process where the rounded operand of some of these is a constant.
    (floats,), (rounded,) = (
        litert(model(op, T(shape), each), [*feeds, x], "reference")
        for each in (T.constant(codes * np.float32(0.02)), weights)
    )
    reach = np.abs(floats).max()
    for got in (ours(coded, feeds, hybrid="float")[0][0], *exported(coded, feeds)):
        assert np.abs(got - floats).max() <= 1e-6 * reach
    got = ours(coded, feeds, hybrid="dynamic")[0][0]
    assert np.abs(got - rounded).max() <= 1e-5 * reach
    assert np.abs(got - floats).max() > 1e-4 * reach
