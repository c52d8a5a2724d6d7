"""Layers and arithmetic of 16-bit activations give LiteRT's codes, every one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    ReducerOptions,
    ResizeBilinearOptions,
    SubOptions,
    TensorType,
    TransposeConvOptions,
)

INT8, INT16 = TensorType.INT8, TensorType.INT16
RELU = ActivationFunctionType.RELU
SCALE = 1e-4
# Shapes of filters: two digits do for most weights, sums over 2,304 of the largest take three.
CONVOLUTIONS = {
    "pointwise": (Op.CONV_2D, (1, 5, 5, 24), (16, 1, 1, 24)),
    "dense": (Op.CONV_2D, (2, 7, 6, 16), (9, 3, 3, 16)),
    "deep": (Op.CONV_2D, (1, 4, 4, 256), (8, 3, 3, 256)),
    "groups": (Op.CONV_2D, (1, 6, 6, 8), (12, 3, 3, 4)),
    "depthwise": (Op.DEPTHWISE_CONV_2D, (1, 9, 8, 12), (1, 3, 3, 12)),
    "multiplier": (Op.DEPTHWISE_CONV_2D, (1, 9, 8, 4), (1, 5, 5, 12)),
}


def layer(
    op: Op, shape: tuple[int, ...], weights: T, sums: tuple[int, ...], options: object, *rest: T
) -> Case:
    """A layer whose output covers two thirds of the range of the sums."""
    assert weights.data is not None and weights.scale is not None
    depth = weights.data.size // sums[-1]
    unit = SCALE * float(np.mean(weights.scale)) * np.sqrt(depth) * 70 * 19000 / 20000
    tensors = [T(shape, INT16, SCALE), weights, *rest]
    return Case(op.name, op, tensors, [T(sums, INT16, float(unit))], options, 5, quanta=0)


def weights_of(shape: tuple[int, ...], channels: int, axis: int, rng: np.random.Generator) -> T:
    codes = rng.integers(-127, 128, shape).astype(np.int8)
    scales = rng.uniform(1e-4, 9e-4, channels)
    return T.constant(codes, scale=scales.tolist() if channels > 1 else scales[0], axis=axis)


def bias_of(weights: T, size: int, rng: np.random.Generator) -> T:
    scales = (np.atleast_1d(np.asarray(weights.scale)) * SCALE).tolist()
    codes = rng.integers(-(2**20), 2**20, size).astype(np.int64)
    return T.constant(codes, scale=scales if len(scales) > 1 else scales[0])


@pytest.mark.parametrize("scale", [2**-10, 2**-11, 2**-12, 2**-12 * 1.0005, 2**-12 * 1.002, 2**-13])
@pytest.mark.parametrize("op", [Op.LOGISTIC, Op.TANH])
def test_functions_of_powers_of_two(op: Op, scale: float) -> None:
    """For some LiteRT has fixed-point numbers in place of a table, but in its reference kernels."""
    every = np.arange(-(2**15), 2**15).astype(np.int16)
    model = one_op_model(op, [T(every.shape, INT16, scale)], [T(every.shape, INT16, 2**-15)])
    (wanted,) = litert(model, [every], "default")
    (got,), _ = ours(model, [every])
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(exported(model, [every])[0], wanted)
    (wanted,) = litert(model, [every], "reference")
    (got,), _ = ours(model, [every], providers=[])
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    op, shape, filter_shape = CONVOLUTIONS[name]
    rng = np.random.default_rng(len(name))
    axis = 0 if op is Op.CONV_2D else 3
    outputs = filter_shape[axis]
    weights = weights_of(filter_shape, outputs, axis, rng)
    stride = 2 if name == "dense" else 1
    options: object
    if op is Op.CONV_2D:
        options = Conv2DOptions(Padding.SAME, stride, stride, fused_activation_function=RELU)
    else:
        multiplier = outputs // shape[3]
        options = DepthwiseConv2DOptions(Padding.SAME, 1, 1, depth_multiplier=multiplier)
    sums = (shape[0], -(-shape[1] // stride), -(-shape[2] // stride), outputs)
    check(layer(op, shape, weights, sums, options, bias_of(weights, outputs, rng)))


@pytest.mark.parametrize("channels", [1, 33], ids=["one scale", "by channel"])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("depth", [24, 1100])
def test_fully_connected(depth: int, biased: bool, channels: int) -> None:
    """TFLite rounds by another kernel if there is a bias of 64 bits."""
    rng = np.random.default_rng(depth)
    weights = weights_of((33, depth), channels, 0, rng)
    rest = [bias_of(weights, 33, rng)] if biased else []
    case = layer(Op.FULLY_CONNECTED, (50, depth), weights, (50, 33), FullyConnectedOptions(), *rest)
    model, feeds = case.model(), case.arrays(rng)
    (got,), runners = ours(model, feeds)
    assert runners == {"ort"}
    np.testing.assert_array_equal(got, litert(model, feeds)[0])


@pytest.mark.parametrize("adjoint", [False, True])
def test_product_of_two_activations(adjoint: bool) -> None:
    right = (3, 20, 24) if adjoint else (3, 24, 20)
    unit = SCALE * SCALE * np.sqrt(24) * 19000
    tensors = [T((3, 10, 24), INT16, SCALE), T(right, INT16, SCALE)]
    output = T((3, 10, 20), INT16, float(unit))
    options = BatchMatMulOptions(adj_y=adjoint)
    check(Case("product", Op.BATCH_MATMUL, tensors, [output], options, 3, quanta=0))


def test_a_product_that_wraps_at_32_bits() -> None:
    """As litert__matmul_quant has: the result's scale is a third of that of one product."""
    tensors = [T((3, 256), INT16, SCALE), T((256, 20), INT16, SCALE)]
    output = T((3, 20), INT16, SCALE * SCALE / 3.38)
    options = BatchMatMulOptions()
    check(Case("wraps", Op.BATCH_MATMUL, tensors, [output], options, 3, quanta=0, runs_on="numpy"))


