"""GELU and LOG_SOFTMAX against LiteRT, quantised ones over all their codes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tests.one_op import Case, T, assert_close, check, one_op_model, ours
from tests.ops.moved import FLOAT32, INT8, INT16, UINT8
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import GeluOptions, KernelError, Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

FLOAT16 = TensorType.FLOAT16
Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((2, 5, 4, 3), (7,), (3, 1), (0, 3))


def gelu(type: TensorType, shape: Shape, approximate: bool) -> Case:
    return Case(
        f"GELU-{type.name}-{shape}-{approximate}",
        Op.GELU,
        [T(shape, type)],
        [T(shape, type)],
        GeluOptions(approximate=approximate),
        low=-9,
        high=9,
        rtol=1e-3 if type is FLOAT16 else 1e-5,
    )


def gelu_codes(type: TensorType, scale: float, result: float, approximate: bool) -> Case:
    """Every code; those of int16 go through TFLite's coarse table, exactly."""
    low, high = quantized_range(type)
    every = np.arange(low, high + 1).astype(NUMPY_DTYPE[type])
    fine = 256 if type is INT16 else 1
    zero = {UINT8: 121, INT8: -7, INT16: 0}[type]
    return Case(
        f"GELU-{type.name}-{scale}-{result}-{approximate}",
        Op.GELU,
        [T(every.shape, type, scale=scale / fine, zero_point=zero)],
        [T(every.shape, type, scale=result / fine, zero_point=zero)],
        GeluOptions(approximate=approximate),
        feeds=[every],
        quanta=0 if type is INT16 else 1,
    )


def log_softmax(type: TensorType, shape: Shape, scale: float = 0.05) -> Case:
    if type is FLOAT32:
        tensors = [T(shape), T(shape)]
    else:
        zero = quantized_range(type)[1]
        tensors = [T(shape, type, scale=scale), T(shape, type, scale=1 / 16, zero_point=zero)]
    name = f"LOG_SOFTMAX-{type.name}-{shape}-{scale}"
    return Case(name, Op.LOG_SOFTMAX, tensors[:1], tensors[1:], low=-9, high=9)


CASES = [
    *[
        gelu(type, shape, approximate)
        for type in (FLOAT32, FLOAT16)
        for shape in SHAPES
        for approximate in (False, True)
    ],
    *[
        gelu_codes(type, scale, result, approximate)
        for type in (UINT8, INT8, INT16)
        for scale, result in ((0.05, 0.04), (0.02, 0.02), (0.1, 0.005))
        for approximate in (False, True)
    ],
    *[log_softmax(FLOAT32, shape) for shape in SHAPES],
    *[
        log_softmax(type, shape, scale)
        for type in (UINT8, INT8)
        for shape in ((50, 1), (60, 2), (40, 10), (3, 4, 300))
        for scale in (0.0039, 0.02, 0.1, 0.5, 1.0)
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    type=st.sampled_from((FLOAT32, UINT8, INT8)),
    shape=array_shapes(min_dims=1, max_dims=4, max_side=9),
    scale=st.floats(1e-3, 2.0),
    seed=st.integers(0, 2**31),
)
def test_any_logits(type: TensorType, shape: Shape, scale: float, seed: int) -> None:
    check(log_softmax(type, shape, float(np.float32(scale))), seed)


@given(
    type=st.sampled_from((UINT8, INT8)),
    scale=st.floats(1e-3, 1.0),
    result=st.floats(1e-3, 1.0),
    approximate=st.booleans(),
)
def test_any_scales(type: TensorType, scale: float, result: float, approximate: bool) -> None:
    scales = (float(np.float32(value)) for value in (scale, result))
    check(gelu_codes(type, *scales, approximate))


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_of_not_a_number_and_infinity(approximate: bool) -> None:
    values = np.array([np.nan, np.inf, -200, 200, 0.0, -0.5], np.float32)
    tensor = T(values.shape)
    model = one_op_model(Op.GELU, [tensor], [tensor], GeluOptions(approximate=approximate))
    (want,) = litert(model, [values], "reference")
    for providers in (None, []):
        assert_close(ours(model, [values], providers)[0][0], want, 0, 1e-6, str(providers))


def test_log_softmax_of_not_a_number_and_infinity() -> None:
    feed = np.array([[np.nan, 1], [-np.inf, 1], [3e30, 4e30], [80, -90]], np.float32)
    model = one_op_model(Op.LOG_SOFTMAX, [T((4, 2))], [T((4, 2))])
    (want,) = litert(model, [feed], "reference")
    for providers in (None, []):
        assert_close(ours(model, [feed], providers)[0][0], want, 0, 1e-6, str(providers))


def test_log_softmax_refuses_another_scale() -> None:
    input, output = T((2,), INT8, scale=0.1), T((2,), INT8, scale=0.05, zero_point=127)
    with pytest.raises(KernelError, match=r"quantized by .0\.05"):
        ours(one_op_model(Op.LOG_SOFTMAX, [input], [output]), [np.ones(2, np.int8)])
