"""Channels that change places between groups, channels-first between two convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    Conv2DOptions,
    Op,
    Padding,
    ReshapeOptions,
    Rfft2dOptions,
    TensorType,
    TransposeOptions,
)

SHAPE, GROUPS = (2, 3, 5, 12), 3
STRIDES = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)


def shuffled(
    perm: tuple[int, ...] = (0, 1, 2, 4, 3), joined: tuple[int, ...] = SHAPE, seen: bool = False
) -> bytes:
    """A convolution, three operators that split, move and join its channels, and another one.

    Args:
        seen: what stands between the three are outputs too.
    """
    rng = np.random.default_rng(0)
    split = (*SHAPE[:3], GROUPS, SHAPE[3] // GROUPS)
    moved = tuple(split[i] for i in perm)
    weights = rng.normal(0, 0.3, (2, joined[3], 1, 1, joined[3])).astype(np.float32)
    tensors = {
        "image": T(SHAPE),
        "first": T.constant(weights[0]),
        "second": T.constant(weights[1]),
        "bias": T.constant(np.zeros(joined[3], np.float32)),
        "split_to": T.constant(np.array(split, np.int32)),
        "perm": T.constant(np.array(perm, np.int32)),
        "joined_to": T.constant(np.array(joined, np.int32)),
        "a": T(SHAPE),
        "b": T(split),
        "c": T(moved),
        "d": T(joined),
        "e": T(joined),
    }
    nodes = [
        Node(Op.CONV_2D, ["image", "first", "bias"], ["a"], STRIDES),
        Node(Op.RESHAPE, ["a", "split_to"], ["b"], ReshapeOptions(new_shape=split)),
        Node(Op.TRANSPOSE, ["b", "perm"], ["c"], TransposeOptions()),
        Node(Op.RESHAPE, ["c", "joined_to"], ["d"], ReshapeOptions(new_shape=joined)),
        Node(Op.CONV_2D, ["d", "second", "bias"], ["e"], STRIDES),
    ]
    return graph_model(tensors, nodes, ["e", "b", "c", "d"] if seen else ["e"])


VARIANTS = {
    "shuffled": shuffled(),
    "all seen": shuffled(seen=True),
    "rows change places": shuffled((0, 2, 1, 3, 4), (2, 5, 3, 12)),
    "back in place": shuffled((0, 1, 2, 3, 4)),
    "joined otherwise": shuffled(joined=(2, 5, 3, 12)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_against_litert(name: str) -> None:
    model, image = VARIANTS[name], np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)
    want, (got, runners) = litert(model, [image]), ours(model, [image])
    assert runners <= {"ort", "constant"}
    exported = export_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    for results in (got, session.run(None, {"image": image})):
        for a, b in zip(results, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


def test_planes_are_moved() -> None:
    orders = [
        list(node.attribute[0].ints)
        for node in export_onnx(VARIANTS["shuffled"]).graph.node
        if node.op_type == "Transpose"
    ]
    assert orders == [[0, 3, 1, 2], [0, 2, 1, 3, 4], [0, 2, 3, 1]]


def test_complex_numbers_are_joined_as_they_stand() -> None:
    """The last dimensions of a spectrum, as a channel shuffle joins those of an image."""
    shape, bins = (2, 3, 1, 8), 5
    tensors = {
        "x": T(shape),
        "length": T.constant(np.array([1, 8], np.int32)),
        "spectrum": T((2, 3, 1, bins), TensorType.COMPLEX64),
        "joined_to": T.constant(np.array((2, 3, bins), np.int32)),
        "y": T((2, 3, bins), TensorType.COMPLEX64),
        "size": T((2, 3, bins)),
    }
    nodes = [
        Node(Op.RFFT2D, ["x", "length"], ["spectrum"], Rfft2dOptions()),
        Node(Op.RESHAPE, ["spectrum", "joined_to"], ["y"], ReshapeOptions(new_shape=(2, 3, bins))),
        Node(Op.COMPLEX_ABS, ["y"], ["size"]),
    ]
    model, x = graph_model(tensors, nodes, ["size"]), np.random.default_rng(0).normal(size=shape)
    x = x.astype(np.float32)
    (want,) = litert(model, [x])
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    for got in (ours(model, [x])[0][0], session.run(None, {"x": x})[0]):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def planes(
    perm: tuple[int, ...] = (0, 2, 1, 3, 4), split: tuple[int, ...] = (2, 3, 4, 3, 5)
) -> bytes:
    """The shuffle of codes as converters from PyTorch write it: on planes, between TRANSPOSEs."""
    moved = tuple(split[i] for i in perm)
    joined = (moved[0], moved[1] * moved[2], *moved[3:])
    code: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.1, "zero_point": 3}
    shapes = [SHAPE, (2, 12, 3, 5), split, moved, joined, (*joined[:1], *joined[2:], joined[1])]
    tensors = {name: T(shape, **code) for name, shape in zip("abcdef", shapes, strict=True)}
    orders = {"first": (0, 3, 1, 2), "perm": perm, "last": (0, 2, 3, 1)}
    tensors |= {name: T.constant(np.int32(order)) for name, order in orders.items()}
    tensors |= {"to_split": T.constant(np.int32(split)), "to_join": T.constant(np.int32(joined))}
    nodes = [
        Node(Op.TRANSPOSE, ["a", "first"], ["b"], TransposeOptions()),
        Node(Op.RESHAPE, ["b", "to_split"], ["c"], ReshapeOptions(new_shape=split)),
        Node(Op.TRANSPOSE, ["c", "perm"], ["d"], TransposeOptions()),
        Node(Op.RESHAPE, ["d", "to_join"], ["e"], ReshapeOptions(new_shape=joined)),
        Node(Op.TRANSPOSE, ["e", "last"], ["f"], TransposeOptions()),
    ]
    return graph_model(tensors, nodes, ["f"])


@pytest.mark.parametrize(
    "model",
    [
        planes(),
        planes((0, 1, 2, 4, 3)),
        planes((0, 3, 2, 1, 4)),
        planes(split=(2, 2, 6, 5, 3)),
        planes(split=(4, 3, 2, 3, 5)),
    ],
    ids=["shuffled", "cells", "across", "other planes", "other batch"],
)
def test_planes_of_codes_are_shuffled(model: bytes) -> None:
    codes = np.random.default_rng(1).integers(-128, 127, SHAPE, np.int8, endpoint=True)
    np.testing.assert_array_equal(ours(model, [codes])[0][0], litert(model, [codes])[0])


def test_planes_of_codes_stay_channels_last() -> None:
    nodes = optimised_nodes(planes())
    assert nodes == {"Transpose": 1, "Reshape": 2}


# The shapes of an image [1, 4, 6, 8], or of its planes, after a RESHAPE to other channels.
OTHER_IMAGES = [(1, 4, 12, 4), (1, 2, 6, 16), (2, 2, 6, 8)]
OTHER_PLANES = [(1, 4, 8, 6), (1, 16, 2, 6), (2, 4, 4, 6)]


def reshaped_before(shape: tuple[int, ...], groups: int, code: dict[str, Any]) -> bytes:
    """An image that a TRANSPOSE makes, or planes of codes, then RESHAPE to `shape`, and a shuffle
    of its channels."""
    axis = 1 if code else 3
    split = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    perm = [axis + 1 if i == axis else axis if i == axis + 1 else i for i in range(5)]
    first = (0, 3, 1, 2) if code else (0, 2, 3, 1)
    given = (1, 4, 6, 8) if code else (1, 8, 4, 6)
    shapes = [given, tuple(given[i] for i in first), shape, split, [split[i] for i in perm], shape]
    tensors = {name: T(tuple(s), **code) for name, s in zip("abcdef", shapes, strict=True)}
    lists = {"first": first, "perm": perm, "to_c": shape, "to_d": split, "to_f": shape}
    tensors |= {name: T.constant(np.int32(numbers)) for name, numbers in lists.items()}
    nodes = [
        Node(Op.TRANSPOSE, ["a", "first"], ["b"], TransposeOptions()),
        Node(Op.RESHAPE, ["b", "to_c"], ["c"], ReshapeOptions()),
        Node(Op.RESHAPE, ["c", "to_d"], ["d"], ReshapeOptions()),
        Node(Op.TRANSPOSE, ["d", "perm"], ["e"], TransposeOptions()),
        Node(Op.RESHAPE, ["e", "to_f"], ["f"], ReshapeOptions()),
    ]
    return graph_model(tensors, nodes, ["f"])


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize(
    ("shape", "code"),
    [
        *((shape, {}) for shape in OTHER_IMAGES),
        *((shape, {"type": TensorType.INT8, "scale": 0.1}) for shape in OTHER_PLANES),
    ],
)
def test_other_channels_than_the_image_has(
    shape: tuple[int, ...], code: dict[str, Any], groups: int
) -> None:
    """A RESHAPE before the shuffle is one with the first of it, and changes what channels are."""
    model = reshaped_before(shape, groups, code)
    count = 192
    given = np.arange(count, dtype=np.int8).reshape(1, 4, 6, 8)
    if not code:
        given = np.arange(count, dtype=np.float32).reshape(1, 8, 4, 6)
    (want,) = litert(model, [given])
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    for got in (ours(model, [given])[0][0], session.run(None, {"a": given})[0]):
        np.testing.assert_array_equal(got, want)
