"""Weights that several operators read are one initializer of the graph, re-laid ones too."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close, graph_model, ours
from tests.oracle import litert
from tflite_ort import Interpreter, export_onnx
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.schema import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    TensorType,
)

SIZE = 24
RNG = np.random.default_rng(0)


def steps(weights: T, count: int = 5) -> bytes:
    """An unrolled recurrence: each step multiplies by the same weights."""
    tensors = {f"h{i}": T((3, SIZE)) for i in range(count + 1)} | {"w": weights}
    nodes = [
        Node(Op.FULLY_CONNECTED, [f"h{i}", "w", None], [f"h{i + 1}"], FullyConnectedOptions())
        for i in range(count)
    ]
    return graph_model(tensors, nodes, [f"h{count}"])


FLOATS = T.constant((RNG.standard_normal((SIZE, SIZE)) / 5).astype(np.float32))
CODES = T.constant(RNG.integers(-127, 128, (SIZE, SIZE)).astype(np.int8), scale=0.002)


@pytest.mark.parametrize("weights", [FLOATS, CODES], ids=["float32", "int8"])
def test_a_recurrence_has_its_weights_once(weights: T) -> None:
    model = steps(weights)
    exported = export_onnx(model)
    large = [each for each in exported.graph.initializer if np.prod(each.dims) == SIZE * SIZE]
    assert len(large) == 1
    x = RNG.standard_normal((3, SIZE)).astype(np.float32)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    (got,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(got, ours(model, [x])[0][0], rtol=1e-5, atol=1e-6)


def test_other_layouts_are_other_initializers() -> None:
    """A product reads the weights as they are, and once more transposed."""
    tensors = {f"h{i}": T((3, SIZE)) for i in range(3)} | {"w": FLOATS}
    nodes = [
        Node(Op.BATCH_MATMUL, ["h0", "w"], ["h1"], BatchMatMulOptions()),
        Node(Op.BATCH_MATMUL, ["h1", "w"], ["h2"], BatchMatMulOptions(adj_y=True)),
    ]
    model = graph_model(tensors, nodes, ["h2"])
    x = RNG.standard_normal((3, SIZE)).astype(np.float32)
    (got,), _ = ours(model, [x])
    assert FLOATS.data is not None
    np.testing.assert_allclose(got, x @ FLOATS.data @ FLOATS.data.T, rtol=1e-4, atol=1e-5)


LAYERS = {
    "CONV_2D": (Op.CONV_2D, (16, 3, 3, 16), 0, Conv2DOptions(Padding.SAME, 1, 1)),
    "DEPTHWISE_CONV_2D": (
        Op.DEPTHWISE_CONV_2D,
        (1, 11, 11, 16),
        3,
        DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1),
    ),
    "BATCH_MATMUL": (Op.BATCH_MATMUL, (16, 16), 0, BatchMatMulOptions(adj_y=True)),
    "FULLY_CONNECTED": (Op.FULLY_CONNECTED, (16, 16), 0, FullyConnectedOptions()),
}
INT8, INT4, INT16, FLOAT32 = (TensorType[n] for n in ("INT8", "INT4", "INT16", "FLOAT32"))
# Of activations and weights, and the bytes of an exported weight.
KINDS = {
    "float32": (FLOAT32, FLOAT32, 4.0),
    "int8 weights": (FLOAT32, INT8, 1.0),
    "int4 weights": (FLOAT32, INT4, 0.5),
    "int8": (INT8, INT8, 1.0),
    "int16": (INT16, INT8, 1.0),
}
ROWS = [(n, k) for n in LAYERS for k in KINDS if k != "int4 weights" or n == "FULLY_CONNECTED"]


def chain(name: str, kind: str) -> tuple[bytes, int]:
    """Five layers of the same weights, and how many numbers these are."""
    op, shape, axis, options = LAYERS[name]
    activations, weights, _ = KINDS[kind]
    rng, of_codes = np.random.default_rng(1), activations is not FLOAT32
    scales = [0.002] if op is Op.BATCH_MATMUL else np.linspace(0.001, 0.002, 16).tolist()
    reach = 8 if weights is INT4 else 128
    codes = rng.integers(1 - reach, reach, shape).astype(np.int8)
    factor = T.constant(codes, weights, scale=[16 / reach * each for each in scales], axis=axis)
    if weights is FLOAT32:
        factor = T.constant((rng.standard_normal(shape) / 8).astype(np.float32))
    size = (36, 16) if op is Op.FULLY_CONNECTED else (1, 6, 6, 16)
    link = T(size, activations, 0.02 if activations is INT8 else 1e-4) if of_codes else T(size)
    bias = np.zeros(16, np.int64 if activations is INT16 else np.int32 if of_codes else np.float32)
    tensors = {f"h{i}": link for i in range(6)} | {"w": factor, "b": T.constant(bias)}
    operands = ["w"] if op is Op.BATCH_MATMUL else ["w", "b"]
    nodes = [Node(op, [f"h{i}", *operands], [f"h{i + 1}"], options) for i in range(5)]
    return graph_model(tensors, nodes, ["h5"]), int(np.prod(shape))


@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_weights_in_another_layout_are_written_once(name: str, kind: str) -> None:
    """Every layer reads one constant, which ONNX has channels first or transposed."""
    model, count = chain(name, kind)
    exported = export_onnx(model)
    large = [each for each in exported.graph.initializer if np.prod(each.dims) >= count]
    assert [len(each.raw_data) for each in large] == [count * KINDS[kind][2]]
    interpreter = Interpreter(model_content=model)
    (x,) = random_inputs(interpreter.get_input_details(), 3).values()
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    (got,) = session.run(None, {session.get_inputs()[0].name: x})
    (want,) = litert(model, [x])
    for each in (got, ours(model, [x])[0][0]):
        assert_close(each, want, 1, 1e-5 if kind == "float32" else 3e-2, name)
