"""uint8 weights around any zero point as OpenVINO gets them: int8 around 0."""

from __future__ import annotations

import numpy as np
import pytest

from tests.across.channels_first import check_channels_first
from tests.one_op import Case, T
from tflite_ort.opmap import Graph
from tflite_ort.opmap.graph import Target
from tflite_ort.opmap.idioms.convolution_operands import symmetric
from tflite_ort.schema import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    Quantization,
    TensorType,
    TensorView,
)

OPENVINO = Target("int8", real_transposes=True, symmetric_weights=True)
CODES = {"type": TensorType.UINT8, "scale": 0.05, "zero_point": 117}


def filter_codes(shape: tuple[int, ...], zero_point: int, far: int) -> np.ndarray:
    """Random codes that fit in int8 around `zero_point`, with `far` of them at the farther end."""
    seed = 0
    rng = np.random.default_rng(seed)
    print(f"seed {seed}")
    codes = rng.integers(max(0, zero_point - 128), min(255, zero_point + 127) + 1, shape)
    end = 0 if zero_point > 127 else 255
    codes.reshape(-1)[rng.choice(codes.size, far, replace=False)] = end
    return codes.astype(np.uint8)


def case(op: Op, zero_point: int, far: int) -> Case:
    shapes: dict[Op, tuple[tuple[int, ...], ...]] = {
        Op.CONV_2D: ((2, 5, 6, 8), (4, 3, 3, 8), (2, 5, 6, 4)),
        Op.DEPTHWISE_CONV_2D: ((2, 5, 6, 8), (1, 3, 3, 8), (2, 5, 6, 8)),
        Op.FULLY_CONNECTED: ((6, 8), (4, 8), (6, 4)),
    }
    options = {
        Op.CONV_2D: Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1),
        Op.DEPTHWISE_CONV_2D: DepthwiseConv2DOptions(
            padding=Padding.SAME, stride_w=1, stride_h=1, depth_multiplier=1
        ),
        Op.FULLY_CONNECTED: FullyConnectedOptions(),
    }
    image, filter, result = shapes[op]
    weights = T.constant(filter_codes(filter, zero_point, far), scale=0.01, zero_point=zero_point)
    bias = T.constant(np.arange(result[-1], dtype=np.int32), scale=0.0005)
    return Case(
        f"{op.name}-{zero_point}-{far}",
        op,
        [T(image, **CODES), weights, bias],
        [T(result, TensorType.UINT8, scale=0.3, zero_point=120)],
        options[op],
    )


@pytest.mark.parametrize("far", [0, 1, 3])
@pytest.mark.parametrize("zero_point", [0, 90, 128, 200, 255])
@pytest.mark.parametrize("op", [Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.FULLY_CONNECTED])
def test_results_are_the_same(op: Op, zero_point: int, far: int) -> None:
    check_channels_first(case(op, zero_point, far), target=OPENVINO)


def weights(codes: np.ndarray, zero_point: int) -> TensorView:
    quantization = Quantization(np.array([0.5], np.float32), np.array([zero_point], np.int64))
    return TensorView(0, "w", TensorType.UINT8, codes.shape, codes, quantization)


def test_what_does_not_fit_is_in_a_channel_of_its_own() -> None:
    codes = np.full((4, 3, 3, 8), 90, np.uint8)
    codes[1, 2, 0, 5] = 255
    filter, repeated = symmetric(Graph(OPENVINO), weights(codes, 100), may_repeat=True)
    assert (filter.type, filter.shape, repeated) == (TensorType.INT8, (4, 3, 3, 9), [5])
    assert filter.data is not None
    both = filter.data[1, 2, 0, [5, 8]].tolist()
    assert both == [127, 28]
    assert np.count_nonzero(filter.data[..., 8]) == 1


@pytest.mark.parametrize(
    ("target", "far", "may_repeat"),
    [
        (Target("int8", symmetric_weights=True), 1, False),
        (Target("int8", symmetric_weights=True), 16, True),
        (Target("uint8", symmetric_weights=True), 0, True),
        (Target("int8"), 0, True),
    ],
)
def test_weights_that_stay_as_they_are(target: Target, far: int, may_repeat: bool) -> None:
    filter = weights(filter_codes((2, 8), 0, far), 0)
    assert symmetric(Graph(target), filter, may_repeat=may_repeat) == (filter, [])