ARITHMETIC = {
    Op.ADD: (AddOptions(RELU), (1.0, 1.0)),
    Op.SUB: (SubOptions(), (1.0, 1.0)),
    Op.MUL: (MulOptions(RELU), (1.0, 32768.0)),
}


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.name)
@settings(max_examples=12)
@given(st.data())
def test_arithmetic(op: Op, data: st.DataObject) -> None:
    """Scales that differ by up to a factor of 100 on either side."""
    options, (low, high) = ARITHMETIC[op]
    first, second, third = (data.draw(st.floats(0.1, 10)) * SCALE for _ in range(3))
    unit = third * high if op is Op.MUL else third
    unit = unit * SCALE if op is Op.MUL else unit
    shape, other = data.draw(st.sampled_from([((7, 9), (7, 9)), ((2, 3, 4), (4,))]))
    tensors = [T(shape, INT16, first), T(other, INT16, second)]
    case = Case(op.name, op, tensors, [T(shape, INT16, unit * low)], options, 4, quanta=0)
    check(case, seed=data.draw(st.integers(0, 2**31)))


@settings(max_examples=12)
@given(st.floats(0.01, 100), st.sampled_from([(1,), (0, 1), (1, 2)]), st.booleans())
def test_mean(ratio: float, axes: tuple[int, ...], keep: bool) -> None:
    shape = (3, 5, 11)
    kept = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
    tensors = [T(shape, INT16, SCALE), T.constant(np.array(axes, np.int32))]
    output = T(tuple(kept), INT16, SCALE * ratio)
    check(Case("MEAN", Op.MEAN, tensors, [output], ReducerOptions(keep), 2, quanta=0))


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL], ids=lambda op: op.name)
def test_results_next_to_halves(op: Op) -> None:
    """Of large codes, whose fractions float32 would round."""
    operand, made = T((20_000,), INT16, 0.3), T((20_000,), INT16, 0.4)
    options = AddOptions(pot_scale_int16=False) if op is Op.ADD else MulOptions()
    check(Case(op.name, op, [operand, operand], [made], options, 4, quanta=0))


