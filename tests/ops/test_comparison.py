"""SELECT and SELECT_V2 against LiteRT: copies of what is stored, exact for every type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.one_op import Case, T, check
from tests.ops.moved import TYPES, tensor
from tests.ops.versions import check_versions, one_per_operator
from tflite_ort.schema import Op, TensorType

Shape = tuple[int, ...]
SELECTED = (
    *(*TYPES, TensorType.FLOAT16, TensorType.FLOAT64),
    *(TensorType.UINT16, TensorType.UINT32, TensorType.UINT64),
)


def selection(op: Op, type: TensorType, shapes: tuple[Shape, Shape, Shape], result: Shape) -> Case:
    condition, x, y = shapes
    return Case(
        f"{op.name}-{type.name}-{condition}-{x}-{y}",
        op,
        [T(condition, TensorType.BOOL), tensor(x, type), tensor(y, type)],
        [tensor(result, type)],
        low=0,
        high=9,
        quanta=0,
        rtol=0,
    )


CASES = [
    *[
        selection(Op.SELECT, type, (condition, (3, 2, 4, 5), (3, 2, 4, 5)), (3, 2, 4, 5))
        for type in SELECTED
        for condition in ((3, 2, 4, 5), (3,), ())
    ],
    *[
        selection(Op.SELECT_V2, type, shapes, np.broadcast_shapes(*shapes))
        for type in SELECTED
        for shapes in (
            ((3, 2, 4, 5), (3, 2, 4, 5), (3, 2, 4, 5)),
            ((4, 1), (3, 2, 1, 5), (5,)),
            ((), (2, 3), ()),
        )
    ],
    # Single elements keep the rank that the model declares.
    selection(Op.SELECT_V2, TensorType.FLOAT32, ((1,), (), ()), (1, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    type=st.sampled_from(SELECTED),
    shapes=mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3),
    seed=st.integers(0, 2**31),
)
def test_any_shapes(type: TensorType, shapes: Any, seed: int) -> None:
    condition, x, y = shapes.input_shapes
    check(selection(Op.SELECT_V2, type, (condition, x, y), shapes.result_shape), seed)


def test_large_integers_keep_their_bits() -> None:
    type = TensorType.UINT64
    row = selection(Op.SELECT_V2, type, ((2,), (2,), (2,)), (2,))
    values = [np.array(pair, np.uint64) for pair in ((2**64 - 1, 1), (0, 2**63 + 1))]
    check(replace(row, feeds=[np.array([True, False]), *values]))


def test_codes_are_copied_whatever_their_scales() -> None:
    row = selection(Op.SELECT_V2, TensorType.INT8, ((6,), (6,), (6,)), (6,))
    inputs = [row.inputs[0], T((6,), TensorType.INT8, scale=0.5, zero_point=9), row.inputs[2]]
    check(Case("scales", Op.SELECT_V2, inputs, row.outputs, quanta=0))
