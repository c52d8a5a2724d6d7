"""Sums that an RMS norm reads are one node with it: the numbers of the unfused graph."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node as Operator
from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort.schema import ActivationFunctionType, AddOptions, MulOptions, Op, ReducerOptions

SEED = 5
RTOL = 2e-6  # the bound of an RMS norm
SKIP, NORM = "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization"


def residual(
    first: tuple[int, ...],
    second: tuple[int, ...],
    *,
    norms: int = 1,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> bytes:
    """The sum of two tensors and RMS norms of it; the sum is a result as well."""
    shape = np.broadcast_shapes(first, second)
    tensors = {"a": T(first), "b": T(second), "sum": T(shape)}
    tensors["epsilon"] = T.constant(np.float32(1e-6))
    tensors["axes"] = T.constant(np.int32([len(shape) - 1]))
    operators = [Operator(Op.ADD, ["a", "b"], ["sum"], AddOptions(activation))]
    results = ["sum"]
    for number in range(norms):
        scale = np.linspace(0.5, 2 + number, shape[-1], dtype=np.float32)
        names = {
            part: f"{part}{number}" for part in ("square", "mean", "more", "root", "norm", "y")
        }
        tensors[f"scale{number}"] = T.constant(scale)
        narrow = (*shape[:-1], 1)
        for part, name in names.items():
            tensors[name] = T(narrow if part in ("mean", "more", "root") else shape)
        operators += [
            Operator(Op.MUL, ["sum", "sum"], [names["square"]], MulOptions()),
            Operator(Op.MEAN, [names["square"], "axes"], [names["mean"]], ReducerOptions(True)),
            Operator(Op.ADD, [names["mean"], "epsilon"], [names["more"]], AddOptions()),
            Operator(Op.RSQRT, [names["more"]], [names["root"]]),
            Operator(Op.MUL, ["sum", names["root"]], [names["norm"]], MulOptions()),
            Operator(Op.MUL, [names["norm"], f"scale{number}"], [names["y"]], MulOptions()),
        ]
        results.append(names["y"])
    return graph_model(tensors, operators, results)


def check(model: bytes, *shapes: tuple[int, ...]) -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    inputs = [rng.normal(0.5, 2, shape).astype(np.float32) for shape in shapes]
    got = answers(model, inputs)
    for others in (unfused(model, inputs), litert(model, inputs)):
        for mine, each in zip(got, others, strict=True):
            np.testing.assert_allclose(mine, each, rtol=0, atol=RTOL * np.abs(each).max())


@pytest.mark.parametrize("shape", [(5, 32), (1, 7, 32), (3, 4, 16), (2, 3, 4, 16), (1, 1, 8)])
def test_one_node(shape: tuple[int, ...]) -> None:
    model = residual(shape, shape)
    check(model, shape, shape)
    counts = optimised_nodes(model)
    if len(shape) < 4:
        assert (counts[SKIP], counts[NORM], counts["Add"]) == (1, 0, 0)


def test_of_two_norms_one_is_joined() -> None:
    model = residual((1, 7, 32), (1, 7, 32), norms=2)
    check(model, (1, 7, 32), (1, 7, 32))
    counts = optimised_nodes(model)
    assert (counts[SKIP], counts[NORM], counts["Add"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("first", "second"), [((3, 4, 16), (4, 16)), ((3, 4, 16), (3, 1, 16)), ((3, 4, 16), (1,))]
)
def test_sums_that_broadcast_are_left_as_they_are(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    model = residual(first, second)
    check(model, first, second)
    assert optimised_nodes(model)[SKIP] == 0


def test_sums_with_an_activation_are_left_as_they_are() -> None:
    model = residual((4, 32), (4, 32), activation=ActivationFunctionType.RELU)
    check(model, (4, 32), (4, 32))
    assert optimised_nodes(model)[SKIP] == 0
