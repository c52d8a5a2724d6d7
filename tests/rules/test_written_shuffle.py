"""Channel shuffles of float images as one Gather: the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort import BridgeError
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Conv2DOptions, Op, TensorType

RULE = "written shuffle"
SEED = 12
SHAPE = (2, 5, 3, 12)


def model(
    groups: Sequence[int] = (3, 4),
    order: Sequence[int] = (0, 1, 2, 4, 3),
    result: Sequence[int] = SHAPE,
    *,
    also: bool = False,
    convolved: bool = False,
    codes: bool = False,
) -> bytes:
    """A shuffle of `x`; convolved: between two convolutions; also: a further result."""
    b, rng = Builder(), np.random.default_rng(SEED)
    b.input("x", *SHAPE)

    def convolution(source: str, shape: Sequence[int]) -> str:
        weights = b.constant(rng.normal(0, 1, (shape[3], 1, 1, shape[3])))
        given = [source, weights, b.constant(np.zeros(shape[3]))]
        return b.op(Op.CONV_2D, given, shape, Conv2DOptions(stride_w=1, stride_h=1))

    image = convolution("x", SHAPE) if convolved else "x"
    apart = b.reshape(image, (*SHAPE[:3], *groups))
    shape = b.tensors[apart].shape
    turned = b.op(
        Op.TRANSPOSE, [apart, b.constant(order, np.int32)], [shape[axis] for axis in order]
    )
    made = b.reshape(turned, result)
    if convolved:
        made = convolution(made, result)
    if codes:
        for name, tensor in b.tensors.items():
            if tensor.type is TensorType.FLOAT32:
                b.tensors[name] = replace(tensor, type=TensorType.INT8, scale=0.1)
    return graph_model(b.tensors, b.nodes, [made, turned] if also else [made])


def check(content: bytes) -> None:
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).normal(0, 1, SHAPE).astype(np.float32)
    with without(RULE):
        single = answers(content, [x])
    for ours, one, theirs in zip(answers(content, [x]), single, litert(content, [x]), strict=True):
        np.testing.assert_array_equal(ours, one)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("convolved", [False, True])
@pytest.mark.parametrize("groups", [(3, 4), (2, 6), (6, 2)])
def test_the_numbers_of_single_operators(groups: Sequence[int], convolved: bool) -> None:
    content = model(groups, convolved=convolved)
    check(content)
    nodes = optimised_nodes(content)
    assert not nodes["Reshape"], nodes
    assert nodes["Gather"] == 1, nodes


@pytest.mark.parametrize(
    "changed",
    [
        {"order": (0, 2, 1, 4, 3)},
        {"order": (0, 1, 3, 2, 4), "result": (2, 15, 12)},
        {"result": (2, 3, 5, 12)},
        {"result": (2, 15, 12)},
        {"also": True},
    ],
)
def test_others_stay(changed: dict[str, Any]) -> None:
    content = model(**changed)
    check(content)
    assert not optimised_nodes(content)["Gather"]


def test_codes_stay() -> None:
    content = model(codes=True)
    codes = np.random.default_rng(SEED).integers(-128, 128, SHAPE).astype(np.int8)
    np.testing.assert_array_equal(answers(content, [codes])[0], litert(content, [codes])[0])
    assert not optimised_nodes(content)["Gather"]


def test_an_order_that_is_missing_is_refused() -> None:
    shape = (*SHAPE[:3], 3, 4)
    tensors = {"x": T(SHAPE), "a": T(shape), "b": T((*SHAPE[:3], 4, 3)), "y": T(SHAPE)}
    tensors |= {"to": T.constant(np.int32(shape)), "back": T.constant(np.int32(SHAPE))}
    nodes = [
        Node(Op.RESHAPE, ["x", "to"], ["a"]),
        Node(Op.TRANSPOSE, ["a"], ["b"]),
        Node(Op.RESHAPE, ["b", "back"], ["y"]),
    ]
    with pytest.raises(BridgeError):
        answers(graph_model(tensors, nodes, ["y"]), [np.zeros(SHAPE, np.float32)])
