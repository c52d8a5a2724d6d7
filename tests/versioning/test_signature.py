"""Signatures of operators in files: the quantisation, the channels, the options left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort.schema import (
    AbsOptions,
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    TensorType,
    TransposeConvOptions,
    read_model,
)
from tflite_ort.schema.file.model import Model
from tflite_ort.versioning import required_version, signature
from tflite_ort.versioning.operator_signature import Signature

FLOAT32, INT8, INT16, INT32 = (
    TensorType.FLOAT32,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
)


def signature_of(model: bytes) -> Signature:
    read: Model = read_model(model)
    return signature(read, read.subgraphs[0], read.subgraphs[0].operators[0])


def image(type: TensorType, channels: int = 4, **quantization: Any) -> T:
    return T((1, 5, 5, channels), type, **quantization)


def weights(type: TensorType, shape: tuple[int, ...], scales: int = 0) -> T:
    """One scale for each channel of the first axis, or of the last where the first is 1."""
    scale = [0.5] * scales if scales else None
    axis = len(shape) - 1 if shape[0] < scales else 0
    return T(shape, type, scale, [0] * scales, axis=axis, data=np.ones(shape, np.int8))


CONV, DEPTHWISE = Conv2DOptions(Padding.SAME, 1, 1), DepthwiseConv2DOptions(Padding.SAME, 1, 1)
DILATED = DepthwiseConv2DOptions(Padding.SAME, 1, 1, dilation_w_factor=2)
Q8: dict[str, Any] = {"scale": 0.5}

ROWS = [
    # Convolution: hybrid, per channel (one channel counts), groups, 16x8
    (Op.CONV_2D, [image(FLOAT32), weights(INT8, (3, 1, 1, 4), 1)], FLOAT32, CONV, 2),
    (Op.CONV_2D, [image(FLOAT32), weights(INT8, (3, 1, 1, 4), 3)], FLOAT32, CONV, 5),
    (Op.CONV_2D, [image(FLOAT32), weights(INT8, (1, 1, 1, 4), 1)], FLOAT32, CONV, 5),
    (Op.CONV_2D, [image(FLOAT32), weights(INT8, (4, 1, 1, 2), 4)], FLOAT32, CONV, 6),
    (Op.CONV_2D, [image(INT8), weights(INT8, (3, 1, 1, 4), 3)], INT8, CONV, 3),
    (Op.CONV_2D, [image(INT16), weights(INT8, (3, 1, 1, 4), 3)], INT16, CONV, 8),
    (Op.CONV_2D, [image(INT16), weights(INT8, (3, 1, 1, 4), 3)], INT16, None, 1),
    (Op.DEPTHWISE_CONV_2D, [image(FLOAT32), T((1, 3, 3, 4))], FLOAT32, DEPTHWISE, 1),
    (Op.DEPTHWISE_CONV_2D, [image(FLOAT32), T((1, 3, 3, 4))], FLOAT32, DILATED, 2),
    (Op.DEPTHWISE_CONV_2D, [image(FLOAT32), T((1, 3, 3, 4))], FLOAT32, None, 2),
    (Op.DEPTHWISE_CONV_2D, [image(INT8), weights(INT8, (1, 3, 3, 4), 4)], INT8, DILATED, 3),
    (
        Op.TRANSPOSE_CONV,
        [T((4,), INT32), T((3, 1, 1, 4)), image(FLOAT32), None],
        FLOAT32,
        TransposeConvOptions(Padding.SAME, 1, 1),
        1,
    ),
    # Fully connected: a bias left out counts as an input, one that is missing does not
    (Op.FULLY_CONNECTED, [T((1, 4)), T((2, 4)), None], FLOAT32, FullyConnectedOptions(), 1),
    (Op.FULLY_CONNECTED, [T((1, 4)), T((2, 4))], FLOAT32, FullyConnectedOptions(), 6),
    # Quantised or plain int16
    (Op.ADD, [image(INT16), image(INT16)], INT16, AddOptions(), 5),
    (Op.ADD, [image(INT16, **Q8), image(INT16)], INT16, AddOptions(), 1),
    (Op.ADD, [image(INT16, **Q8), image(INT16)], INT16, None, 3),
    (Op.ABS, [image(INT16)], INT16, AbsOptions(), 4),
    (Op.ABS, [image(INT16, **Q8)], INT16, AbsOptions(), 3),
    (Op.MUL, [image(INT16), image(INT16, **Q8)], INT16, MulOptions(), 4),
    (Op.MUL, [image(INT16), image(INT16)], INT16, MulOptions(), 7),
    # Quantisation per channel, of the data and of the result
    (Op.DEQUANTIZE, [weights(INT8, (3, 2), 3)], FLOAT32, None, 5),
    (Op.DEQUANTIZE, [weights(INT8, (3, 2), 1)], FLOAT32, None, 2),
    (Op.EMBEDDING_LOOKUP, [T((2,), INT32), weights(INT8, (3, 2), 3)], FLOAT32, None, 4),
    (Op.EMBEDDING_LOOKUP, [T((2,), INT32), weights(INT8, (1, 2), 1)], FLOAT32, None, 1),
]


@pytest.mark.parametrize(("op", "inputs", "output", "options", "version"), ROWS)
def test_version_of_an_operator_in_a_file(
    op: Op, inputs: list[T | None], output: TensorType, options: Any, version: int
) -> None:
    model = one_op_model(op, inputs, [T((1, 5, 5, 3), output)], options)
    assert required_version(signature_of(model)) == version


@pytest.mark.parametrize(
    ("scales", "version"), [((0.5, 0.5, 0.25), 3), ((0.5, 0.5, 0.26), 2), ((0.1, 0.3, 0.03), 3)]
)
def test_multiplier_of_mul_is_float32(scales: tuple[float, float, float], version: int) -> None:
    """0.1 * 0.3 / 0.03 is 1 in float32 and below it in float64."""
    left, right, out = (T((1,), INT8, scale) for scale in scales)
    model = one_op_model(Op.MUL, [left, right], [out], MulOptions())
    expected = np.float32(scales[0]) * np.float32(scales[1]) / np.float32(scales[2]) >= 1.0
    assert expected == (version == 3)
    assert required_version(signature_of(model)) == version


def test_signature_tells_constants_and_absent_inputs() -> None:
    model = one_op_model(
        Op.FULLY_CONNECTED, [T((1, 4)), T.constant(np.zeros((2, 4), np.float32)), None], [T((1, 2))]
    )
    found = signature_of(model)
    assert [tensor.is_constant for tensor in found.inputs] == [False, True, False]
    assert [tensor.type for tensor in found.inputs] == [FLOAT32, FLOAT32, None]
    assert hash(found.inputs) == hash(signature_of(model).inputs)
