"""EQUAL to LESS_EQUAL and LOGICAL_NOT against LiteRT: exact for every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import KernelError, Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

FLOAT16 = TensorType.FLOAT16

EQUALITY = (Op.EQUAL, Op.NOT_EQUAL)
ORDER = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL)
Shape = tuple[int, ...]
SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((2, 5, 4, 3), (2, 5, 4, 3)),
    ((4, 1), (3, 2, 1, 5)),
    ((), (6,)),
    ((0, 3), (3,)),
)


def pair(op: Op, type: TensorType, shapes: tuple[Shape, Shape], **more: Any) -> Case:
    """A row of plain numbers, few of them, so that equals are met."""
    return Case(
        f"{op.name}-{type.name}-{shapes}",
        op,
        [T(shape, type) for shape in shapes],
        [T(np.broadcast_shapes(*shapes), BOOL)],
        low=-3,
        high=3,
        quanta=0,
        **more,
    )


def coded(op: Op, type: TensorType, scales: tuple[float, float], zeros: tuple[int, int]) -> Case:
    """Every code against a random one."""
    low, high = quantized_range(type)
    every = np.arange(low, high + 1).astype(NUMPY_DTYPE[type])
    other = np.random.default_rng(1).permutation(every)
    if type is INT16:
        zeros = (0, 0)
    offset = 128 if type is UINT8 else 0
    tensors = [
        T(every.shape, type, scale=scale, zero_point=zero + offset)
        for scale, zero in zip(scales, zeros, strict=True)
    ]
    alike = len(set(scales)) == 1 and scales[0] > 1 / 256
    plain = type is INT16 and op in ORDER
    return Case(
        f"{op.name}-{type.name}-{scales}-{zeros}",
        op,
        tensors,
        [T(every.shape, BOOL)],
        feeds=[every, other],
        runs_on="ort" if type is not INT16 or alike or plain else "numpy",
    )


CASES = [
    *[
        pair(op, type, shapes)
        for op in (*EQUALITY, *ORDER)
        for type in (FLOAT32, INT32, INT64, FLOAT16)
        for shapes in (SHAPES if type is FLOAT32 else SHAPES[1:2])
    ],
    *[pair(op, BOOL, shapes) for op in EQUALITY for shapes in SHAPES],
    *[pair(op, INT16, SHAPES[1]) for op in (Op.EQUAL, *ORDER)],
    *[
        coded(op, type, scales, zeros)
        for op in (*EQUALITY, *ORDER)
        for type in (UINT8, INT8, INT16)
        for scales, zeros in (
            ((0.02, 0.02), (-5, -5)),
            ((0.02, 0.031), (3, -40)),
            ((0.003, 0.003), (0, 0)),
            ((0.9, 0.0001), (-128, 127)),
            ((1e-9, 1e-20), (5, -5)),
        )
    ],
    *[
        Case(f"LOGICAL_NOT-{shape}", Op.LOGICAL_NOT, [T(shape, BOOL)], [T(shape, BOOL)])
        for shape in ((2, 5, 4, 3), (), (0, 3))
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    op=st.sampled_from((*EQUALITY, *ORDER)),
    type=st.sampled_from((FLOAT32, INT32, UINT8, INT8)),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=5, max_side=4),
    scales=st.tuples(st.floats(1e-4, 0.99), st.floats(1e-4, 0.99)),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    seed=st.integers(0, 2**31),
)
def test_any_scales_and_shapes(
    op: Op,
    type: TensorType,
    shapes: Any,
    scales: tuple[float, float],
    zeros: tuple[int, int],
    seed: int,
) -> None:
    case = pair(op, type, shapes.input_shapes)
    if type in (UINT8, INT8):
        offset = 128 if type is UINT8 else 0
        inputs = [
            T(shape, type, scale=float(np.float32(scale)), zero_point=zero + offset)
            for shape, scale, zero in zip(shapes.input_shapes, scales, zeros, strict=True)
        ]
        case = Case("drawn", op, inputs, case.outputs)
    check(case, seed)


@pytest.mark.parametrize("op", (*EQUALITY, *ORDER), ids=lambda op: op.name)
def test_not_a_number_and_infinity(op: Op) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
    feeds = [array.ravel() for array in np.meshgrid(values, values)]
    tensor = T(feeds[0].shape)
    model = one_op_model(op, [tensor, tensor], [T(tensor.shape, BOOL)])
    (want,) = litert(model, feeds, "reference")
    for providers in (None, []):
        assert np.array_equal(ours(model, feeds, providers)[0][0], want)


@pytest.mark.parametrize("op", (*EQUALITY, *ORDER), ids=lambda op: op.name)
def test_constant_operand(op: Op) -> None:
    codes = np.arange(-30, 30, dtype=np.int8)
    constant = T.constant(codes, INT8, scale=0.02, zero_point=4)
    other = T((5, 1, 60), INT8, scale=0.03, zero_point=-4)
    check(Case("constant", op, [other, constant], [T((5, 1, 60), BOOL)]))
    check(Case("constant", op, [constant, other], [T((5, 1, 60), BOOL)]))


@pytest.mark.parametrize("op", EQUALITY, ids=lambda op: op.name)
def test_strings_run_in_numpy(op: Op) -> None:
    feeds = [
        np.array([b"ab", b"c", b"", b"xyz"], object),
        np.array([b"ab", b"d", b"", b"xy"], object),
    ]
    model = one_op_model(op, [T((4,), TensorType.STRING)] * 2, [T((4,), BOOL)])
    (got,), runs_on = ours(model, feeds)
    assert runs_on == {"numpy"}
    assert np.array_equal(got, litert(model, feeds, "reference")[0])


@pytest.mark.parametrize("op", [Op.LESS, Op.GREATER], ids=lambda op: op.name)
def test_bfloat16_runs_in_numpy(op: Op) -> None:
    dtype = NUMPY_DTYPE[TensorType.BFLOAT16]
    feeds = [np.array(values, dtype) for values in ([-2.5, 0.5, 3.0], [0.5, 0.5, -1.0])]
    model = one_op_model(op, [T((3,), TensorType.BFLOAT16)] * 2, [T((3,), BOOL)])
    (got,), runs_on = ours(model, feeds)
    assert runs_on == {"numpy"}
    assert got.tolist() == ([True, False, False] if op is Op.LESS else [False, False, True])


REFUSED = (
    (Op.NOT_EQUAL, T((2,), INT16), "INT16, INT16 to BOOL is not implemented"),
    (Op.EQUAL, T((2,), INT8), "not quantized"),
)


@pytest.mark.parametrize(("op", "tensor", "reason"), REFUSED)
def test_kernels_name_what_they_refuse(op: Op, tensor: T, reason: str) -> None:
    model = one_op_model(op, [tensor, tensor], [T((2,), BOOL)])
    with pytest.raises(KernelError, match=reason):
        ours(model, [np.ones(2, NUMPY_DTYPE[tensor.type])] * 2)
