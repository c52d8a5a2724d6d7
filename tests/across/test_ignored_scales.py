"""A scale and a zero point on tensors that hold numbers, not codes, change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests import samples
from tests.lstm_models import Lstm, invokes
from tests.one_op import T, assert_close, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tests.rnn_models import Rnn, Svdf
from tflite_ort import BridgeError, Interpreter, schema
from tflite_ort.schema import Op, QuantizationParameters, TensorType

FLOAT32, INT64 = TensorType.FLOAT32, TensorType.INT64
NUMBERS = (FLOAT32, TensorType.FLOAT16, INT64, TensorType.INT32, TensorType.BOOL)
SCALED = QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.array([3]))
ONES = schema.Conv2DOptions(stride_h=1, stride_w=1)


def scaled(model: bytes, given: QuantizationParameters = SCALED) -> bytes:
    """`model` with `given` on each tensor of numbers."""
    whole = schema.read_model(model)
    (graph,) = whole.subgraphs
    tensors = tuple(
        replace(tensor, quantization=given) if tensor.type in NUMBERS else tensor
        for tensor in graph.tensors
    )
    return schema.write_model(replace(whole, subgraphs=(replace(graph, tensors=tensors),)))


def weights(*shape: int) -> T:
    return T.constant(np.random.default_rng(1).normal(size=shape).astype(np.float32))


LAYERS = {
    Op.FULLY_CONNECTED: (
        [T((2, 3)), weights(4, 3), weights(4)],
        T((2, 4)),
        schema.FullyConnectedOptions(),
    ),
    Op.CONV_2D: ([T((1, 5, 5, 2)), weights(4, 3, 3, 2), weights(4)], T((1, 5, 5, 4)), ONES),
    Op.DEPTHWISE_CONV_2D: (
        [T((1, 5, 5, 2)), weights(1, 3, 3, 4), weights(4)],
        T((1, 5, 5, 4)),
        schema.DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=2),
    ),
    Op.TRANSPOSE_CONV: (
        [T.constant(np.array([1, 5, 5, 4], np.int32)), weights(4, 3, 3, 2), T((1, 5, 5, 2))],
        T((1, 5, 5, 4)),
        schema.TransposeConvOptions(stride_h=1, stride_w=1),
    ),
    Op.CONV_3D: (
        [T((1, 3, 4, 4, 2)), weights(2, 2, 2, 2, 4), weights(4)],
        T((1, 3, 4, 4, 4)),
        schema.Conv3DOptions(
            stride_d=1,
            stride_h=1,
            stride_w=1,
            dilation_d_factor=1,
            dilation_h_factor=1,
            dilation_w_factor=1,
        ),
    ),
    Op.BATCH_MATMUL: (
        [T((2, 3, 4)), weights(2, 4, 5)],
        T((2, 3, 5)),
        schema.BatchMatMulOptions(),
    ),
    Op.PRELU: ([T((1, 3, 3, 4)), weights(1, 1, 4)], T((1, 3, 3, 4)), None),
}


@pytest.mark.parametrize("per_channel", [False, True], ids=["one", "per_channel"])
@pytest.mark.parametrize("op", LAYERS, ids=lambda op: op.name)
def test_of_floats(op: Op, per_channel: bool) -> None:
    """Weights, activations, biases."""
    inputs, output, options = LAYERS[op]
    axis = {Op.DEPTHWISE_CONV_2D: 3, Op.CONV_3D: 4}.get(op, 0)
    parameters = SCALED
    if per_channel:
        count = inputs[1].shape[axis]
        parameters = QuantizationParameters(
            scale=np.linspace(0.5, 2, count, dtype=np.float32),
            zero_point=np.arange(count),
            quantized_dimension=axis,
        )
    plain = one_op_model(op, inputs, [output], options)
    feeds = [t.random(np.random.default_rng(0)) for t in inputs if not t.is_constant]
    model = scaled(plain, parameters)
    want = litert(plain, feeds)
    results = ours(model, feeds)[0], ours(model, feeds, providers=[])[0], exported(model, feeds)
    for got in results:
        assert_close(got[0], want[0], 0, 1e-5, op.name)


@pytest.mark.parametrize("op", samples.SAMPLES, ids=lambda op: op.name)
def test_of_numbers(op: Op) -> None:
    """Each operator with the types of numbers that it takes."""
    for type in samples.types(op):
        if type not in NUMBERS:
            continue
        model, feeds = samples.sample(op, type)
        for providers in (None, []):
            try:
                want, _ = ours(model, feeds, providers)
            except BridgeError:
                continue  # what the operator does not take
            got, _ = ours(scaled(model), feeds, providers)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other, f"{op.name} of {type.name}")


@pytest.mark.parametrize("layer", [Lstm(), Svdf(), Rnn()], ids=["lstm", "svdf", "rnn"])
def test_of_recurrent_layers(layer: Lstm | Svdf | Rnn) -> None:
    """Float ones, over three invokes."""
    feeds = layer.feeds(3)
    want = invokes(Interpreter(model_content=layer.model()), feeds)
    for providers in (None, []):
        model = scaled(layer.model())
        got = invokes(Interpreter(model_content=model, providers=providers), feeds)
        for one, other in zip(got, want, strict=True):
            assert_close(one[0], other[0], 0, 1e-5, "recurrent")


def test_the_file_is_still_shown() -> None:
    """As LiteRT shows them, though they do not matter."""
    inputs, output, options = LAYERS[Op.FULLY_CONNECTED]
    model = scaled(one_op_model(Op.FULLY_CONNECTED, inputs, [output], options))
    for detail in Interpreter(model_content=model).get_tensor_details():
        assert detail["quantization"] == (0.5, 3)
