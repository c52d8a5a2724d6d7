"""REDUCE_PROD, REDUCE_ANY, REDUCE_ALL and CUMSUM against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, ints, tensor
from tests.ops.operands import exported
from tests.ops.test_reduction import SHAPES, Shape, reduced
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import CumsumOptions, KernelError, Op, ReducerOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

TRUTHS = (Op.REDUCE_ANY, Op.REDUCE_ALL)


def reduction(
    op: Op, type: TensorType, shape: Shape, axes: tuple[int, ...], keep: bool, **more: Any
) -> Case:
    label = "-".join(map(str, axes))
    return Case(
        f"{op.name}-{type.name}-{shape}-{label}-keep{keep:d}",
        op,
        [T(shape, type), ints(*axes)],
        [T(reduced(shape, axes, keep), type)],
        ReducerOptions(keep_dims=keep),
        low=-3,
        high=3,
        quanta=0,
        **more,
    )


def product_of_codes(
    type: TensorType, shape: Shape, axes: tuple[int, ...], keep: bool, scale: float, result: float
) -> Case:
    zeros = (0, 0) if type is INT16 else (-100, 7)
    plain = reduction(Op.REDUCE_PROD, type, shape, axes, keep)
    inputs = [T(shape, type, scale=scale, zero_point=zeros[0]), plain.inputs[1]]
    output = T(plain.outputs[0].shape, type, scale=result, zero_point=zeros[1])
    name = f"{plain.name}-{scale}-{result}"
    return Case(name, plain.op, inputs, [output], plain.options, runs_on="numpy")


def running(
    type: TensorType, shape: Shape, axis: int, exclusive: bool, reverse: bool, **more: Any
) -> Case:
    return Case(
        f"CUMSUM-{type.name}-{shape}-{axis}-{exclusive:d}{reverse:d}",
        Op.CUMSUM,
        [T(shape, type), T.constant(np.array(axis, np.int32))],
        [T(shape, type)],
        CumsumOptions(exclusive=exclusive, reverse=reverse),
        low=-99,
        high=99,
        **more,
    )


CASES = [
    *[
        reduction(op, type, shape, axes, keep)
        for op, types in (
            (Op.REDUCE_PROD, (FLOAT32, INT32, INT64, INT8, UINT8, INT16)),
            (Op.REDUCE_ANY, (BOOL,)),
            (Op.REDUCE_ALL, (BOOL,)),
        )
        for type in types
        for shape, axes in SHAPES
        for keep in (False, True)
        if type is not UINT8 or shape == (6,)
    ],
    *[
        product_of_codes(type, shape, axes, keep, scale, result)
        for type in (INT8, INT16)
        for shape, axes in SHAPES[2:]
        for keep in (False, True)
        for scale, result in ((0.02, 0.04), (0.011, 0.011), (0.5, 0.9))
    ],
    *[
        running(type, shape, axis, exclusive, reverse)
        for type in (FLOAT32, INT32, INT64)
        for shape, axis in (((2, 5, 4, 3), -1), ((2, 5, 4, 3), 1), ((7,), 0), ((3, 0), 1))
        for exclusive in (False, True)
        for reverse in (False, True)
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.runs_on == "numpy"], ids=lambda case: case.name
)
def test_products_of_codes_in_exports(case: Case) -> None:
    feeds = case.arrays(np.random.default_rng(len(case.name)))
    (got,) = exported(case.model(), feeds)
    np.testing.assert_array_equal(got, litert(case.model(), feeds, "reference")[0])


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@st.composite
def _reduction(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    op = draw(st.sampled_from([Op.REDUCE_PROD, *TRUTHS]))
    type = BOOL if op in TRUTHS else draw(st.sampled_from([FLOAT32, INT32, INT64]))
    return reduction(op, type, shape, tuple(axes), draw(st.booleans()))


@given(_reduction(), st.integers(0, 1000))
def test_drawn_reduction(case: Case, seed: int) -> None:
    check(case, seed)


@given(
    type=st.sampled_from((FLOAT32, INT32, INT64)),
    shape=array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=4),
    axis=st.integers(-5, 4),
    exclusive=st.booleans(),
    reverse=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_drawn_running_sum(
    type: TensorType, shape: Shape, axis: int, exclusive: bool, reverse: bool, seed: int
) -> None:
    check(running(type, shape, max(axis, -len(shape)) % len(shape), exclusive, reverse), seed)


@pytest.mark.parametrize("axis", [2, -3])
def test_running_sum_along_a_computed_axis(axis: int) -> None:
    inputs = [T((2, 5, 4, 3)), T((1,), INT32)]
    feed = np.random.default_rng(0).normal(size=(2, 5, 4, 3)).astype(np.float32)
    options = CumsumOptions(exclusive=True)
    feeds = [feed, np.array([axis], np.int32)]
    check(Case("computed", Op.CUMSUM, inputs, [T((2, 5, 4, 3))], options, feeds=feeds))


@pytest.mark.parametrize("op", [Op.REDUCE_PROD, *TRUTHS], ids=lambda op: op.name)
@pytest.mark.parametrize("axes", [(0,), (-1, 1)], ids=str)
def test_reduction_over_computed_axes(op: Op, axes: tuple[int, ...]) -> None:
    type = BOOL if op in TRUTHS else FLOAT32
    case = reduction(op, type, (2, 3, 4), axes, True)
    feeds = [*case.arrays(np.random.default_rng(0)), np.array(axes, np.int32)]
    inputs = [case.inputs[0], T((len(axes),), INT32)]
    check(Case("computed", op, inputs, case.outputs, case.options, feeds=feeds))


@pytest.mark.parametrize(
    ("op", "type"),
    [
        (Op.REDUCE_PROD, FLOAT32),
        (Op.REDUCE_PROD, INT32),
        (Op.REDUCE_ANY, BOOL),
        (Op.REDUCE_ALL, BOOL),
    ],
)
def test_nothing_is_reduced_as_litert_does(op: Op, type: TensorType) -> None:
    """ONNX Runtime's result would have the shape of the input."""
    for shape in ((2, 0), (0, 2)):
        check(reduction(op, type, shape, (1,), True, runs_on="constant"))


