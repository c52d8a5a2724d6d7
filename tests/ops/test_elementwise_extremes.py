"""MAXIMUM and MINIMUM of floats: LiteRT's default answer where a NaN stands, without slow nodes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Array, Node, T, assert_close, graph_model, one_op_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    MulOptions,
    Op,
    Padding,
)

EXTREMES = (Op.MAXIMUM, Op.MINIMUM)
BOTH = pytest.mark.parametrize("op", EXTREMES, ids=lambda op: op.name)
VALUES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 3e38, -3e38], np.float32)
REPEATED = 80  # of all pairs of values, more elements than those for which Where is as fast


def pairs() -> tuple[Array, Array]:
    first, second = np.meshgrid(np.tile(VALUES, REPEATED), VALUES)
    return first, second


def check(model: bytes, feeds: list[Array], what: str, kernels: str = "default") -> None:
    (got,), runs_on = ours(model, feeds)
    assert runs_on == {"ort"}
    assert_close(got, litert(model, feeds, kernels)[0], 0, 0, what)


@BOTH
def test_two_tensors(op: Op) -> None:
    first, second = pairs()
    model = one_op_model(op, [T(first.shape)] * 2, [T(first.shape)])
    check(model, [first, second], op.name)


@BOTH
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("limits", [VALUES, VALUES[3:], VALUES[5:6]], ids=len)
def test_constants(op: Op, is_first: bool, limits: Array) -> None:
    values = np.repeat(np.tile(VALUES, REPEATED), limits.size).reshape(-1, limits.size)
    constant, image = T.constant(limits), T(values.shape)
    operands = [constant, image] if is_first else [image, constant]
    model = one_op_model(op, operands, [image])
    check(model, [values], f"{op.name} by {limits}")
    if limits.size == 1 or (is_first and not np.isnan(limits).any()):
        assert not optimised_nodes(model)["Where"]


@BOTH
@pytest.mark.parametrize("number", [0.0, 6.0, -1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("is_first", [False, True])
def test_one_number(op: Op, number: float, shape: tuple[int, ...], is_first: bool) -> None:
    values = np.tile(VALUES, (4, 1))
    constant, image = T.constant(np.full(shape, number, np.float32)), T(values.shape)
    operands = [constant, image] if is_first else [image, constant]
    model = one_op_model(op, operands, [image])
    nodes = [node.op_type for node in export_onnx(model).graph.node]
    if np.isnan(number):
        assert "Where" in nodes or not is_first
        return
    assert nodes in (["Clip"], ["Relu"])
    check(model, [values], f"{op.name} by {number}")


@BOTH
def test_one_number_of_a_higher_rank(op: Op) -> None:
    constant = T.constant(np.full((1, 1, 1), 0.5, np.float32))
    model = one_op_model(op, [T(VALUES.shape), constant], [T((1, 1, VALUES.size))])
    check(model, [VALUES], op.name)


@BOTH
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(("factor", "is_plain"), [(0.2, True), (0.0, False), (np.inf, False)])
def test_leaky_relu_written_out(op: Op, is_first: bool, factor: float, is_plain: bool) -> None:
    values = np.tile(VALUES, (REPEATED, 1))
    tensors = {"x": T(values.shape), "scaled": T(values.shape), "y": T(values.shape)}
    tensors["factor"] = T.constant(np.float32(factor))
    names = ["scaled", "x"] if is_first else ["x", "scaled"]
    nodes = [
        Node(Op.MUL, ["x", "factor"], ["scaled"], MulOptions(ActivationFunctionType.NONE)),
        Node(op, names, ["y"]),
    ]
    model = graph_model(tensors, nodes, ["y"])
    # XNNPACK knows the pattern, and takes infinity * 0 for 0 in it.
    check(model, [values], f"{op.name} of {names}", "default" if factor else "reference")
    made = [node.op_type for node in export_onnx(model).graph.node]
    assert ("Where" not in made) is is_plain, made


def test_limits_are_fused_with_a_convolution() -> None:
    rng = np.random.default_rng(0)
    tensors = {
        "x": T((1, 16, 16, 16)),
        "weights": T.constant(rng.standard_normal((32, 3, 3, 16)).astype(np.float32)),
        "bias": T.constant(np.zeros(32, np.float32)),
        "sums": T((1, 16, 16, 32)),
        "zero": T.constant(np.float32(0)),
        "y": T((1, 16, 16, 32)),
    }
    nodes = [
        Node(
            Op.CONV_2D,
            ["x", "weights", "bias"],
            ["sums"],
            Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1),
        ),
        Node(Op.MAXIMUM, ["sums", "zero"], ["y"]),
    ]
    model = graph_model(tensors, nodes, ["y"])
    run = optimised_nodes(model)
    assert not run["Relu"] and not run["Max"] and not run["Where"], run
    image = rng.standard_normal((1, 16, 16, 16)).astype(np.float32)
    assert_close(ours(model, [image])[0][0], litert(model, [image])[0], 0, 1e-5, "CONV_2D")
