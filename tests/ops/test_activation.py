"""Activation functions against LiteRT, quantised ones over all their codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, assert_close, check, graph_model, one_op_model, ours
from tests.ops.versions import check_versions, one_per_operator
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.schema import (
    Conv2DOptions,
    KernelError,
    LeakyReluOptions,
    Op,
    SoftmaxOptions,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

FLOAT32, FLOAT16 = TensorType.FLOAT32, TensorType.FLOAT16
UINT8, INT8, INT16 = TensorType.UINT8, TensorType.INT8, TensorType.INT16

RELUS = (Op.RELU, Op.RELU6, Op.RELU_N1_TO_1, Op.RELU_0_TO_1)
UNARY = (*RELUS, Op.LEAKY_RELU, Op.ELU, Op.HARD_SWISH, Op.LOGISTIC, Op.TANH)
SHAPES = ((2, 5, 4, 3), (7,), (), (0, 3), (2, 3, 4))

# Not in LiteRT's set of reference kernels.
NO_REFERENCE = {Op.ELU: "optimized"}
# LiteRT's table of INT16 codes itself errs by this much.
TANH_INT16_QUANTA = 3


def options(op: Op, alpha: float = 0.3) -> Any:
    return LeakyReluOptions(alpha=alpha) if op is Op.LEAKY_RELU else None


def codes(type: TensorType) -> Any:
    low, high = quantized_range(type)
    return np.arange(low, high + 1).astype(NUMPY_DTYPE[type])


def shifted(type: TensorType, zero: int) -> int:
    """A zero point given for int8, in the codes of `type`."""
    return {UINT8: zero + 128, INT8: zero, INT16: 0}[type]


def all_codes(
    op: Op,
    type: TensorType,
    scale: float,
    result: float,
    zero: int,
    result_zero: int,
    alpha: float = 0.3,
) -> Case:
    """Every code of `type`; int16 scales are 256 times smaller."""
    every = codes(type)
    fine = 256 if type is INT16 else 1
    fixed = {
        Op.LOGISTIC: (1 / 32768 if type is INT16 else 1 / 256, -128),
        Op.TANH: (1 / 32768 if type is INT16 else 1 / 128, 0),
    }
    result, result_zero = fixed.get(op, (result / fine, result_zero))
    return Case(
        f"{op.name}-{type.name}-{scale}-{result:.4f}-{zero}-{result_zero}-{alpha}",
        op,
        [T(every.shape, type, scale=scale / fine, zero_point=shifted(type, zero))],
        [T(every.shape, type, scale=result, zero_point=shifted(type, result_zero))],
        options(op, alpha),
        feeds=[every],
        quanta=TANH_INT16_QUANTA if (op, type) == (Op.TANH, INT16) else 1,
        reference=NO_REFERENCE.get(op, "reference"),
    )


TYPES = {
    Op.RELU_N1_TO_1: (UINT8, INT8),
    Op.RELU_0_TO_1: (UINT8, INT8),
    Op.HARD_SWISH: (UINT8, INT8),
    Op.ELU: (INT8,),
}
# Scale and zero point of the input, then of the output.
QUANTIZATIONS = (
    (0.05, 0.05, -3, -3),
    (0.05, 0.031, 10, -100),
    (0.02, 0.02, -128, -128),
    (0.3, 0.11, 127, 0),
)

CASES = [
    *[
        Case(
            f"{op.name}-FLOAT32-{shape}",
            op,
            [T(shape)],
            [T(shape)],
            options(op),
            low=-9,
            high=9,
            reference=NO_REFERENCE.get(op, "reference"),
        )
        for op in UNARY
        for shape in SHAPES
    ],
    *[
        all_codes(op, type, scale, result, zero, result_zero)
        for op in UNARY
        for type in TYPES.get(op, (UINT8, INT8, INT16))
        for scale, result, zero, result_zero in QUANTIZATIONS
    ],
    *[
        all_codes(Op.LEAKY_RELU, type, 0.05, 0.04, -7, 30, alpha)
        for type in (UINT8, INT8, INT16)
        for alpha in (0.0, 1.7, -0.4)
    ],
    # Powers of two take another path in LiteRT's int16 sigmoids.
    *[
        all_codes(op, INT16, 2.0**exponent, 0.1, 0, 0)
        for op in (Op.LOGISTIC, Op.TANH)
        for exponent in (-3, -4)
    ],
    *[
        Case(f"{op.name}-FLOAT16", op, [T((5, 7), FLOAT16)], [T((5, 7), FLOAT16)], rtol=1e-3)
        for op in (Op.LOGISTIC, Op.TANH)
    ],
    *[
        Case(
            f"LEAKY_RELU-FLOAT32-{alpha}",
            Op.LEAKY_RELU,
            [T((3, 9))],
            [T((3, 9))],
            options(Op.LEAKY_RELU, alpha),
        )
        for alpha in (0.0, 1.7, -0.4)
    ],
]


def prelu_rows() -> list[Case]:
    rows = []
    for shape, slope in (
        ((2, 5, 4, 3), (3,)),
        ((2, 5, 4, 3), (1, 1, 3)),
        ((6, 3), (6, 3)),
        ((5,), ()),
    ):
        rows.append(
            Case(f"PRELU-FLOAT32-{shape}-{slope}", Op.PRELU, [T(shape), T(slope)], [T(shape)])
        )
        for type, slope_type in ((UINT8, UINT8), (INT8, INT8), (INT16, INT8)):
            fine = 256 if type is INT16 else 1
            alpha = T(slope, slope_type, scale=0.01, zero_point=shifted(slope_type, 9))
            constant = alpha.random(np.random.default_rng(2))
            rows.append(
                Case(
                    f"PRELU-{type.name}-{shape}-{slope}",
                    Op.PRELU,
                    [
                        T(shape, type, scale=0.05 / fine, zero_point=shifted(type, -5)),
                        T.constant(
                            constant, slope_type, scale=alpha.scale, zero_point=alpha.zero_point
                        ),
                    ],
                    [T(shape, type, scale=0.04 / fine, zero_point=shifted(type, 11))],
                )
            )
    return rows


LARGE_PRELU = (1, 40, 30, 12)


@pytest.mark.parametrize("slopes", [(0.01, 1.0), (0.0, 0.9), (-0.5, 0.5), (1.5, 3.0)], ids=str)
@pytest.mark.parametrize("shape", [(12,), (1, 1, 12), (40, 30, 12)], ids=str)
def test_large_prelu_is_right_bit_for_bit(
    shape: tuple[int, ...], slopes: tuple[float, float]
) -> None:
    rng = np.random.default_rng(4)
    alpha = rng.uniform(*slopes, shape).astype(np.float32)
    alpha.flat[0], alpha.flat[-1] = slopes
    model = one_op_model(Op.PRELU, [T(LARGE_PRELU), T.constant(alpha)], [T(LARGE_PRELU)], None, 1)
    x = rng.standard_normal(LARGE_PRELU).astype(np.float32)
    x.flat[:6] = np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-40
    with np.errstate(invalid="ignore"):
        expected = np.where(x >= 0, x, np.float32(alpha) * x)
    outputs, places = ours(model, [x])
    np.testing.assert_array_equal(outputs[0], expected)
    assert "numpy" not in places


@pytest.mark.parametrize("slope", [0.1, 1.0, 1.5, -0.25, 0.0])
@pytest.mark.parametrize("shape", [(2, 3), LARGE_PRELU])
def test_equal_slopes_are_one_leaky_relu(shape: tuple[int, ...], slope: float) -> None:
    alpha = T.constant(np.full(shape[-1], slope, np.float32))
    model = one_op_model(Op.PRELU, [T(shape), alpha], [T(shape)], None, 1)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[:3] = -0.0, np.inf, -1e-40
    with np.errstate(invalid="ignore"):
        expected = np.where(x >= 0, x, x * np.float32(slope))
    (outputs, _) = ours(model, [x])
    np.testing.assert_array_equal(outputs[0], expected)
    assert optimised_nodes(model).keys() == {"LeakyRelu"}


@pytest.mark.parametrize("shape", [(), (1,), (8,), (1, 1, 8), (4, 1, 1)], ids=str)
def test_slopes_behind_a_convolution(shape: tuple[int, ...]) -> None:
    """Also one number without dimensions, where maps have their channels in blocks."""
    rng = np.random.default_rng(1)
    drawn = {"w": (8, 1, 1, 3), "b": (8,), "slopes": shape}
    tensors = {name: T.constant(rng.normal(size=s).astype(np.float32)) for name, s in drawn.items()}
    tensors |= {"x": T((1, 4, 4, 3)), "c": T((1, 4, 4, 8)), "y": T((1, 4, 4, 8))}
    nodes = [
        Node(Op.CONV_2D, ["x", "w", "b"], ["c"], Conv2DOptions(stride_h=1, stride_w=1)),
        Node(Op.PRELU, ["c", "slopes"], ["y"]),
    ]
    model, x = graph_model(tensors, nodes, ["y"]), rng.normal(size=(1, 4, 4, 3)).astype(np.float32)
    assert_close(ours(model, [x])[0][0], litert(model, [x])[0], 0, 1e-6, "behind a convolution")


def softmax_rows() -> list[Case]:
    rows = [
        Case(
            f"SOFTMAX-FLOAT32-{shape}-{beta}",
            Op.SOFTMAX,
            [T(shape)],
            [T(shape)],
            SoftmaxOptions(beta),
        )
        for shape in ((2, 5, 4, 3), (3, 100), (7,), (2, 1))
        for beta in (1.0, 0.4)
    ]
    for type in (UINT8, INT8, INT16):
        for shape in ((40, 11), (3, 300), (2, 5, 4, 3), (6, 1), (1, 3000)):
            for scale, beta in ((0.05, 1.0), (0.8, 1.0), (0.1, 0.4)):
                fine = 256 if type is INT16 else 1
                unit = 1 / 32768 if type is INT16 else 1 / 256
                rows.append(
                    Case(
                        f"SOFTMAX-{type.name}-{shape}-{scale}-{beta}",
                        Op.SOFTMAX,
                        [T(shape, type, scale=scale / fine, zero_point=shifted(type, 5))],
                        [T(shape, type, scale=unit, zero_point=shifted(type, -128))],
                        SoftmaxOptions(beta),
                    )
                )
    rows.append(
        Case(
            "SOFTMAX-FLOAT16",
            Op.SOFTMAX,
            [T((5, 7), FLOAT16)],
            [T((5, 7), FLOAT16)],
            SoftmaxOptions(1.0),
            rtol=2e-3,
            reference="optimized",
        )
    )
    return rows


ALL_CASES = CASES + prelu_rows() + softmax_rows()


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(ALL_CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@pytest.mark.parametrize("type", (UINT8, INT8), ids=lambda type: type.name)
@pytest.mark.parametrize("alpha", (0.01, 0.1, 0.2, 0.3, 0.5, 1.7, -0.4))
def test_leaky_relu_of_bytes_is_that_of_litert(type: TensorType, alpha: float) -> None:
    """All codes: of the default kernel in ONNX Runtime, of the reference kernel in numpy."""
    for scale, result, zero, result_zero in (*QUANTIZATIONS, (0.05, 0.03125, 0, -90)):
        case = all_codes(Op.LEAKY_RELU, type, scale, result, zero, result_zero, alpha)
        model = case.model()
        for providers, kernels in ((None, "default"), ([], "reference")):
            (got,), _ = ours(model, case.feeds, providers)
            (want,) = litert(model, case.feeds, kernels)
            np.testing.assert_array_equal(got, want, f"{case.name}: {kernels}")


@given(
    op=st.sampled_from(UNARY),
    type=st.sampled_from((UINT8, INT8, INT16)),
    exponents=st.tuples(st.floats(-6, 1), st.floats(-1.5, 1.5)),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    alpha=st.floats(-1, 2, width=32),
)
def test_any_quantization(
    op: Op,
    type: TensorType,
    exponents: tuple[float, float],
    zeros: tuple[int, int],
    alpha: float,
) -> None:
    if type in TYPES.get(op, (UINT8, INT8, INT16)):
        scale = float(np.exp(exponents[0]))
        check(all_codes(op, type, scale, scale * float(np.exp(exponents[1])), *zeros, alpha))


@pytest.mark.parametrize("op", (*UNARY, Op.SOFTMAX), ids=lambda op: op.name)
def test_not_a_number_and_infinity(op: Op) -> None:
    x = np.array([[np.nan, 1.0], [np.inf, 2.0], [7.0, 200.0], [-300.0, 1e-30]], np.float32)
    chosen = SoftmaxOptions(1.0) if op is Op.SOFTMAX else options(op)
    model = one_op_model(op, [T(x.shape)], [T(x.shape)], chosen)
    (want,) = litert(model, [x], "optimized")
    for providers in (None, []):
        (got,), _ = ours(model, [x], providers)
        assert_close(got, want, 0, 1e-6, f"{op.name} with providers {providers}")


@pytest.mark.parametrize(("unit", "zero_point"), [(1 / 32768, 0), (1 / 65536, -32768)])
def test_softmax_of_int8_to_int16(unit: float, zero_point: int) -> None:
    """The reference kernel always starts at -32768; the default one does as the scale says."""
    x = np.random.default_rng(0).integers(-128, 128, (30, 17)).astype(np.int8)
    model = one_op_model(
        Op.SOFTMAX,
        [T(x.shape, INT8, scale=0.05)],
        [T(x.shape, INT16, scale=unit, zero_point=zero_point)],
        SoftmaxOptions(1.0),
    )
    (want,) = litert(model, [x], "default")
    for providers in (None, []):
        (got,), _ = ours(model, [x], providers)
        assert_close(got, want, 1, 0, f"with providers {providers}")
    if zero_point:
        assert_close(got, *litert(model, [x], "reference"), 0, 0, "numpy against reference")


def test_softmax_of_a_certain_class_saturates() -> None:
    """A probability of 1 is one more than the highest code."""
    x = np.array([[127, -128, -128], [-128, -128, 127]], np.int8)
    model = one_op_model(
        Op.SOFTMAX,
        [T(x.shape, INT8, scale=1.0)],
        [T(x.shape, INT8, scale=1 / 256, zero_point=-128)],
        SoftmaxOptions(1.0),
    )
    for providers in (None, []):
        (got,), _ = ours(model, [x], providers)
        assert got.tolist() == x.tolist()


@pytest.mark.parametrize("type", (UINT8, INT8), ids=lambda type: type.name)
def test_hard_swish_to_fine_codes(type: TensorType) -> None:
    """LiteRT refuses scales that differ by more than 128; here both paths have the true value."""
    zero, result_zero = shifted(type, 3), shifted(type, -60)
    case = all_codes(Op.HARD_SWISH, type, 1.0, 1 / 256, 3, -60)
    x = case.feeds[0].astype(np.float32) - np.float32(zero)
    real = x * np.clip(x + 3, 0, 6) / 6
    want = np.clip(np.round(real * 256) + result_zero, *quantized_range(type))
    for providers in (None, []):
        (got,), _ = ours(case.model(), case.feeds, providers)
        assert_close(got, want.astype(got.dtype), 1, 0, f"with providers {providers}")


def test_kernel_names_a_scale_that_it_refuses() -> None:
    tensor = T((3,), INT16, scale=0.1)
    with pytest.raises(KernelError, match="output scale"):
        ours(one_op_model(Op.LOGISTIC, [tensor], [tensor]), [np.ones(3, np.int16)], providers=[])
