"""Indices of which those below 0 are counted from the end: as they were, for a Gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort import BridgeError
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import GatherOptions, Op, TensorType

Array = npt.NDArray[Any]
RULE = "indices from the end"
ROWS, WIDTH, SHAPE = 10, 4, (2, 5)
INDICES = np.int32([[0, 9, -1, -10, 3], [-5, 5, -9, 8, 1]])


def model(
    *,
    size: int = ROWS,
    least: int = 0,
    axis: int = 0,
    swapped: bool = False,
    codes: bool = False,
    outputs: Sequence[str] = (),
) -> bytes:
    """GATHER at x + size where x is below `least`, else at x, as Keras writes it."""
    b = Builder()
    b.tensors["x"] = T(SHAPE, TensorType.INT32)
    is_below = b.op(Op.LESS, ["x", b.constant(least, np.int32)], SHAPE)
    operands = ["x", b.constant(size, np.int32)]
    total = b.op(Op.ADD, operands[:: -1 if swapped else 1], SHAPE)
    index = b.op(Op.SELECT_V2, [is_below, total, "x"], SHAPE)
    table = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
    made: tuple[int, ...] = (*SHAPE, WIDTH) if axis == 0 else (WIDTH, *SHAPE)
    table = table if axis == 0 else table.T.copy()
    rows = b.constant(table)
    result = b.op(Op.GATHER, [rows, index], made, GatherOptions(axis=axis))
    b.tensors[is_below] = T(SHAPE, TensorType.BOOL)
    for name in (total, index):
        b.tensors[name] = T(SHAPE, TensorType.INT32)
    if codes:
        stored = table.astype(np.int8)
        b.tensors[rows] = T.constant(stored, scale=0.5)
        b.tensors[result] = T(made, TensorType.INT8, scale=0.5)
    names = {"index": index, "total": total}
    return graph_model(b.tensors, b.nodes, [result, *(names[each] for each in outputs)])


def check(content: bytes, x: Array = INDICES) -> None:
    with without(RULE):
        single = answers(content, [x])
    for ours, one, theirs in zip(answers(content, [x]), single, litert(content, [x]), strict=True):
        np.testing.assert_array_equal(ours, one)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_rows_of_single_operators(axis: int, swapped: bool, codes: bool) -> None:
    content = model(axis=axis, swapped=swapped, codes=codes)
    check(content)
    nodes = optimised_nodes(content)
    assert not nodes["Where"] + nodes["Less"] + nodes["Cast"], nodes


@pytest.mark.parametrize("wrong", [ROWS, -ROWS - 1, 2**31 - 1, -(2**31)])
def test_indices_outside_are_refused(wrong: int) -> None:
    x = INDICES.copy()
    x[1, 2] = wrong
    for rules in ((), (RULE,)):
        with without(*rules), pytest.raises(BridgeError):
            answers(model(), [x])


@pytest.mark.parametrize("outputs", [("index",), ("total",), ("total", "index")])
def test_results_that_are_read_too(outputs: Sequence[str]) -> None:
    content = model(outputs=outputs)
    check(content)
    assert optimised_nodes(content)["Cast"] == 0


@pytest.mark.parametrize(("size", "least"), [(ROWS - 1, 0), (ROWS, 1), (ROWS, -1), (-1, 0)])
def test_others_stay(size: int, least: int) -> None:
    content = model(size=size, least=least)
    # What is inside for each of them.
    check(content, np.int32([[1, 8, 1, 2, 3], [5, 5, 7, 8, 2]]))
    assert optimised_nodes(content)["Where"] == 1
