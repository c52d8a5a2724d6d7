"""Scales and zero points that no converter writes: as LiteRT has them, or refused on both paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import T, litert, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert_interpreter
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    ReducerOptions,
    ReshapeOptions,
    TensorType,
)

INT8, INT16, INT32, INT64 = (TensorType[f"INT{n}"] for n in (8, 16, 32, 64))
BOTH = (None, [])
RNG = np.random.default_rng(0)
SCALES, ZERO_POINTS = (0.1, 0.2, 0.4), (3, -5, 0)
BYTES = RNG.integers(-127, 128, 36).astype(np.int8)


def result(interpreter: Any, fed: Any) -> Any:
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], fed)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def layers(zero_points: tuple[int, ...]) -> dict[str, bytes]:
    """Weights with a scale for each of three channels."""
    x, y = T((1, 2, 2, 3), INT8, 0.05), T((1, 2, 2, 3), INT8, 2.0)
    wide, sums = T((4, 3), INT16, 0.05), T((4, 3), INT16, 2.0)
    weights = {"scale": SCALES, "zero_point": zero_points}
    bias = T.constant(np.array([5, -600, 70], np.int32), scale=[0.05 * s for s in SCALES])
    large = T.constant(np.array([5, -600, 70], np.int64), scale=[0.05 * s for s in SCALES])
    square = T.constant(BYTES[:9].reshape(3, 3), INT8, **weights)
    deep = T.constant(BYTES[:12].reshape(1, 2, 2, 3), INT8, axis=3, **weights)
    same = {"padding": Padding.SAME, "stride_w": 1, "stride_h": 1}
    depthwise = DepthwiseConv2DOptions(**same, depth_multiplier=1)
    return {
        "fully connected": one_op_model(
            Op.FULLY_CONNECTED, [wide, square, large], [sums], FullyConnectedOptions(), version=11
        ),
        "depthwise": one_op_model(Op.DEPTHWISE_CONV_2D, [x, deep, bias], [y], depthwise, 3),
    }


@pytest.mark.parametrize("name", layers(ZERO_POINTS))
def test_zero_points_of_weights_with_several_scales_do_not_count(name: str) -> None:
    model, plain = layers(ZERO_POINTS)[name], layers((0, 0, 0))[name]
    interpreter = Interpreter(model_content=model)
    detail = interpreter.get_input_details()[0]
    fed = RNG.integers(-100, 100, detail["shape"]).astype(detail["dtype"])
    want = result(litert_interpreter(model), fed)
    assert (want == result(litert_interpreter(plain), fed)).all()
    for providers in BOTH:
        got = result(Interpreter(model_content=model, providers=providers), fed)
        assert (np.abs(got.astype(np.int32) - want) <= 1).all()


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf, (0.1, np.nan, 0.1)])
def test_a_scale_that_is_no_number_is_none(scale: Any) -> None:
    """Kernels that need one refuse; those that move codes do not look at it."""
    x, y = T((3,), INT8, scale), T((3,), INT8, 0.1)
    fed = np.array([-3, 0, 9], np.int8)
    moved = one_op_model(Op.RESHAPE, [x], [T((1, 3), INT8, scale)], ReshapeOptions((1, 3)))
    model = one_op_model(Op.LOGISTIC, [x], [y])
    for providers in BOTH:
        got = result(Interpreter(model_content=moved, providers=providers), fed)
        assert got.tolist() == [fed.tolist()]
        with pytest.raises(BridgeError, match="scale"):
            result(Interpreter(model_content=model, providers=providers), fed)


@pytest.mark.parametrize("op", [Op.MEAN, Op.SUM], ids=lambda op: op.name)
@pytest.mark.parametrize("type", [INT8, INT16])
def test_several_scales_where_one_is_taken(op: Op, type: TensorType) -> None:
    several, one = T((2, 3), type, SCALES, (0, 0, 0), axis=1), T((2,), type, 0.1)
    axes, fed = T.constant(np.array([1], np.int32)), np.ones((2, 3), type.name.lower())
    model = one_op_model(op, [several, axes], [one], ReducerOptions())
    for providers in BOTH:
        with pytest.raises(BridgeError, match="scales where"):
            result(Interpreter(model_content=model, providers=providers), fed)


def test_of_a_zero_point_the_lowest_32_bits_count() -> None:
    x = T((4,), INT8, 0.5, 2**33 + 7)
    model = one_op_model(Op.DEQUANTIZE, [x], [T((4,))], version=2)
    fed = np.array([-128, 7, 9, 127], np.int8)
    want = result(litert_interpreter(model), fed)
    assert want.tolist() == [-67.5, 0, 1, 60]
    for providers in BOTH:
        got = result(Interpreter(model_content=model, providers=providers), fed)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("largest", [1e-38, 1e-40])
def test_hybrid_sums_of_subnormal_numbers(largest: float) -> None:
    """The numpy kernel rounds them to 8 bits as all others. LiteRT's default kernels flush them to
    0; the quotient of its reference kernels is infinite, so that every code is an end of the
    range."""
    rng = np.random.default_rng(0)
    weights, depth = rng.integers(-127, 128, (5, 12)).astype(np.int8), 12
    tensors = [T((3, depth)), T.constant(weights, scale=0.01)]
    for asymmetric in (False, True):
        options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric)
        model = one_op_model(Op.FULLY_CONNECTED, tensors, [T((3, 5))], options, 9)
        x = (rng.uniform(-1, 1, (3, depth)) * largest).astype(np.float32)
        x[0, 0] = 0
        got = result(Interpreter(model_content=model, providers=[]), x)
        want = x.astype(np.float64) @ (weights.T * 0.01)
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


IMAGE = T((2, 5, 5, 2))
CONVOLUTIONS: dict[Op, tuple[tuple[int, ...], int, tuple[int, ...], Any]] = {
    Op.CONV_2D: ((4, 3, 3, 2), 0, (2, 5, 5, 4), Conv2DOptions(stride_h=1, stride_w=1)),
    Op.DEPTHWISE_CONV_2D: (
        (1, 3, 3, 4),
        3,
        (2, 5, 5, 4),
        DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=2),
    ),
}


@pytest.mark.parametrize("largest", [1e-38, 1e-40])
@pytest.mark.parametrize("op", CONVOLUTIONS, ids=lambda op: op.name)
def test_hybrid_convolutions_of_subnormal_numbers(op: Op, largest: float) -> None:
    """Finite on all paths: numpy rounds them to 8 bits, ONNX Runtime multiplies floats."""
    rng = np.random.default_rng(0)
    shape, axis, result_shape, options = CONVOLUTIONS[op]
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    filter = T.constant(weights, scale=[0.01] * 4, axis=axis)
    bias = T.constant(np.zeros(4, np.float32))
    x = (rng.uniform(-1, 1, IMAGE.shape) * largest).astype(np.float32)
    model, plain = (
        one_op_model(op, [IMAGE, each, bias], [T(result_shape)], options, 5)
        for each in (filter, T.constant((weights * 0.01).astype(np.float32)))
    )
    normal = x * np.float32(2.0**100)
    want = result(litert_interpreter(plain), normal).astype(np.float64) / 2.0**100
    for providers in BOTH:
        got = result(Interpreter(model_content=model, providers=providers), x)
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


@pytest.mark.parametrize("scales", [(100.0, 1000.0, 0.1), (0.1, 0.1, 1e-7)])
def test_products_beyond_32_bits_get_the_outermost_codes(scales: tuple[float, ...]) -> None:
    codes = np.array([-128, -3, -1, 0, 1, 2, 127], np.int8)
    first, second, made = (T((7,), INT8, scale, zero_point=0) for scale in scales)
    model = one_op_model(Op.MUL, [first, second], [made], MulOptions())
    feeds = [codes, np.full(7, 101, np.int8)]
    for got in (
        *(ours(model, feeds, providers)[0][0] for providers in BOTH),
        *exported(model, feeds),
    ):
        assert got.tolist() == [-128, -128, -128, 0, 127, 127, 127]


@pytest.mark.parametrize("zeros", [(0, 0, 0), (-128, 124, 7)])
@pytest.mark.parametrize("scales", [(1e6, 1e6, 0.1), (0.1, 0.1, 1e-12), (0.004, 5e-6, 1.2e-35)])
def test_products_of_which_litert_shifts_everything_out(
    scales: tuple[float, ...], zeros: tuple[int, ...]
) -> None:
    """Sixteen codes, which its vectors take; the rest it leaves to the processor."""
    codes = np.arange(-8, 8, dtype=np.int8)
    pairs = zip(scales, zeros, strict=True)
    first, second, made = (T((16,), INT8, scale, zero_point=zero) for scale, zero in pairs)
    model = one_op_model(Op.MUL, [first, second], [made], MulOptions())
    feeds = [codes, np.full(16, 101, np.int8)]
    (expected,) = litert(model, feeds)
    assert (expected == zeros[-1]).all()
    for got in (
        *(ours(model, feeds, providers)[0][0] for providers in BOTH),
        *exported(model, feeds),
    ):
        np.testing.assert_array_equal(got, expected)
