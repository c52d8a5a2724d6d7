"""Functions of few 8-bit codes along the last axis are lookups, with TFLite's codes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import ExpOptions, GeluOptions, Op, TensorType

SOURCE, TARGET = (0.043, -8), (0.031, -119)
LOWEST = {TensorType.INT8: -128, TensorType.UINT8: 0}
KINDS = [
    (Op.HARD_SWISH, TensorType.INT8),
    (Op.HARD_SWISH, TensorType.UINT8),
    (Op.ELU, TensorType.INT8),
    (Op.EXP, TensorType.INT8),
    (Op.GELU, TensorType.INT8),
]
OPTIONS = {Op.EXP: ExpOptions(), Op.GELU: GeluOptions()}
ROWS = [(256,), (1, 256), (1, 1, 1, 256), (1, 1, 1)]


def model(op: Op, type: TensorType, shape: tuple[int, ...]) -> bytes:
    moved = LOWEST[type] + 128
    x, y = (
        T(shape, type, scale=scale, zero_point=zero + moved) for scale, zero in (SOURCE, TARGET)
    )
    return one_op_model(op, [x], [y], OPTIONS.get(op))


def check(op: Op, type: TensorType, shape: tuple[int, ...]) -> Counter[str]:
    """Compare all codes with LiteRT and with nodes of reals; the nodes."""
    content, count = model(op, type, shape), int(np.prod(shape))
    given = (np.arange(count) % 256 + LOWEST[type]).astype(type.name.lower()).reshape(shape)
    with without("codes by a table"):
        (single,) = answers(content, [given])
    (ours,) = answers(content, [given])
    np.testing.assert_array_equal(ours, single)
    np.testing.assert_array_equal(ours, litert(content, [given])[0])
    return optimised_nodes(content)


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize(("op", "type"), KINDS, ids=lambda each: str(each.name))
def test_rows(op: Op, type: TensorType, shape: tuple[int, ...]) -> None:
    nodes = check(op, type, shape)
    assert (nodes["GatherElements"], nodes["Reshape"]) == (1, 0)


@pytest.mark.parametrize("shape", [(), (1, 1025), (2, 128), (256, 1), (1, 4, 4, 16)], ids=str)
def test_others_are_reals(shape: tuple[int, ...]) -> None:
    assert check(Op.EXP, TensorType.INT8, shape)["Exp"] == 1
