"""Codes that become floats, are reshaped, and are read by a body: ONNX Runtime's optimisers end the
process over such a graph, so everything runs in one of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.one_op import Node, T
from tests.ops.test_control_flow import FLAG, SQUARE, X
from tests.oracle import litert
from tests.subgraph_models import Sub, model_of
from tflite_ort import export_onnx
from tflite_ort.schema import IfOptions, Op, ReshapeOptions, TensorType

CODES = np.array([[[-20, 7, 90]]], np.int8)
TWICE = Sub({"x": X, "y": X}, [Node(Op.FLOOR, ["x"], ["y"])], ["x"], ["y"])
INTERPRETED = """
from tflite_ort import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
for detail, array in zip(interpreter.get_input_details(), (flag, codes)):
    interpreter.set_tensor(detail["index"], array)
interpreter.invoke()
result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""
EXPORTED = """
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
names = [each.name for each in session.get_inputs()]
result = session.run(None, dict(zip(names, (flag, codes))))[0]
"""


def model() -> bytes:
    """z = x * x if c, else floor(x); x are the values of the codes, in another shape."""
    codes, real = T(CODES.shape, TensorType.INT8, scale=0.3, zero_point=4), T(CODES.shape)
    tensors = {"c": FLAG, "q": codes, "d": real, "shape": T.constant(np.array([3], np.int32))}
    nodes = [
        Node(Op.DEQUANTIZE, ["q"], ["d"]),
        Node(Op.RESHAPE, ["d", "shape"], ["r"], ReshapeOptions(new_shape=[3])),
        Node(Op.IF, ["c", "r"], ["z"], IfOptions(then_subgraph_index=1, else_subgraph_index=2)),
    ]
    return model_of(Sub(tensors | {"r": X, "z": X}, nodes, ["c", "q"], ["z"]), SQUARE, TWICE)


def run_apart(code: str, file: Path, flag: bool) -> list[float]:
    setup = f"import sys\nimport numpy as np\nflag = np.array({flag})\n"
    setup += f"codes = np.array({CODES.tolist()}, np.int8)\n"
    command = [sys.executable, "-c", f"{setup}{code}\nprint(*result)", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return [float(each) for each in told.stdout.split()]


@pytest.mark.parametrize("flag", [True, False])
def test_a_body_reads_codes_that_were_reshaped(flag: bool, tmp_path: Path) -> None:
    content = model()
    (tmp_path / "a.tflite").write_bytes(content)
    exported = export_onnx(content, tmp_path / "a.onnx")
    (want,) = litert(content, [np.array(flag), CODES])
    for code, name in ((INTERPRETED, "a.tflite"), (EXPORTED, "a.onnx")):
        assert np.allclose(run_apart(code, tmp_path / name, flag), want, rtol=1e-6)
    assert [node.op_type for node in exported.graph.node].count("Max") == 1


def test_what_no_body_reads_is_not_held() -> None:
    real, shape = T(CODES.shape), T.constant(np.array([3], np.int32))
    codes = T(CODES.shape, TensorType.INT8, scale=0.3, zero_point=4)
    nodes = [
        Node(Op.DEQUANTIZE, ["q"], ["d"]),
        Node(Op.RESHAPE, ["d", "shape"], ["r"], ReshapeOptions(new_shape=[3])),
    ]
    tensors = {"q": codes, "d": real, "shape": shape, "r": X}
    written = export_onnx(model_of(Sub(tensors, nodes, ["q"], ["r"])))
    assert "Max" not in {node.op_type for node in written.graph.node}
