"""16-bit activations with biases beyond 32 bits, which TFLite's kernels add in 64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Array, T, assert_close, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import schema
from tflite_ort.schema import Op, TensorType

INT16 = TensorType.INT16
BIASES = {
    "positive": [2**31 - 1, 3 * 10**9, 2**32 + 7, 2**33],
    "negative": [-(2**31) - 1, -3 * 10**9, -(2**32) - 7, -(2**33)],
    "both": [2**31, -(2**31), 5, 2**35],
    "short": [2**31 - 1, -(2**31), 1000, 0],
}
STRIDES = {"stride_h": 1, "stride_w": 1}
# Input and filter shapes, their order and the options.
LAYERS: dict[Op, tuple[tuple[int, ...], tuple[int, ...], int, Any]] = {
    Op.FULLY_CONNECTED: ((2, 3), (4, 3), 8, schema.FullyConnectedOptions()),
    Op.CONV_2D: ((1, 3, 3, 2), (4, 1, 1, 2), 4, schema.Conv2DOptions(**STRIDES)),
    Op.DEPTHWISE_CONV_2D: (
        (1, 3, 3, 4),
        (1, 1, 1, 4),
        5,
        schema.DepthwiseConv2DOptions(depth_multiplier=1, **STRIDES),
    ),
    Op.TRANSPOSE_CONV: ((1, 3, 3, 2), (4, 1, 1, 2), 3, schema.TransposeConvOptions(**STRIDES)),
}


def layer(op: Op, bias: list[int], scale: float) -> tuple[bytes, list[Array]]:
    """A layer of random weights whose result has this scale, and what to feed it."""
    shape, filter, version, options = LAYERS[op]
    rng = np.random.default_rng(0)
    made = (*shape[:-1], 4)
    weights = T.constant(rng.integers(-127, 128, filter).astype(np.int8), scale=0.01)
    inputs = [
        T(shape, INT16, 0.5),
        weights,
        T.constant(np.array(bias, np.int64), scale=0.5 * 0.01),
    ]
    if op is Op.TRANSPOSE_CONV:
        size = T.constant(np.array(made, np.int32))
        inputs = [size, weights, inputs[0], inputs[2]]
    model = one_op_model(op, inputs, [T(made, INT16, scale)], options, version)
    return model, [rng.integers(-(2**15), 2**15, shape).astype(np.int16)]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("op", LAYERS, ids=lambda op: op.name)
def test_wide_bias(op: Op, bias: str) -> None:
    """Through ONNX Runtime, the kernel and an exported file."""
    scale = max(map(abs, BIASES[bias])) * 0.5 * 0.01 / 30000
    model, feeds = layer(op, BIASES[bias], scale)
    want = litert(model, feeds)[0]
    assert_close(ours(model, feeds, [])[0][0], want, 0, 0, "numpy")
    by_ort, runners = ours(model, feeds)
    assert runners == {"ort"}
    assert_close(by_ort[0], want, 1, 0, "ORT")
    assert_close(exported(model, feeds)[0], want, 1, 0, "exported")


@pytest.mark.parametrize("absurd", [2**37, -(2**40) - 12345, 2**47, 2**62 + 99, -(2**63) + 6773])
@pytest.mark.parametrize("op", LAYERS, ids=lambda op: op.name)
def test_one_absurd_bias_leaves_the_others_alone(op: Op, absurd: int) -> None:
    """The sums of the 64-bit kernels wrap at 32 bits times the multiplier, and so do ours.

    The results of FULLY_CONNECTED pass through double, where LiteRT leaves those beyond 32 bits to
    the processor; those of TRANSPOSE_CONV are computed in floats.
    """
    model, feeds = layer(op, [absurd, 5, -2000, 100_000], 0.9)
    want, got = litert(model, feeds)[0], ours(model, feeds)[0][0]
    exact = op in (Op.CONV_2D, Op.DEPTHWISE_CONV_2D)
    others = slice(0 if exact else 1, None)
    quanta = 1 if op is Op.TRANSPOSE_CONV else 0
    assert_close(got[..., others], want[..., others], quanta, 0, "ORT")
    assert_close(exported(model, feeds)[0][..., 1:], want[..., 1:], 1, 0, "exported")
