"""Activations rounded as XNNPACK does, LiteRT's default: products within 1e-6 of LiteRT's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.one_op import Case, T, assert_close, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import ActivationFunctionType as Activation
from tflite_ort.schema import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    TensorType,
)
from tflite_ort.schema.values.semantics import quantized_range

SEED = 11
# float32 sums of exact integers, times two scales in another order
TOLERANCE = 1e-6


def weights(shape: tuple[int, ...], axis: int | None) -> T:
    """Codes with one scale, or with one for each slice of an axis."""
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-127, 128, shape).astype(np.int8)
    if axis is None:
        return T.constant(codes, scale=0.01)
    return T.constant(codes, scale=rng.uniform(0.01, 0.02, shape[axis]).tolist(), axis=axis)


def dense(shape: tuple[int, ...], axis: int | None, asymmetric: bool) -> Case:
    options = FullyConnectedOptions(keep_num_dims=True, asymmetric_quantize_inputs=asymmetric)
    inputs = [T(shape), weights((9, shape[-1]), axis)]
    return Case("dense", Op.FULLY_CONNECTED, inputs, [T((*shape[:-1], 9))], options, 9)


def convolution(axis: int | None) -> Case:
    options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
    inputs = [T((2, 9, 9, 4)), weights((8, 3, 3, 4), axis), T.constant(np.zeros(8, np.float32))]
    return Case("convolution", Op.CONV_2D, inputs, [T((2, 7, 7, 8))], options, 5)


def cells(channels: int, groups: int) -> Case:
    """By windows of one cell, each of which is rounded by itself unless there are groups."""
    options = Conv2DOptions(stride_w=1, stride_h=1)
    shape, bias = (2, 5, 6, channels), T.constant(np.ones(8, np.float32))
    inputs = [T(shape), weights((8, 1, 1, channels // groups), 0), bias]
    return Case("cells", Op.CONV_2D, inputs, [T((*shape[:3], 8))], options, 6)


def product(rank: int, adjoint: bool) -> Case:
    batch = (1,) * (rank - 2)
    factor = weights((*batch, *((16, 64) if adjoint else (64, 16))), None)
    options = BatchMatMulOptions(adj_y=adjoint)
    return Case(
        "product", Op.BATCH_MATMUL, [T((*batch, 5, 64)), factor], [T((*batch, 5, 16))], options, 4
    )


CASES = {
    **{
        f"FULLY_CONNECTED-{len(shape)}-{axis}-{asymmetric}": dense(shape, axis, asymmetric)
        for shape in ((1, 64), (5, 512), (2, 7, 30))
        for axis in (None, 0)
        for asymmetric in (False, True)
    },
    **{f"CONV_2D-{axis}": convolution(axis) for axis in (None, 0)},
    **{
        f"CONV_2D-cells-{channels}-{groups}": cells(channels, groups)
        for channels, groups in ((1, 1), (2, 1), (4, 1), (5, 1), (8, 2), (8, 4))
    },
    **{
        f"BATCH_MATMUL-{rank}-{adjoint}": product(rank, adjoint)
        for rank in (2, 3, 4)
        for adjoint in (False, True)
    },
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_are_rounded_as_by_default(case: Case) -> None:
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).normal(0.3, 1, case.inputs[0].shape).astype(np.float32)
    (want,) = litert(case.model(), [x])
    (got,), runners = ours(case.model(), [x], hybrid="xnnpack")
    assert runners == {"ort"}
    assert_close(got, want, 0, TOLERANCE, "as LiteRT's default")


@pytest.mark.parametrize("low", [-300, -128, -127, 0, 1])
def test_halves_and_zero_points(low: int) -> None:
    """Halves go to the even code; the weights, 1 on the diagonal, show every code. Rows of zeros
    and of one sign have a zero point at the end of the range."""
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).integers(2 * low, 2 * low + 511, (6, 64)) / 2
    x[:, :2] = low, low + 255
    x[5] = 0
    x = (x * np.exp2(np.arange(-3, 3))[:, np.newaxis]).astype(np.float32)
    eye = T.constant(np.eye(64, dtype=np.int8), scale=1.0)
    case = Case(
        "halves", Op.FULLY_CONNECTED, [T((6, 64)), eye], [T((6, 64))], FullyConnectedOptions(), 9
    )
    (want,) = litert(case.model(), [x])
    (got,), _ = ours(case.model(), [x], hybrid="xnnpack")
    assert_close(got, want, 0, TOLERANCE, "as LiteRT's default")


@pytest.mark.parametrize("rows", [1, 2])
def test_the_ends_of_a_symmetric_row_are_halves(rows: int) -> None:
    """In a row of codes -127 to 127 times a scale, as an embedding has them, the ends are 127.5
    steps from 0 or next to it, and so is the zero point: which code they become depends on the last
    bit of each step."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    eye = T.constant(np.eye(64, dtype=np.int8), scale=1.0)
    options = FullyConnectedOptions()
    case = Case("ends", Op.FULLY_CONNECTED, [T((rows, 64)), eye], [T((rows, 64))], options, 9)
    for scale in rng.uniform(0.001, 1, 40):
        x = rng.integers(-127, 128, (rows, 64))
        x[:, :2] = -127, 127
        x = (x * np.float32(scale)).astype(np.float32)
        (want,) = litert(case.model(), [x])
        (got,), _ = ours(case.model(), [x], hybrid="xnnpack")
        assert_close(got, want, 0, TOLERANCE, "as LiteRT's default")


