"""Functions of 16-bit codes by elements of a table: the same codes, in a tenth of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, Padding, Pool2DOptions, SoftmaxOptions, TensorType

SEED = 8
RULE = "elements of a table"
UNIT = 1 / 32768
SHAPES = [(1, 8, 9, 6), (500,), (3, 200), (2, 3, 4, 5, 6), (1, 64), (1, 300, 1), (1, 1, 1)]


def every_code(shape: tuple[int, ...]) -> Any:
    codes = np.random.default_rng(SEED).integers(-32768, 32768, shape).astype(np.int16)
    ends = np.int16([-32768, 32767, 0, -1])
    codes.reshape(-1)[:4] = ends[: codes.size]
    return codes


def check(content: bytes, codes: Any) -> None:
    with without(RULE):
        (single,) = answers(content, [codes])
        assert optimised_nodes(content)["GatherElements"] == 0
    (got,) = answers(content, [codes])
    np.testing.assert_array_equal(got, single)
    np.testing.assert_array_equal(got, litert(content, [codes])[0])


def model(op: Op, shape: tuple[int, ...], options: Any = None) -> bytes:
    x, y = (T(shape, TensorType.INT16, scale=scale) for scale in (0.00031, UNIT))
    return one_op_model(op, [x], [y], options, 3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", [Op.TANH, Op.LOGISTIC])
def test_functions(op: Op, shape: tuple[int, ...]) -> None:
    content = model(op, shape)
    check(content, every_code(shape))
    made = optimised_nodes(content)
    assert (made["GatherElements"], made["Gather"]) == (1, 0)
    assert made["Reshape"] == (0 if shape[-1] == np.prod(shape) else 2)


def test_more_elements_than_the_table_has() -> None:
    shape = (1, 70_000)
    check(model(Op.TANH, shape), every_code(shape))


def test_powers_of_a_softmax() -> None:
    shape = (2, 9, 40)
    content = model(Op.SOFTMAX, shape, SoftmaxOptions(beta=1.0))
    check(content, every_code(shape))
    assert optimised_nodes(content)["GatherElements"] == 1


def test_channels_first() -> None:
    shape = (1, 6, 8, 16)
    code: dict[str, Any] = {"type": TensorType.INT16, "scale": 0.00031}
    tensors = {"x": T(shape, **code), "a": T(shape, **code)}
    tensors |= {"b": T(shape, TensorType.INT16, scale=UNIT)}
    tensors |= {"y": T(shape, TensorType.INT16, scale=UNIT)}
    pool = Pool2DOptions(Padding.SAME, 1, 1, 3, 3)
    nodes = [
        Node(Op.MAX_POOL_2D, ["x"], ["a"], pool, version=3),
        Node(Op.TANH, ["a"], ["b"], version=3),
        Node(Op.MAX_POOL_2D, ["b"], ["y"], pool, version=3),
    ]
    check(graph_model(tensors, nodes, ["y"]), every_code(shape))


@pytest.mark.parametrize("shape", [(2, 64), (64, 1)], ids=str)
def test_few_elements_are_slices(shape: tuple[int, ...]) -> None:
    made = optimised_nodes(model(Op.TANH, shape))
    assert (made["GatherElements"], made["Gather"]) == (0, 1)
