"""NEG between DEQUANTIZE and QUANTIZE: one lookup, with the same codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, TensorType

RULE = "NEG of codes"
SEED = 11
SHAPE = (4, 64)
Kind = tuple[float, int]


def model(type: TensorType, given: Kind, made: Kind, *outputs: str) -> bytes:
    scale, zero = given
    tensors = {"x": T(SHAPE, type, scale=scale, zero_point=zero), "r": T(SHAPE), "n": T(SHAPE)}
    tensors["y"] = T(SHAPE, type, scale=made[0], zero_point=made[1])
    nodes = [
        Node(Op.DEQUANTIZE, ["x"], ["r"], version=2),
        Node(Op.NEG, ["r"], ["n"]),
        Node(Op.QUANTIZE, ["n"], ["y"]),
    ]
    return graph_model(tensors, nodes, ["y", *outputs])


def every_code(type: TensorType) -> npt.NDArray[Any]:
    low = -128 if type is TensorType.INT8 else 0
    return np.arange(low, low + 256).astype(type.name.lower()).reshape(SHAPE)


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.UINT8], ids=lambda t: str(t.name))
def test_every_code(type: TensorType) -> None:
    print(f"seed {SEED}")
    rng, codes = np.random.default_rng(SEED), every_code(type)
    low = int(codes.min())
    for _ in range(20):
        given, ratio = (float(np.float32(np.exp2(rng.uniform(*r)))) for r in ((-9, 3), (-2, 2)))
        zeros = rng.integers(low, low + 256, 2)
        content = model(type, (given, int(zeros[0])), (given * ratio, int(zeros[1])))
        (ours,) = answers(content, [codes])
        with without(RULE):
            (single,) = answers(content, [codes])
        np.testing.assert_array_equal(ours, single)
        np.testing.assert_array_equal(ours, litert(content, [codes])[0])
        assert optimised_nodes(content)["Neg"] == 0


def test_halves_are_those_of_single_operators() -> None:
    content = model(TensorType.INT8, (0.25, 3), (0.5, -2))
    codes = every_code(TensorType.INT8)
    with without(RULE):
        (single,) = answers(content, [codes])
    np.testing.assert_array_equal(answers(content, [codes])[0], single)


@pytest.mark.parametrize("output", ["r", "n"])
def test_reals_that_are_read_too(output: str) -> None:
    content = model(TensorType.INT8, (0.1, 3), (0.1, -4), output)
    codes = every_code(TensorType.INT8)
    for ours, theirs in zip(answers(content, [codes]), litert(content, [codes]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert optimised_nodes(content)["Neg"] == 1
