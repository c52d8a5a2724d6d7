"""8-bit codes by 4-bit weights: LiteRT rounds the sums twice, since XNNPACK takes no such layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Op,
    Padding,
    TensorType,
)

Array = npt.NDArray[Any]
NONE, RELU = ActivationFunctionType.NONE, ActivationFunctionType.RELU
SEED, SIDE = 5, 20


def layer(
    rng: np.random.Generator,
    channels: int,
    outputs: int = 0,
    *,
    lowest: int = -7,
    activation: ActivationFunctionType = NONE,
    stride: int = 1,
    bias: int = 2000,
) -> bytes:
    """A CONV_2D, or without `outputs` a DEPTHWISE_CONV_2D, with windows of three by three."""
    depthwise, made = not outputs, outputs or channels
    image = T((1, SIDE, SIDE, channels), TensorType.INT8, scale=0.05, zero_point=3)
    scales = rng.uniform(0.001, 0.02, made).astype(np.float32)
    shape = (1, 3, 3, made) if depthwise else (made, 3, 3, channels)
    weights = T.constant(
        rng.integers(lowest, 8, shape).astype(np.int8),
        TensorType.INT4,
        scale=scales.tolist(),
        zero_point=[0] * made,
        axis=3 if depthwise else 0,
    )
    added = T.constant(
        rng.integers(-bias, bias + 1, made).astype(np.int32),
        scale=(scales * 0.05).tolist(),
        zero_point=[0] * made,
    )
    # Of what the sums are, some per cent exceed the codes.
    unit = float(0.05 * scales.mean() * 5 * 74 * (9 if depthwise else 9 * channels) ** 0.5 / 60)
    size = -(-SIDE // stride)
    zero_point = -128 if activation is RELU else 4
    result = T((1, size, size, made), TensorType.INT8, scale=unit, zero_point=zero_point)
    settings: dict[str, Any] = {
        "padding": Padding.SAME,
        "stride_h": stride,
        "stride_w": stride,
        "fused_activation_function": activation,
    }
    op, options = (
        (Op.DEPTHWISE_CONV_2D, DepthwiseConv2DOptions(depth_multiplier=1, **settings))
        if depthwise
        else (Op.CONV_2D, Conv2DOptions(**settings))
    )
    return one_op_model(op, [image, weights, added], [result], options, 7)


def others(model: bytes, channels: int, path: Any) -> list[float]:
    """The share of the codes that are not LiteRT's, of the interpreter and of an export; these are
    one quantum off."""
    codes = np.random.default_rng(SEED).integers(-128, 128, (1, SIDE, SIDE, channels))
    feeds = [codes.astype(np.int8)]
    (wanted,) = litert(model, feeds)
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = [ours(model, feeds)[0][0], session.run(None, {"in0": feeds[0]})[0]]
    for got in found:
        assert np.abs(got.astype(int) - wanted).max() <= 1
    return [float((got != wanted).mean()) for got in found]


@pytest.mark.parametrize(
    ("channels", "more"),
    [
        (16, {"outputs": 32}),
        (5, {"outputs": 7, "lowest": -8}),
        (3, {"outputs": 16, "stride": 2, "activation": RELU}),
        (16, {}),
        (24, {"lowest": -8, "stride": 2}),
        (11, {"activation": RELU}),
    ],
)
def test_nearly_all_codes_are_litert_s(channels: int, more: dict[str, Any], tmp_path: Any) -> None:
    """Rounded once, 1 % of them are others, and 5 % of those of depthwise layers."""
    print(f"seed {SEED}")
    model = layer(np.random.default_rng(SEED), channels, **more)
    assert max(others(model, channels, tmp_path / "layer.onnx")) < 0.0025


def test_channels_that_are_left_of_eight_may_be_rounded_the_other_way(tmp_path: Any) -> None:
    """LiteRT's kernel of depthwise layers rounds 8 channels at a time upwards, and others away from
    zero."""
    print(f"seed {SEED}")
    model = layer(np.random.default_rng(SEED), 11)
    assert 0.0025 < max(others(model, 11, tmp_path / "layer.onnx")) < 0.05


def test_sums_that_32_bits_do_not_hold_in_sixteenths_are_rounded_once(tmp_path: Any) -> None:
    print(f"seed {SEED}")
    model = layer(np.random.default_rng(SEED), 16, bias=1 << 30)
    assert max(others(model, 16, tmp_path / "layer.onnx")) < 0.05