@pytest.mark.parametrize("type", [INT32, INT64], ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.SUM, Op.REDUCE_PROD], ids=lambda op: op.name)
def test_integers_wrap_and_keep_their_last_bits(op: Op, type: TensorType) -> None:
    """ONNX Runtime's ReduceSum and ReduceProd go by way of double, and saturate."""
    bounds = np.iinfo(NUMPY_DTYPE[type])
    rng = np.random.default_rng(0)
    feed = rng.integers(bounds.min, bounds.max, (4, 7, 5), bounds.dtype, endpoint=True) | 1
    feed[0, 0] = [bounds.max // 3 * 2 + 1, 2, 1, 1, 1]
    for axes in ((2,), (0, 1, 2)):
        case = reduction(op, type, feed.shape, axes, False, feeds=[feed])
        check(case)


def test_product_of_uint8_codes_is_refused() -> None:
    model = one_op_model(
        Op.REDUCE_PROD, [tensor((2,), UINT8), ints(0)], [tensor((), UINT8)], ReducerOptions()
    )
    with pytest.raises(KernelError, match="quantized uint8"):
        ours(model, [np.ones(2, np.uint8)])


def test_running_sum_takes_one_axis_of_int32() -> None:
    axis = T.constant(np.array(0, np.int64))
    model = one_op_model(Op.CUMSUM, [T((2,)), axis], [T((2,))], CumsumOptions())
    with pytest.raises(KernelError, match="1 axes of int64, expected one of int32"):
        ours(model, [np.ones(2, np.float32)])


@pytest.mark.parametrize("columns", [1, 40])
@pytest.mark.parametrize("scale", [0.004, 0.05, 0.3])
def test_long_products_of_codes(columns: int, scale: float) -> None:
    """Products that vanish, that stay near 1 and that overflow, with zeros in some columns."""
    rng = np.random.default_rng(columns)
    case = product_of_codes(INT8, (3000, columns), (0,), False, scale, 0.01)
    codes = rng.choice([-103, -102, -99, -98, -97, 20], (3000, columns)).astype(np.int8)
    codes[2000, 1::3] = -100  # the zero point
    check(replace(case, feeds=[codes]))


def test_time_of_a_long_product_of_codes() -> None:
    """It took 6 microseconds for each factor: 6 s."""
    case = product_of_codes(INT8, (1 << 20,), (0,), False, 0.3, 0.01)
    codes = np.random.default_rng(0).integers(-99, 127, 1 << 20, np.int8)
    start = process_time()
    ours(case.model(), [codes])
    assert process_time() - start < 3
