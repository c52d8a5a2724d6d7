"""Operators without a result, or whose result is another each time: there are no answers to hold
them against."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.flex.nodes import declared_options
from tests.one_op import Node, T, graph_model
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema import TensorType

X = T((2,))
IDENTITY = Node("FlexIdentity", ["x"], ["y"], declared_options("Identity", {"T": "float"}))
ASSERT = Node("FlexAssert", ["c", "x"], [], declared_options("Assert", {"T": ["float"]}))
NOTHING = Node("FlexNoOp", [], [], declared_options("NoOp", {}))
TIME = Node("FlexTimestamp", [], ["t"], declared_options("Timestamp", {}))
PLACES: list[Sequence[str] | None] = [None, []]


def printing(stream: str) -> Node:
    """PrintV2 to a stream."""
    attributes = {"output_stream": stream, "end": "!"}
    return Node("FlexPrintV2", ["text"], [], declared_options("PrintV2", attributes))


def interpreter_of(content: bytes, places: Sequence[str] | None) -> Interpreter:
    """An allocated interpreter."""
    interpreter = Interpreter(model_content=content, providers=places)
    interpreter.allocate_tensors()
    return interpreter


ASSERTING = graph_model(
    {"c": T((), TensorType.BOOL), "x": X, "y": X}, [ASSERT, NOTHING, IDENTITY], ["y"]
)


@pytest.mark.parametrize("places", PLACES)
def test_assert(places: Sequence[str] | None) -> None:
    """A false condition is refused, with the data in the message."""
    interpreter = interpreter_of(ASSERTING, places)
    condition, x = (detail["index"] for detail in interpreter.get_input_details())
    interpreter.set_tensor(x, np.float32([1, 2]))
    interpreter.set_tensor(condition, np.array(True))
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    np.testing.assert_array_equal(interpreter.get_tensor(output["index"]), [1, 2])
    interpreter.set_tensor(condition, np.array(False))
    with pytest.raises(BridgeError, match=r"assertion failed: \[1.0, 2.0\]"):
        interpreter.invoke()


def test_assert_is_left_out_of_exports(tmp_path: Path) -> None:
    """ONNX has nothing that fails without a result."""
    export_onnx(ASSERTING, tmp_path / "model.onnx")
    nodes = onnx.load(tmp_path / "model.onnx").graph.node
    assert [node.op_type for node in nodes] == ["Identity"]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_print(
    places: Sequence[str] | None, stream: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run prints."""
    tensors = {"x": X, "y": X, "text": T.constant(np.array(b"hello", object))}
    interpreter = interpreter_of(graph_model(tensors, [printing(stream), IDENTITY], ["y"]), places)
    capsys.readouterr()
    interpreter.invoke()
    interpreter.invoke()
    assert getattr(capsys.readouterr(), stream.removeprefix("std")) == "hello!hello!"


@pytest.mark.parametrize("places", PLACES)
def test_timestamp(places: Sequence[str] | None, tmp_path: Path) -> None:
    """Each run has its time; ONNX has no such operator."""
    content = graph_model({"t": T((), TensorType.FLOAT64)}, [TIME], ["t"])
    interpreter = interpreter_of(content, places)
    (output,) = interpreter.get_output_details()
    found = []
    for _ in range(2):
        interpreter.invoke()
        found.append(float(interpreter.get_tensor(output["index"])))
        time.sleep(0.01)
    assert time.time() - 60 < found[0] < found[1] < time.time() + 60
    with pytest.raises(ExportError, match="FlexTimestamp"):
        export_onnx(content, tmp_path / "model.onnx")
