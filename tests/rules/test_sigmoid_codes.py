"""SiLU of 16-bit codes by one table: the codes of LOGISTIC and MUL, of every code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import ActivationFunctionType, MulOptions, Op, TensorType

INT16 = TensorType.INT16
SHAPE = (1, 64, 64, 16)
CODES = np.arange(-32768, 32768).astype(np.int16).reshape(SHAPE)
NONE, RELU6 = ActivationFunctionType.NONE, ActivationFunctionType.RELU6


def model(
    scale: float,
    made: float,
    *,
    activation: ActivationFunctionType = NONE,
    exchanged: bool = False,
    outputs: tuple[str, ...] = ("y",),
    factor: str = "x",
) -> bytes:
    tensors = {
        "x": T(SHAPE, INT16, scale=scale),
        "sigmoid": T(SHAPE, INT16, scale=1 / 32768),
        "y": T(SHAPE, INT16, scale=made),
    }
    if factor != "x":
        tensors[factor] = T(SHAPE, INT16, scale=scale)
    operands = ["sigmoid", factor] if exchanged else [factor, "sigmoid"]
    nodes = [
        Node(Op.LOGISTIC, ["x"], ["sigmoid"], None, 3),
        Node(Op.MUL, operands, ["y"], MulOptions(fused_activation_function=activation), 4),
    ]
    return graph_model(tensors, nodes, outputs)


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("activation", [NONE, RELU6])
@pytest.mark.parametrize(
    ("scale", "made"),
    [
        *((0.00031, 0.0003), (0.001, 0.0004), (2e-5, 1.9e-5), (0.00031, 0.3)),
        (2.0**-12, 0.0002),  # where LiteRT's LOGISTIC is a function of fixed-point numbers
    ],
)
def test_every_code(
    scale: float, made: float, activation: ActivationFunctionType, exchanged: bool
) -> None:
    content = model(scale, made, activation=activation, exchanged=exchanged)
    nodes = optimised_nodes(content)
    assert (nodes["GatherElements"], nodes["Mul"]) == (1, 0)
    (got,) = answers(content, [CODES])
    with without("SiLU of 16-bit codes"):
        assert optimised_nodes(content)["Mul"] > 0
        (plain,) = answers(content, [CODES])
    np.testing.assert_array_equal(got, plain)
    np.testing.assert_array_equal(got, litert(content, [CODES])[0])


@pytest.mark.parametrize("change", [{"outputs": ("y", "sigmoid")}, {"factor": "z"}])
def test_what_is_no_silu(change: dict[str, tuple[str, ...] | str]) -> None:
    """The sigmoids are read elsewhere too, or meet other codes."""
    content = model(0.00031, 0.0003, **change)  # type: ignore[arg-type]
    assert optimised_nodes(content)["Mul"] > 0
    inputs = [CODES] if "factor" not in change else [CODES, CODES[:, ::-1].copy()]
    for mine, theirs in zip(answers(content, inputs), litert(content, inputs), strict=True):
        np.testing.assert_array_equal(mine, theirs)
