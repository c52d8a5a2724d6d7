"""Weights that several operators read are one initializer of the graph, re-laid ones too."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, ours
from tflite_ort import export_onnx
from tflite_ort.schema import (
    BatchMatMulOptions,
    FullyConnectedOptions,
    Op,
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
