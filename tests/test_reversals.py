"""Slices that go backwards are Gathers in files for OpenCV and Core ML."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.models import model_path
from tflite_ort import export_onnx
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.reversals import gather_reversals

LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max
SLICES = [
    (-1, LOW, 1, -1),
    (HIGH, LOW, 0, -1),
    (-1, LOW, -1, -3),
    (4, 1, 1, -1),
    (4, -5, 1, -2),
    (0, 4, 1, -1),
    (1, 4, 1, 1),
    (0, HIGH, 1, 2),
]


@pytest.mark.parametrize("numbers", SLICES)
@pytest.mark.parametrize("size", [5, "n"])
def test_backwards(numbers: tuple[int, ...], size: int | str) -> None:
    """Of an open size the last places are not known."""
    x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=(3, size, 7))
    y = ir.Value("y", dtype=ir.DataType.FLOAT)
    graph = ir.Graph([x], [y], [])
    names = ("start", "end", "axis", "step")
    given = [
        graph.add_initializer(name, np.array([number], np.int64))
        for name, number in zip(names, numbers, strict=True)
    ]
    graph.nodes.append(ir.Node("Slice", [x, *given], [y], name="slice"))
    model = ir.Model(graph, opset_imports={"": 17}, ir_version=8)
    array = np.arange(105, dtype=np.float32).reshape(3, 5, 7)
    want = onnxruntime.InferenceSession(serialized(model)).run(None, {"x": array})
    gather_reversals(graph, inferred(model))
    is_known = numbers[2] != 1 or size == 5
    expected = "Gather" if numbers[3] < 0 and is_known else "Slice"
    assert [node.op_type for node in graph.nodes] == [expected]
    got = onnxruntime.InferenceSession(serialized(model)).run(None, {"x": array})
    np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("name", ["opencv", "coreml"])
def test_files_have_none(name: str) -> None:
    """coremltools gives them one place less, and OpenCV 4 another shape."""
    path = model_path("tf__bilstm_f32.tflite")
    model = export_onnx(path, for_=name, lstm_clip="ignore", stateful=False, check=True)
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    slices = [node for node in model.graph.node if node.op_type == "Slice"]
    steps = [constants[node.input[4]] for node in slices if len(node.input) > 4]
    assert slices
    assert all((each > 0).all() for each in steps)
