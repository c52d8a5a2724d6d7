"""A batch of codes with a scale for each index of an axis."""

from __future__ import annotations

import pytest

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, Unbatchable
from tflite_ort.schema import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Op,
    TensorType,
)

INT8 = TensorType.INT8
CODES, SCALES = T((1, 4, 4, 3), INT8, 0.1), (0.1, 0.2, 0.3)
STRIDES = {"stride_w": 1, "stride_h": 1}
REFUSED = {
    "CONV_2D": one_op_model(
        Op.CONV_2D, [CODES, T((3, 1, 1, 3), INT8, SCALES)], [CODES], Conv2DOptions(**STRIDES)
    ),
    "DEPTHWISE_CONV_2D": one_op_model(
        Op.DEPTHWISE_CONV_2D,
        [CODES, T((1, 1, 1, 3), INT8, SCALES, axis=3)],
        [CODES],
        DepthwiseConv2DOptions(**STRIDES, depth_multiplier=1),
        3,
    ),
    "FULLY_CONNECTED of floats": one_op_model(
        Op.FULLY_CONNECTED,
        [T((1, 4)), T((3, 4), INT8, SCALES)],
        [T((1, 3))],
        FullyConnectedOptions(),
        9,
    ),
    "DEQUANTIZE": one_op_model(
        Op.DEQUANTIZE, [T((1, 3), INT8, SCALES, axis=1)], [T((1, 3))], version=5
    ),
}


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("name", REFUSED)
def test_fed_weights_with_scales_are_refused(name: str, size: int) -> None:
    """Not the AllocationError of a model whose scales do not fit; a batch of three hid it."""
    Interpreter(model_content=REFUSED[name]).allocate_tensors()
    with pytest.raises(Unbatchable, match="go along an axis that the batch moves"):
        Interpreter(model_content=REFUSED[name], batch=size)


def test_scales_along_an_axis_that_stays_are_kept() -> None:
    product = one_op_model(
        Op.BATCH_MATMUL,
        [T((1, 2, 4)), T((1, 4, 3), INT8, SCALES, axis=2)],
        [T((1, 2, 3))],
        BatchMatMulOptions(),
        4,
    )
    Interpreter(model_content=product, batch=3).allocate_tensors()