def test_an_export_rounds_so_too() -> None:
    case = CASES["FULLY_CONNECTED-3-0-False"]
    x = np.random.default_rng(SEED).normal(0.3, 1, case.inputs[0].shape).astype(np.float32)
    (want,) = litert(case.model(), [x])
    assert_close(exported(case.model(), [x], hybrid="xnnpack")[0], want, 0, TOLERANCE, "exported")


def of_few_rows(name: str, shape: tuple[int, ...], **more: Any) -> Case:
    options = FullyConnectedOptions(**more)
    inputs = [T(shape), weights((9, 64), None)]
    return Case(name, Op.FULLY_CONNECTED, inputs, [T((1, 9))], options, 9)


def with_computed(case: Case, place: int) -> Case:
    """With one of the constants of `case` computed."""
    inputs = list(case.inputs)
    constant = inputs[place] if place < len(inputs) else None
    bias = T((case.outputs[0].shape[-1],))
    inputs[place:] = [bias if constant is None else replace(constant, data=None)]
    return replace(case, inputs=[*inputs, *case.inputs[place + 1 :]])


def of_few_bits(depth: int, type: TensorType, *, by_rows: bool) -> Case:
    rng, most = np.random.default_rng(SEED), quantized_range(type)[1]
    scale: Any = rng.uniform(0.01, 0.02, 9).tolist() if by_rows else 0.01
    codes = rng.integers(-most, most + 1, (9, depth)).astype(np.int8)
    inputs = [T((3, depth)), T.constant(codes, type, scale=scale, axis=0)]
    return Case("few bits", Op.FULLY_CONNECTED, inputs, [T((3, 9))], FullyConnectedOptions(), 14)


def convolution_of_four_bits(kernel: int, axis: int | None) -> Case:
    options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
    filter = weights((8, kernel, kernel, 4), axis)
    assert filter.data is not None
    codes = (filter.data // 32).astype(np.int8)
    filter = replace(filter, data=codes, type=TensorType.INT4)
    inputs, size = [T((2, 9, 9, 4)), filter, T.constant(np.zeros(8, np.float32))], 10 - kernel
    return Case("4 bits", Op.CONV_2D, inputs, [T((2, size, size, 8))], options, 5)


def of_symmetric_images() -> Case:
    """DEPTHWISE_CONV_2D; the ends of an image are halves to XNNPACK, and codes to LiteRT's own
    kernel."""
    x = np.random.default_rng(SEED).integers(-127, 128, (2, 5, 5, 4)).astype(np.float32)
    x[:, 0, 0, :2] = -127, 127
    options = DepthwiseConv2DOptions(Padding.VALID, 1, 1, 1)
    inputs = [T(x.shape), weights((1, 3, 3, 4), 3), T.constant(np.zeros(4, np.float32))]
    output = T((2, 3, 3, 4))
    return Case("depthwise", Op.DEPTHWISE_CONV_2D, inputs, [output], options, 6, feeds=[x])


OTHERS = {
    **{
        f"{type.name}, {depth}, {by_rows}": of_few_bits(depth, type, by_rows=by_rows)
        for type, depths in ((TensorType.INT2, (8, 12, 30)), (TensorType.INT4, (8, 30, 33)))
        for depth in depths
        for by_rows in (False, True)
    },
    **{
        f"CONV_2D of 4 bits, {kernel}, {axis}": convolution_of_four_bits(kernel, axis)
        for kernel in (1, 3)
        for axis in (None, 0)
    },
    "DEPTHWISE_CONV_2D": of_symmetric_images(),
    "vector": of_few_rows("vector", (64,)),
    "TANH": of_few_rows("TANH", (1, 64), fused_activation_function=Activation.TANH),
    "computed weights": with_computed(of_few_rows("weights", (1, 64)), 1),
    "computed bias": with_computed(of_few_rows("bias", (1, 64)), 2),
    "CONV_2D, computed bias": with_computed(cells(8, 1), 2),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_what_xnnpack_takes_and_what_it_leaves(case: Case) -> None:
    """It takes vectors, and leaves what has computed weights or a computed bias, or a TANH. Of
    weights of 4 and 2 bits it takes matrices with rows of whole bytes, of 2 bits with a scale for
    each, and it takes no DEPTHWISE_CONV_2D."""
    print(f"seed {SEED}")
    feeds = case.arrays(np.random.default_rng(SEED))
    for array in feeds:  # the least code has no opposite, which LiteRT's own kernels need
        if array.dtype == np.int8:
            array[array == -128] = 127
    (want,) = litert(case.model(), feeds)
    (got,), _ = ours(case.model(), feeds, hybrid="xnnpack")
    assert_close(got, want, 0, TOLERANCE, "as LiteRT's default")
