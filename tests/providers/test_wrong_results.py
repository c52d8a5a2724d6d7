"""What a provider computes otherwise than TFLite goes to the next delegate, see `traits`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.delegated import allocated
from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tests.providers.samples import OPENVINO, WEBGPU
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import (
    AddOptions,
    BitcastOptions,
    Conv2DOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    Padding,
    ReducerOptions,
    RightShiftOptions,
    StridedSliceOptions,
    TensorType,
    TransposeConvOptions,
)

INT8, INT32, INT64, UINT32 = (
    TensorType.INT8,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
)
AXIS = T.constant(np.array([1], np.int32))
WIDE = np.array([[2**24, 2**24 + 1], [-(2**24) - 1, -(2**24)]], np.int32)
EQUAL = np.random.default_rng(0).integers(0, 5, (1, 40)).astype(np.int32)

CASES: dict[str, tuple[Op, list[T], list[T], Any, list[Any]]] = {
    "int64": (
        Op.ADD,
        [T((2,), INT64)] * 2,
        [T((2,), INT64)],
        AddOptions(),
        [np.array([2**40, -(2**40)]), np.array([1, 2**33])],
    ),
    "uint32": (
        Op.RIGHT_SHIFT,
        [T((1,), UINT32)] * 2,
        [T((1,), UINT32)],
        RightShiftOptions(),
        [np.array([2**32 - 1], np.uint32), np.array([1], np.uint32)],
    ),
    "bitcast": (
        Op.BITCAST,
        [T((3,), INT32)],
        [T((3, 4), TensorType.UINT8)],
        BitcastOptions(),
        [np.array([-1, 2**31 - 1, 0x01020304], np.int32)],
    ),
    "negative": (Op.NEG, [T((2,), INT8)], [T((2,), INT8)], None, [np.array([-128, 5], np.int8)]),
    "equal-values": (
        Op.TOPK_V2,
        [T((1, 40), INT32), T.constant(np.array(10, np.int32))],
        [T((1, 10), INT32)] * 2,
        None,
        [EQUAL],
    ),
} | {
    op.name: (op, [T((2, 2), INT32), AXIS], [T((2,), INT32)], ReducerOptions(), [WIDE])
    for op in (Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN)
}


Case = tuple[Op, list[T], list[T], Any]


def convolution(channels: int, outputs: int) -> Case:
    weights = np.random.default_rng(0).normal(size=(outputs, 3, 3, channels)).astype(np.float32)
    inputs = [
        T((1, 5, 6, channels)),
        T.constant(weights),
        T.constant(np.zeros(outputs, np.float32)),
    ]
    return Op.CONV_2D, inputs, [T((1, 3, 4, outputs))], Conv2DOptions(Padding.VALID, 1, 1)


def backwards() -> Case:
    places = [T.constant(np.array(values, np.int32)) for values in ([4], [1], [-1])]
    return Op.STRIDED_SLICE, [T((6,)), *places], [T((3,))], StridedSliceOptions()


def mirrored() -> Case:
    paddings = T.constant(np.array([[2, 1]], np.int32))
    return Op.MIRROR_PAD, [T((5,)), paddings], [T((8,))], MirrorPadOptions(MirrorPadMode.SYMMETRIC)


def transposed() -> Case:
    shape = T.constant(np.array([1, 5, 6, 4], np.int32))
    weights = T.constant(np.ones((4, 3, 3, 2), np.float32))
    options = TransposeConvOptions(Padding.SAME, 1, 1)
    return Op.TRANSPOSE_CONV, [shape, weights, T((1, 5, 6, 2))], [T((1, 5, 6, 4))], options


WEBGPU_CASES = {
    "channels": convolution(6, 8),
    "backwards": backwards(),
    "mirrored": mirrored(),
    "no-bias": transposed(),
    "sine": (Op.SIN, [T((5,))], [T((5,))], None),
}


def assert_left_and_right(provider: str, case: Case, feeds: Any) -> None:
    op, inputs, outputs, options = case
    model = one_op_model(op, inputs, outputs, options)
    (row,) = allocated(model, providers=[provider, CPU]).delegation()
    assert row.delegate != provider
    assert "wrong in" in row.reason
    got, _ = ours(model, feeds, providers=[provider, CPU])
    for result, want in zip(got, litert(model, feeds), strict=True):
        tolerance = 0 if want.dtype.kind in "iu" else 1e-5
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance)


@pytest.mark.openvino
@pytest.mark.parametrize("name", CASES)
def test_openvino_leaves_what_it_computes_otherwise(name: str) -> None:
    op, inputs, outputs, options, feeds = CASES[name]
    assert_left_and_right(OPENVINO, (op, inputs, outputs, options), feeds)


@pytest.mark.webgpu
@pytest.mark.parametrize("name", WEBGPU_CASES)
def test_webgpu_leaves_what_it_computes_otherwise(name: str) -> None:
    case = WEBGPU_CASES[name]
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=t.shape).astype(np.float32) for t in case[1] if not t.is_constant]
    assert_left_and_right(WEBGPU, case, feeds)


@pytest.mark.webgpu
def test_webgpu_takes_the_convolutions_it_can() -> None:
    op, inputs, outputs, options = convolution(8, 8)
    model = one_op_model(op, inputs, outputs, options)
    (row,) = allocated(model, providers=[WEBGPU, CPU]).delegation()
    assert row.provider == WEBGPU
