"""Numbers cut to [0, 6] times one number: a HardSigmoid, or a part of the convolution before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    ReducerOptions,
)

Array = npt.NDArray[Any]
RULE = "hard sigmoids"
SEED = 3
SHAPE = (1, 5, 4, 32)
SIXTH, HALF_SIXTH = np.float32(1 / 6), np.float32(np.float16(1 / 6))
RELU6 = ActivationFunctionType.RELU6
EDGES = np.float32([-np.inf, np.inf, -0.0, 5.9999995, 6.0, 6.0000005, 1e-45, -1e-45, 3e38])


def model(factor: Array, outputs: Sequence[str] = ("y",)) -> bytes:
    """A convolution over the means of `x`, cut, times a factor, times `x`."""
    print(f"seed {SEED}")
    rng, mean, width = np.random.default_rng(SEED), (1, 1, 1, SHAPE[3]), SHAPE[3]
    tensors = {"x": T(SHAPE), "f": T.constant(factor), "axes": T.constant(np.int32([1, 2]))}
    tensors |= {name: T(mean) for name in "mcg"} | {"y": T(SHAPE)}
    weights = rng.normal(0, 1, (width, 1, 1, width)).astype(np.float32)
    tensors |= {"w": T.constant(weights), "b": T.constant(np.full(width, 3, np.float32))}
    convolution = Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=RELU6)
    nodes = [
        Node(Op.MEAN, ["x", "axes"], ["m"], ReducerOptions(keep_dims=True)),
        Node(Op.CONV_2D, ["m", "w", "b"], ["c"], convolution),
        Node(Op.MUL, ["c", "f"], ["g"], MulOptions()),
        Node(Op.MUL, ["x", "g"], ["y"], MulOptions()),
    ]
    return graph_model(tensors, nodes, outputs)


def dense() -> bytes:
    tensors = {"x": T((2, 16)), "f": T.constant(SIXTH), "y": T((2, 8)), "z": T((2, 8))}
    tensors["w"] = T.constant(np.random.default_rng(SEED).normal(0, 1, (8, 16)).astype(np.float32))
    cut = FullyConnectedOptions(fused_activation_function=RELU6)
    nodes = [
        Node(Op.FULLY_CONNECTED, ["x", "w"], ["y"], cut),
        Node(Op.MUL, ["f", "y"], ["z"], MulOptions()),
    ]
    return graph_model(tensors, nodes, ["z"])


def drawn(shape: tuple[int, ...] = SHAPE) -> Array:
    return np.random.default_rng(SEED).normal(0, 2, shape).astype(np.float32)


def both(content: bytes, x: Array) -> tuple[Sequence[Array], Sequence[Array]]:
    """The results with the rule and without it."""
    with without(RULE):
        single = answers(content, [x])
    return answers(content, [x]), single


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
@pytest.mark.parametrize("factor", [SIXTH, HALF_SIXTH, np.float32(0.25)])
def test_factors_of_channels(factor: np.float32, shape: tuple[int, ...]) -> None:
    x, content = drawn(), model(np.full(shape, factor))
    (ours,), (single,) = both(content, x)
    (theirs,) = litert(content, [x])
    # Of another factor than a sixth the sums are of products that were rounded once more.
    atol = 0 if factor == SIXTH else 1e-6 * float(np.abs(x).max())
    np.testing.assert_allclose(ours, single, rtol=0, atol=atol)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * float(np.abs(x).max()))
    assert optimised_nodes(content)["Mul"] == 1
    with without(RULE):
        assert optimised_nodes(content)["Mul"] == 2


def test_what_is_cut_at_its_edges() -> None:
    shape = (1, len(EDGES))
    tensors = {"x": T(shape), "zero": T.constant(np.zeros((), np.float32)), "a": T(shape)}
    tensors |= {"f": T.constant(SIXTH), "y": T(shape)}
    nodes = [
        Node(Op.ADD, ["x", "zero"], ["a"], AddOptions(fused_activation_function=RELU6)),
        Node(Op.MUL, ["a", "f"], ["y"], MulOptions()),
    ]
    content = graph_model(tensors, nodes, ["y"])
    (ours,), (single,) = both(content, EDGES.reshape(shape))
    np.testing.assert_array_equal(ours, single)
    np.testing.assert_array_equal(ours, litert(content, [EDGES.reshape(shape)])[0])
    assert optimised_nodes(content)["HardSigmoid"] == 1


def test_rows() -> None:
    x, content = drawn((2, 16)), dense()
    (ours,), (single,) = both(content, x)
    np.testing.assert_array_equal(ours, single)
    np.testing.assert_allclose(ours, litert(content, [x])[0], rtol=0, atol=1e-6)
    assert not optimised_nodes(content)["Mul"] + optimised_nodes(content)["Clip"]


@pytest.mark.parametrize(
    ("factor", "outputs"),
    [
        (SIXTH, ("y", "c")),  # what is cut is read
        (np.float32(-0.5), ("y",)),
        (np.float32(0), ("y",)),
        (np.float32(1e-30), ("y",)),
        (np.float32(np.nan), ("y",)),
        (np.linspace(0.1, 0.5, SHAPE[3], dtype=np.float32), ("y",)),
    ],
)
def test_what_stays(factor: Array, outputs: tuple[str, ...]) -> None:
    x, content = drawn(), model(factor, outputs)
    for ours, single in zip(*both(content, x), strict=True):
        np.testing.assert_array_equal(ours, single)
    with without(RULE):
        single_nodes = optimised_nodes(content)
    assert optimised_nodes(content) == single_nodes
