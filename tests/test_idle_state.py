"""Variables that no output depends on are no state of an exported file."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tflite_ort import export_onnx
from tflite_ort.schema import ModelBuilder, Op, TensorType
from tflite_ort.schema.file.options import VarHandleOptions


def counting(seen: bool) -> bytes:
    """y = x + x, or x plus a number that grows by 1 with each run."""
    model = ModelBuilder()
    graph = model.subgraph("main")
    graph.tensor("x", (1,)).tensor("y", (1,)).tensor("before", (1,)).tensor("after", (1,))
    graph.tensor("handle", (), TensorType.RESOURCE)
    graph.constant("one", np.float32([1]))
    graph.operator(Op.VAR_HANDLE, [], ["handle"], VarHandleOptions(shared_name="count"))
    graph.operator(Op.READ_VARIABLE, ["handle"], ["before"])
    graph.operator(Op.ADD, ["before", "one"], ["after"])
    graph.operator(Op.ASSIGN_VARIABLE, ["handle", "after"], [])
    graph.operator(Op.ADD, ["x", "before" if seen else "x"], ["y"])
    graph.inputs("x").outputs("y")
    return model.write()


@pytest.mark.parametrize("seen", [False, True])
def test_a_variable_that_is_read_for_itself_alone(seen: bool) -> None:
    session = onnxruntime.InferenceSession(export_onnx(counting(seen)).SerializeToString())
    assert len(session.get_inputs()) == len(session.get_outputs()) == 1 + seen
    if not seen:
        (y,) = session.run(None, {"x": np.float32([3])})
        np.testing.assert_array_equal(y, [6])


def test_a_variable_that_is_only_set() -> None:
    """It is an output still: who runs the file may want it."""
    model = ModelBuilder()
    graph = model.subgraph("main")
    graph.tensor("x", (1,)).tensor("y", (1,)).tensor("handle", (), TensorType.RESOURCE)
    graph.operator(Op.VAR_HANDLE, [], ["handle"], VarHandleOptions(shared_name="last"))
    graph.operator(Op.ASSIGN_VARIABLE, ["handle", "x"], [])
    graph.operator(Op.ADD, ["x", "x"], ["y"])
    graph.inputs("x").outputs("y")
    session = onnxruntime.InferenceSession(export_onnx(model.write()).SerializeToString())
    assert len(session.get_outputs()) == 2
