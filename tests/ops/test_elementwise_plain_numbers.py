"""Operators of numbers without a quantised kind against LiteRT: rounding, FLOOR_MOD, ATAN2, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

from tests.one_op import Array, Case, T, assert_close, check, graph_model, one_op_model, ours
from tests.ops.moved import FLOAT32, INT8, INT16, INT32, INT64
from tests.ops.operands import exported
from tests.ops.versions import check_versions, one_per_operator
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    FullyConnectedOptions,
    KernelError,
    ModelError,
    MulOptions,
    Op,
    SubOptions,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

FLOAT16, FLOAT64, BFLOAT16 = TensorType.FLOAT16, TensorType.FLOAT64, TensorType.BFLOAT16
Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((2, 5, 4, 3), (7,), (), (0, 3))

TYPES = {
    Op.FLOOR: (FLOAT32, FLOAT16),
    Op.CEIL: (FLOAT32,),
    Op.ROUND: (FLOAT32, FLOAT16),
    Op.SIN: (FLOAT32, FLOAT16),
    Op.COS: (FLOAT32, FLOAT16),
    Op.SQUARE: (FLOAT32,),
    Op.SIGN: (FLOAT32, FLOAT64, INT32),
    Op.ZEROS_LIKE: (FLOAT32, INT32, INT64),
}
# Not in LiteRT's set of reference kernels, at all or as version 2.
NO_REFERENCE = {(Op.CEIL, FLOAT32), (Op.ROUND, FLOAT32), (Op.ROUND, FLOAT16)}
TOLERANCE = {FLOAT16: 1e-3}
FUSED: dict[Op, Any] = {Op.ADD: AddOptions, Op.SUB: SubOptions, Op.MUL: MulOptions}


def reference(op: Op, type: TensorType) -> str:
    return "optimized" if (op, type) in NO_REFERENCE else "reference"


def unary(op: Op, type: TensorType, shape: Shape, **more: Any) -> Case:
    return Case(
        f"{op.name}-{type.name}-{shape}",
        op,
        [T(shape, type)],
        [T(shape, type)],
        low=-9,
        high=9,
        rtol=TOLERANCE.get(type, 1e-5),
        reference=reference(op, type),
        **more,
    )


def modulo(type: TensorType, shapes: Sequence[Shape]) -> Case:
    """The divisor is a constant: one that may be 0 has to be seen by the numpy kernel."""
    rng = np.random.default_rng(5)
    divisor = rng.choice([-7, -3, -2, 1, 2, 5], shapes[1]).astype(NUMPY_DTYPE[type])
    return Case(
        f"FLOOR_MOD-{type.name}-{shapes}",
        Op.FLOOR_MOD,
        [T(shapes[0], type), T.constant(divisor)],
        [T(np.broadcast_shapes(*shapes), type)],
        low=-99,
        high=99,
    )


CASES = [
    *[
        unary(op, type, shape)
        for op, types in TYPES.items()
        for type in types
        for shape in (SHAPES if type is FLOAT32 else SHAPES[:1])
    ],
    *[
        modulo(type, shapes)
        for type in (FLOAT32, INT32, INT64, INT16, INT8)
        for shapes in (((4, 5), (4, 5)), ((4, 1, 3), (5, 1)), ((2, 2, 4, 3), ()))
    ],
    *[
        Case(
            f"ATAN2-{type.name}-{shape}",
            Op.ATAN2,
            [T(shape, type)] * 2,
            [T(shape, type)],
            # ONNX Runtime has no arc tangent of doubles.
            rtol=1e-14 if type is FLOAT64 else TOLERANCE.get(type, 1e-5),
        )
        for type in (FLOAT32, FLOAT16, FLOAT64)
        for shape in SHAPES
    ],
    *[
        Case(f"ADD_N-{type.name}-{n}", Op.ADD_N, [T((2, 4, 3), type)] * n, [T((2, 4, 3), type)])
        for type in (FLOAT32, INT32)
        for n in (2, 3, 7)
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    op=st.sampled_from(tuple(TYPES)),
    shape=array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=4),
    seed=st.integers(0, 2**31),
)
def test_any_shape(op: Op, shape: Shape, seed: int) -> None:
    check(unary(op, FLOAT32, shape), seed)


@given(
    type=st.sampled_from((FLOAT32, INT32, INT64, INT8)),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=5, max_side=4),
    seed=st.integers(0, 2**31),
)
def test_any_modulo(type: TensorType, shapes: Any, seed: int) -> None:
    check(modulo(type, shapes.input_shapes), seed)


@given(
    count=st.integers(2, 6),
    type=st.sampled_from((FLOAT32, INT32)),
    shape=array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    seed=st.integers(0, 2**31),
)
def test_any_number_of_terms(count: int, type: TensorType, shape: Shape, seed: int) -> None:
    check(Case("drawn", Op.ADD_N, [T(shape, type)] * count, [T(shape, type)]), seed)


def check_values(op: Op, feeds: list[Array], *, kernels: str = "reference") -> None:
    """Float32 values through both, not-a-number included; signs of zero count."""
    tensors = [T(feed.shape) for feed in feeds]
    model = one_op_model(op, tensors, tensors[:1])
    (want,) = litert(model, feeds, kernels)
    for providers in (None, []):
        (got,), _ = ours(model, feeds, providers)
        assert_close(got, want, 0, 1e-6, f"{op.name} with providers {providers}")
        if op in (Op.ATAN2, Op.FLOOR_MOD):
            real = ~np.isnan(want)
            assert np.array_equal(np.signbit(got[real]), np.signbit(want[real]))


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0], np.float32)


@pytest.mark.parametrize("op", list(TYPES), ids=lambda op: op.name)
def test_not_a_number_and_infinity(op: Op) -> None:
    check_values(op, [SPECIAL], kernels=reference(op, FLOAT32))


@pytest.mark.parametrize("op", [Op.ATAN2, Op.FLOOR_MOD], ids=lambda op: op.name)
def test_pairs_of_special_values(op: Op) -> None:
    check_values(op, [array.ravel() for array in np.meshgrid(SPECIAL, SPECIAL)])


def test_halves_round_to_even() -> None:
    halves = np.arange(-6, 6, dtype=np.float32) + np.float32(0.5)
    check_values(Op.ROUND, [halves], kernels="default")


def test_angles_of_every_octant() -> None:
    angles = np.linspace(-math.pi, math.pi, 97).astype(np.float32)
    check_values(Op.ATAN2, [np.sin(angles), np.cos(angles)])


def test_modulo_takes_the_divisors_sign() -> None:
    """C's remainder, and Mod of floats in ONNX, take the dividend's."""
    feeds = [np.array([7, -7, 7, -7], np.float32), np.array([2, 2, -2, -2], np.float32)]
    model = one_op_model(Op.FLOOR_MOD, [T((4,))] * 2, [T((4,))])
    for providers in (None, []):
        assert ours(model, feeds, providers)[0][0].tolist() == [1, 1, -1, -1]


@pytest.mark.parametrize("op", [Op.FLOOR, Op.ROUND, Op.ATAN2], ids=lambda op: op.name)
def test_bfloat16_runs_in_numpy(op: Op) -> None:
    dtype = NUMPY_DTYPE[BFLOAT16]
    feeds = [np.array([-2.5, 0.75, 3.5], dtype)] * (2 if op is Op.ATAN2 else 1)
    model = one_op_model(op, [T((3,), BFLOAT16)] * len(feeds), [T((3,), BFLOAT16)])
    (got,), runs_on = ours(model, feeds)
    function = {Op.FLOOR: np.floor, Op.ROUND: np.rint, Op.ATAN2: np.arctan2}[op]
    want = function(*(feed.astype(np.float32) for feed in feeds)).astype(dtype)
    assert runs_on == {"numpy"}
    assert np.array_equal(got, want)


@pytest.mark.parametrize("type", [INT32, INT64, INT16, INT8], ids=lambda type: type.name)
def test_integer_modulo_by_zero_is_an_error(type: TensorType) -> None:
    tensor = T((2,), type)
    model = one_op_model(Op.FLOOR_MOD, [tensor, tensor], [tensor])
    dtype = NUMPY_DTYPE[type]
    with pytest.raises(KernelError, match="division by 0"):
        ours(model, [np.ones(2, dtype), np.array([1, 0], dtype)])


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("providers", [None, []], ids=["onnxruntime", "numpy"])
def test_power_of_a_half_is_no_square_root(
    shape: tuple[int, ...], providers: list[str] | None
) -> None:
    exponent = T(shape, data=np.full(shape, 0.5, np.float32))
    result = np.broadcast_shapes((4,), shape)
    model = one_op_model(Op.POW, [T((4,)), exponent], [T(result)])
    bases = np.array([-np.inf, -0.0, 4.0, np.inf], np.float32)
    (got,), _ = ours(model, [bases], providers)
    wanted = litert(model, [bases])[0]
    assert got.shape == wanted.shape
    assert got.ravel().tolist() == wanted.ravel().tolist() == [np.inf, 0.0, 2.0, np.inf]
    assert not np.signbit(got).any()


def test_atan2_does_not_broadcast() -> None:
    model = one_op_model(Op.ATAN2, [T((2, 3)), T((1, 3))], [T((2, 3))])
    with pytest.raises(ModelError, match=r"shapes \(2, 3\) and \(1, 3\) differ"):
        ours(model, [np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)])


def test_terms_of_add_n_have_one_shape() -> None:
    model = one_op_model(Op.ADD_N, [T((2, 3)), T((1, 3))], [T((2, 3))])
    with pytest.raises(KernelError, match=r"2 values of shapes \[\(1, 3\), \(2, 3\)\]"):
        ours(model, [np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)])


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize(
    ("op", "type"),
    [
        *[(op, INT32) for op in (Op.ADD, Op.SUB, Op.MUL)],
        *[(op, INT64) for op in (Op.ADD, Op.SUB, Op.MUL)],
        (Op.ADD, INT16),
    ],
    ids=str,
)
def test_integers_with_a_fused_activation(op: Op, type: TensorType, activation: str) -> None:
    """Beyond 32 bits too, where ONNX Runtime's Max is wrong."""
    tensor, options = T((40,), type), FUSED[op](ActivationFunctionType[activation])
    case = Case("clamped", op, [tensor, tensor], [tensor], options, low=-9, high=9)
    check(case)
    if type is INT64:
        far = np.resize(np.array([-(2**40), 2**40, 3, -3, 2**33]), 40)
        check(replace(case, feeds=[far, np.ones(40, np.int64)]))
    feeds = case.arrays(np.random.default_rng(1))
    np.testing.assert_array_equal(exported(case.model(), feeds), litert(case.model(), feeds))


@pytest.mark.parametrize("op", [Op.SQUARE, Op.FLOOR, Op.SIGN])
def test_rows_between_products_stay_rows(op: Op) -> None:
    shape, b = (2, 3, 8), Builder()
    weights = b.constant(np.eye(8) * 1.5)
    dense = FullyConnectedOptions(keep_num_dims=True)
    first = b.op(Op.FULLY_CONNECTED, [b.input("x", *shape), weights], shape, dense)
    made = b.op(Op.FULLY_CONNECTED, [b.op(op, [first], shape), weights], shape, dense)
    content = graph_model(b.tensors, b.nodes, [made])
    x = np.random.default_rng(1).normal(0, 2, shape).astype(np.float32)
    np.testing.assert_allclose(answers(content, [x])[0], litert(content, [x])[0], rtol=1e-6)
    assert optimised_nodes(content)["Reshape"] == 0
