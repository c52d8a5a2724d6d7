"""LOGICAL_AND, LOGICAL_OR, BITWISE_XOR and RIGHT_SHIFT against LiteRT: exact for every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.one_op import Case, T, check
from tests.ops.moved import BOOL, INT8, INT16, INT32, UINT8
from tests.ops.test_comparison_order import SHAPES, Shape
from tests.ops.versions import check_versions, one_per_operator
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

LOGICAL = (Op.LOGICAL_AND, Op.LOGICAL_OR)
BITWISE = (Op.BITWISE_XOR, Op.RIGHT_SHIFT)
BITS = (INT8, UINT8, INT16, TensorType.UINT16, INT32, TensorType.UINT32)


def pair(op: Op, type: TensorType, shapes: tuple[Shape, Shape]) -> Case:
    return Case(
        f"{op.name}-{type.name}-{shapes}",
        op,
        [T(shape, type) for shape in shapes],
        [T(np.broadcast_shapes(*shapes), type)],
        low=-3 if NUMPY_DTYPE[type].kind != "u" else 0,
        high=40,
        quanta=0,
    )


CASES = [
    *[pair(op, BOOL, shapes) for op in LOGICAL for shapes in SHAPES],
    *[pair(op, type, shapes) for op in BITWISE for type in BITS for shapes in SHAPES[:3]],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    op=st.sampled_from((*LOGICAL, *BITWISE)),
    type=st.sampled_from(BITS),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=5, max_side=4),
    seed=st.integers(0, 2**31),
)
def test_any_bits_and_shapes(op: Op, type: TensorType, shapes: Any, seed: int) -> None:
    check(pair(op, BOOL if op in LOGICAL else type, shapes.input_shapes), seed)


@pytest.mark.parametrize("type", BITS, ids=lambda type: type.name)
def test_shifts_outside_the_width_are_held_to_it(type: TensorType) -> None:
    """ONNX shifts unsigned integers only, and by any amount."""
    bounds = np.iinfo(NUMPY_DTYPE[type])
    values = np.array([bounds.min, bounds.max, bounds.min + 3, 77, 0], bounds.dtype)
    amounts = np.array([bounds.min, bounds.max, 0, 1, 7, 31], bounds.dtype)
    feeds = [array.ravel() for array in np.meshgrid(values, amounts)]
    tensor = T(feeds[0].shape, type)
    check(Case("shifts", Op.RIGHT_SHIFT, [tensor, tensor], [tensor], feeds=feeds, quanta=0))
