"""Convolutions without the weights that meet nothing but padding: the results are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Op,
    Padding,
    PadOptions,
    TensorType,
)

SIDE, CHANNELS, SCALE = 5, 8, 0.1
KINDS = ("codes", "floats", "float image, 8-bit weights")


def layer(
    kind: str,
    *,
    dilation: int = SIDE,
    pad: int = 0,
    depthwise: bool = False,
    corner: float = 1,
    layers: int = 1,
) -> bytes:
    """A convolution by 3x3 windows, with SAME padding or of an image that a PAD padded.

    Args:
        corner: the first weight.
        layers: so many in a row, by the same weights.
    """
    rng = np.random.default_rng(3)
    shape = (1 if depthwise else CHANNELS, 3, 3, CHANNELS)
    filter = rng.integers(-127, 127, shape, np.int8, endpoint=True)
    weights = T.constant(filter, scale=0.0123)
    if kind == "floats":
        numbers = filter.astype(np.float32)
        numbers[0, 0, 0, 0] = corner
        weights = T.constant(numbers)
    bias = rng.integers(-99, 99, CHANNELS)
    code: dict[str, Any] = {}
    if kind == "codes":
        code = {"type": TensorType.INT8, "scale": SCALE, "zero_point": -5}
    whole = SIDE + 2 * pad
    side = whole - 2 * dilation if pad else SIDE
    tensors = {
        "x": T((1, SIDE, SIDE, CHANNELS), **code),
        "edges": T.constant(np.int32([(0, 0), (pad, pad), (pad, pad), (0, 0)])),
        "padded": T((1, whole, whole, CHANNELS), **code),
        "filter": weights,
        "bias": T.constant(bias.astype(np.int32 if code else np.float32)),
        "y": T((1, side, side, CHANNELS), **code),
    }
    window: dict[str, Any] = {"padding": Padding.VALID if pad else Padding.SAME}
    window |= {"stride_h": 1, "stride_w": 1}
    window |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation}
    inputs = ["padded" if pad else "x", "filter", "bias"]
    nodes = [Node(Op.PAD, ["x", "edges"], ["padded"], PadOptions())] * bool(pad)
    if depthwise:
        options = DepthwiseConv2DOptions(depth_multiplier=1, **window)
        nodes.append(Node(Op.DEPTHWISE_CONV_2D, inputs, ["y"], options))
    else:
        for number in range(1, layers):
            tensors[f"y{number}"] = tensors["y"]
            nodes.append(Node(Op.CONV_2D, inputs, [f"y{number}"], Conv2DOptions(**window)))
            inputs = [f"y{number}", *inputs[1:]]
        nodes.append(Node(Op.CONV_2D, inputs, ["y"], Conv2DOptions(**window)))
    read = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return graph_model({name: each for name, each in tensors.items() if name in read}, nodes, ["y"])


def exported(content: bytes, folder: Path) -> tuple[list[tuple[int, ...]], bool]:
    """The windows of the convolutions of an export, and whether it has a Pad."""
    model, made = folder / "model.tflite", folder / "model.onnx"
    model.write_bytes(content)
    export_onnx(model, made)
    nodes = onnx.load(made).graph.node
    kernels = [a.ints for node in nodes for a in node.attribute if a.name == "kernel_shape"]
    return [tuple(each) for each in kernels], "Pad" in {node.op_type for node in nodes}


def compare(content: bytes, kind: str) -> None:
    """Codes at both ends of their type too: the same as by all weights, one off where LiteRT rounds
    near a half."""
    shape, rng = (1, SIDE, SIDE, CHANNELS), np.random.default_rng(5)
    images = [rng.normal(size=shape).astype(np.float32)]
    if kind == "codes":
        ends = [np.full(shape, end, np.int8) for end in (-128, 127)]
        images = [rng.integers(-128, 127, shape, np.int8, endpoint=True), *ends]
    for image in images:
        ((got,), _), (want,) = ours(content, [image]), litert(content, [image])
        if kind == "codes":
            with without("weights that meet the image"):
                ((whole,), _) = ours(content, [image])
            np.testing.assert_array_equal(got, whole)
            assert np.abs(got.astype(int) - want).max() <= 1
        else:
            # Some roundings of sums of eight products.
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("pad", [0, SIDE])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_one_weight_is_left(kind: str, pad: int, depthwise: bool, tmp_path: Path) -> None:
    content = layer(kind, pad=pad, depthwise=depthwise)
    assert exported(content, tmp_path) == ([(1, 1)], False)
    compare(content, kind)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_weights_that_meet_one_cell_stay(kind: str, tmp_path: Path) -> None:
    content = layer(kind, dilation=SIDE - 1)
    assert exported(content, tmp_path) == ([(3, 3)], False)
    compare(content, kind)


def test_an_image_that_is_rounded_is_rounded_as_before(tmp_path: Path) -> None:
    """LiteRT rounds each cell by itself for windows of one cell, the whole image for others."""
    assert exported(layer(KINDS[2]), tmp_path) == ([(3, 3)], False)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_weights_that_make_nan_of_zeros_stay(number: float, tmp_path: Path) -> None:
    content = layer("floats", corner=number)
    assert exported(content, tmp_path) == ([(3, 3)], False)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_layers_of_the_same_weights_share_what_is_left(kind: str) -> None:
    made = export_onnx(layer(kind, layers=3)).graph
    (weights,) = [each for each in made.initializer if len(each.dims) == 4]
    assert list(weights.dims) == [CHANNELS, CHANNELS, 1, 1]


def test_other_pads_stay(tmp_path: Path) -> None:
    """Windows over the cells around the image have no weight in it: those of the operator with less
    padding would be fewer."""
    assert exported(layer("floats", dilation=SIDE, pad=SIDE + 1), tmp_path)[0] == [(3, 3)]
