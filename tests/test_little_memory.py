"""A process with less memory than a model asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import OneHotOptions, Op, TensorType

ROOT = Path(__file__).parents[1]

LITTLE_MEMORY = """
import resource, sys
import numpy as np
from tflite_ort import AllocationError, Budgets, InsufficientMemory, Interpreter, export_onnx

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
content, large = open(sys.argv[1], "rb").read(), Budgets(result_bytes=6 << 30)

def refused(call):
    try:
        call()
    except InsufficientMemory as error:
        assert isinstance(error, (AllocationError, MemoryError))
        print(str(error)[:40])

interpreter = Interpreter(model_content=content, budgets=large)
refused(interpreter.allocate_tensors)
refused(lambda: export_onnx(content, budgets=large))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in this way on Linux alone")
def test_too_little_memory_is_a_typed_error(tmp_path: Path) -> None:
    """Of tensors, and of what is made while an operator is translated."""
    depth = T.constant(np.int32(1 << 28))
    tensors = {"x": T((5,), TensorType.INT32), "d": depth, "on": T.constant(np.int8(1))}
    tensors |= {"off": T.constant(np.int8(5)), "y": T((5, 1 << 28), TensorType.INT8)}
    node = Node(Op.ONE_HOT, ["x", "d", "on", "off"], ["y"], OneHotOptions(axis=-1))
    file = tmp_path / "one_hot.tflite"
    file.write_bytes(graph_model(tensors, [node], ["y"]))
    command = [sys.executable, "-c", LITTLE_MEMORY, str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=300)
    assert done.stdout.splitlines() == [
        "the model's tensors cannot be allocated:",
        "the model cannot be exported: Unable to ",
    ]


COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
sys.argv[:2] = ["tflite-ort"]
from tflite_ort.command.cli import main
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in this way on Linux alone")
@pytest.mark.parametrize("mebibytes", [40, 100, 150, 210, 223])
def test_a_command_says_in_a_line_that_there_is_too_little_memory(mebibytes: int) -> None:
    """Before anything is imported: Python itself fails in odd ways in the middle of an import."""
    model = ROOT / "bridge" / "command" / "digits" / "int8.tflite"
    command = [sys.executable, "-c", COMMAND, str(mebibytes), "export", str(model), "-"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert said.startswith("error: ") and said.count("\n") == 1, said
