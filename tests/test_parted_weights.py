"""Signed weights and their zero points, of which each layer has its own."""

from __future__ import annotations

import numpy as np
import onnxruntime

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.parted_weights import part_signed_weights
from tflite_ort.opmap.onnx_graph.serialization import serialized

UINT8 = ir.DataType.UINT8


def test_layers_that_share_weights_and_zero_point_load_where_sums_are_to_be_exact() -> None:
    """ONNX Runtime fails at load: "Attempt to replace the existing tensor"."""
    rng = np.random.default_rng(0)
    given = ir.Value("x", dtype=UINT8, shape=(1, 2, 4, 4))
    graph = ir.Graph([given], [], [], name="main")
    scale = graph.add_initializer("scale", np.float32(0.05))
    one = graph.add_initializer("one", np.full(3, 0.01, np.float32))
    zero = graph.add_initializer("zero", np.uint8(128))
    weights_zero = graph.add_initializer("weights_zero", np.zeros(3, np.int8))
    weights = graph.add_initializer(
        "weights", rng.integers(-127, 128, (3, 2, 3, 3)).astype(np.int8)
    )
    for name in ("y", "z"):
        made = ir.Value(name, dtype=UINT8, shape=(1, 3, 2, 2))
        inputs = [given, scale, zero, weights, one, weights_zero, scale, zero]
        graph.nodes.append(ir.Node("QLinearConv", inputs, [made], name=f"{name}/conv"))
        graph.outputs.append(made)
    model = ir.Model(graph, opset_imports={"": 21})
    x = rng.integers(0, 256, (1, 2, 4, 4)).astype(np.uint8)
    before = onnxruntime.InferenceSession(serialized(model)).run(None, {"x": x})
    part_signed_weights(graph)
    first, other = (node.inputs for node in graph.nodes)
    assert first[3] is not other[3]
    assert first[5] is not other[5]
    assert first[2] is other[2]
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    after = onnxruntime.InferenceSession(serialized(model), options).run(None, {"x": x})
    np.testing.assert_array_equal(before[0], before[1])
    np.testing.assert_array_equal(after[0], after[1])