def test_means_of_pixels_next_to_halves() -> None:
    size = T.constant(np.array([100, 110], np.int32))
    tensors = [T((1, 40, 44, 4), INT16, SCALE), size]
    made = T((1, 100, 110, 4), INT16, SCALE)
    options = ResizeBilinearOptions(half_pixel_centers=True)
    check(Case("resize", Op.RESIZE_BILINEAR, tensors, [made], options, 4, quanta=0))


def test_scales_beyond_what_floats_hold_are_near() -> None:
    """TFLite's results pass 32 bits and wrap there; the largest code is what is meant."""
    tensors = [T((4,), INT16, 1.0), T((4,), INT16, 1.0)]
    model = one_op_model(Op.MUL, tensors, [T((4,), INT16, 1e-8)], MulOptions())
    codes = np.array([20000, 3, -3, 0], np.int16)
    (got,), _ = ours(model, [codes, np.abs(codes)])
    assert got.tolist() == [32767, 32767, -32768, 0]


def test_sums_of_nothing_in_large_units_are_nothing() -> None:
    """A product and its bias cancel; in floats their last bits would be codes of the result."""
    scales, counts = (38.6798, 2321.1487, 0.0019369617), np.array([-32767 * 3, -77 * 32767])
    weights = T.constant(np.array([[[[3, 77]]]], np.int8), scale=scales[1])
    bias = T.constant(counts.astype(np.int64), scale=scales[0] * scales[1])
    image, made = T((1, 1, 3, 2), INT16, scales[0]), T((1, 1, 3, 2), INT16, scales[2])
    options = DepthwiseConv2DOptions(Padding.VALID, 1, 1, 1)
    model = one_op_model(Op.DEPTHWISE_CONV_2D, [image, weights, bias], [made], options, 5)
    codes = np.full(image.shape, 32767, np.int16)
    for providers in (None, []):
        (got,), _ = ours(model, [codes], providers)
        assert not got.any()


@pytest.mark.parametrize("channels", [1, 9], ids=["one scale", "by channel"])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("computed", [False, True], ids=["known size", "computed size"])
def test_transposed_convolution(computed: bool, biased: bool, channels: int) -> None:
    rng = np.random.default_rng(channels)
    weights = weights_of((9, 3, 3, 64), channels, 0, rng)
    rest = [bias_of(weights, 9, rng)] if biased else []
    shape, made = (1, 5, 4, 64), (1, 10, 8, 9)
    options = TransposeConvOptions(Padding.SAME, 2, 2)
    case = layer(Op.TRANSPOSE_CONV, shape, weights, made, options, *rest)
    size = np.array(made, np.int32)
    image, *others = case.inputs
    tensors = [T((4,), TensorType.INT32) if computed else T.constant(size), weights, image]
    model = one_op_model(case.op, [*tensors, *others[1:]], case.outputs, options, 5)
    feeds = [rng.integers(-(2**15), 2**15, shape).astype(np.int16)]
    feeds = [size, *feeds] if computed else feeds
    wanted = [litert(model, feeds, kernels)[0] for kernels in ("default", "reference")]
    (got,), runners = ours(model, feeds)
    assert runners == {"ort"}
    for found in (got, ours(model, feeds, [])[0][0], exported(model, feeds, exact=True)[0]):
        for want in wanted:
            np.testing.assert_array_equal(found, want)


def test_products_that_are_amplified() -> None:
    """Those of the largest codes exceed 32 bits, and wrap in TFLite; others are rounded twice."""
    scales = (1.0, 1.3877, 0.3469)
    codes = np.arange(-20_000, 20_000).astype(np.int16)
    first, second, made = (T(codes.shape, INT16, scale) for scale in scales)
    model = one_op_model(Op.MUL, [first, second], [made], MulOptions(), 4)
    feeds = [codes, np.ones_like(codes)]
    for got in (ours(model, feeds)[0][0], exported(model, feeds, exact=True)[0]):
        np.testing.assert_array_equal(got, litert(model, feeds)[0])
