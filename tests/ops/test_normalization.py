"""L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tests.one_op import Case, T, assert_close, check, one_op_model, ours
from tests.ops.moved import FLOAT32, INT8, UINT8
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import (
    ActivationFunctionType,
    KernelError,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    Op,
    TensorType,
)

Shape = tuple[int, ...]


def l2(type: TensorType, shape: Shape, scale: float = 0.05, zero_point: int = 0) -> Case:
    tensors = [T(shape), T(shape)]
    if type is not FLOAT32:
        offset = 128 if type is UINT8 else 0
        tensors = [
            T(shape, type, scale=scale, zero_point=zero_point + offset),
            T(shape, type, scale=1 / 128, zero_point=offset),
        ]
    return Case(
        f"L2_NORMALIZATION-{type.name}-{shape}-{scale}-{zero_point}",
        Op.L2_NORMALIZATION,
        tensors[:1],
        tensors[1:],
        L2NormOptions(),
    )


def lrn(shape: Shape, radius: int, bias: float, alpha: float, beta: float, **more: Any) -> Case:
    """LiteRT's reference kernel leaves out the last channel of each window; no other one does."""
    options = LocalResponseNormalizationOptions(radius=radius, bias=bias, alpha=alpha, beta=beta)
    return Case(
        f"LOCAL_RESPONSE_NORMALIZATION-{shape}-{radius}-{bias}-{alpha}-{beta}",
        Op.LOCAL_RESPONSE_NORMALIZATION,
        [T(shape)],
        [T(shape)],
        options,
        reference="default",
        **more,
    )


CASES = [
    *[
        l2(type, shape)
        for type in (FLOAT32, UINT8, INT8)
        for shape in ((2, 5, 4, 3), (7,), (4, 1), (3, 300), (0, 3))
    ],
    *[l2(type, (30, 5), 0.2, zero) for type in (UINT8, INT8) for zero in (-128, 9, 127)],
    *[
        lrn((2, 3, 4, 7), radius, *parameters)
        for radius in (0, 1, 2, 9)
        for parameters in ((1.0, 0.5, 0.75), (2.0, 1e-4, 0.5), (1.0, 1.0, 1.0))
    ],
    # ONNX Runtime wants positive parameters.
    lrn((2, 3, 4, 7), 2, 1.0, 0.5, -0.5),
    lrn((2, 3, 4, 7), 1, 20.0, -0.5, 0.5),
    lrn((2, 3, 4, 7), 0, 20.0, -0.5, -0.5),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    type=st.sampled_from((FLOAT32, UINT8, INT8)),
    shape=array_shapes(min_dims=1, max_dims=5, max_side=6),
    scale=st.floats(1e-3, 2.0),
    zero_point=st.integers(-128, 127),
    seed=st.integers(0, 2**31),
)
def test_any_vectors(
    type: TensorType, shape: Shape, scale: float, zero_point: int, seed: int
) -> None:
    check(l2(type, shape, float(np.float32(scale)), zero_point), seed)


@given(
    shape=array_shapes(min_dims=4, max_dims=4, max_side=6),
    radius=st.integers(0, 4),
    bias=st.floats(0.5, 4.0),
    alpha=st.floats(1e-3, 2.0),
    beta=st.floats(0.1, 2.0),
    seed=st.integers(0, 2**31),
)
def test_any_windows(
    shape: Shape, radius: int, bias: float, alpha: float, beta: float, seed: int
) -> None:
    check(lrn(shape, radius, bias, alpha, beta), seed)


@pytest.mark.parametrize("type", [FLOAT32, UINT8, INT8], ids=lambda type: type.name)
def test_a_vector_of_zeros_stays_zero(type: TensorType) -> None:
    """Nothing is divided by 0."""
    case = l2(type, (2, 3))
    zeros = case.inputs[0]
    assert zeros is not None
    feed = np.full((2, 3), zeros.zero_point, case.arrays(np.random.default_rng(0))[0].dtype)
    check(Case("zeros", case.op, case.inputs, case.outputs, case.options, feeds=[feed]))


def test_a_tiny_vector_is_divided_by_a_millionth() -> None:
    feed = np.array([[1e-8, 2e-8], [3e-4, 4e-4]], np.float32)
    check(
        Case("tiny", Op.L2_NORMALIZATION, [T((2, 2))], [T((2, 2))], L2NormOptions(), feeds=[feed])
    )


def test_not_a_number_and_infinity() -> None:
    feed = np.array([[np.nan, 1], [np.inf, 1], [3e30, 4e30], [-1, 1]], np.float32)
    model = one_op_model(Op.L2_NORMALIZATION, [T((4, 2))], [T((4, 2))], L2NormOptions())
    (want,) = litert(model, [feed], "reference")
    for providers in (None, []):
        assert_close(ours(model, [feed], providers)[0][0], want, 0, 1e-6, str(providers))


def test_kernels_name_what_they_refuse() -> None:
    fused = L2NormOptions(fused_activation_function=ActivationFunctionType.RELU)
    model = one_op_model(Op.L2_NORMALIZATION, [T((2,))], [T((2,))], fused)
    with pytest.raises(KernelError, match="activation RELU"):
        ours(model, [np.ones(2, np.float32)])
    code = T((2,), INT8, scale=0.1)
    model = one_op_model(Op.L2_NORMALIZATION, [code], [code], L2NormOptions())
    with pytest.raises(KernelError, match=r"quantized by .0\.1"):
        ours(model, [np.ones(2, np.int8)])
    options = LocalResponseNormalizationOptions(radius=1, bias=1, alpha=1, beta=1)
    model = one_op_model(Op.LOCAL_RESPONSE_NORMALIZATION, [T((2,))], [T((2,))], options)
    with pytest.raises(KernelError, match="rank 1"):
        ours(model, [np.ones(2, np.float32)])


def test_squares_of_codes_beyond_32_bits() -> None:
    """LiteRT's sum wraps. The second row has a sum that does not."""
    codes = np.full((2, 40_000), 255, np.uint8)
    codes[0, ::5], codes[1, 1:] = 0, 0
    tensors = T(codes.shape, UINT8, scale=0.1), T(codes.shape, UINT8, 1 / 128, 128)
    model = one_op_model(Op.L2_NORMALIZATION, [tensors[0]], [tensors[1]], L2NormOptions())
    real = codes.astype(np.float64)
    unit = real / np.sqrt(np.sum(real**2, axis=1, keepdims=True))
    want = np.clip(np.rint(128 * unit) + 128, 0, 255)
    for providers in (None, []):
        np.testing.assert_array_equal(ours(model, [codes], providers)[0][0], want)
