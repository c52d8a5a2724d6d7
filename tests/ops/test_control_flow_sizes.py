"""Changed sizes that do not fit a subgraph that IF or WHILE calls."""

from __future__ import annotations

from typing import Any

import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.ops.test_control_flow import HALF, X, binary, body, choice, function, loop
from tests.subgraph_models import Sub
from tflite_ort import AllocationError, Interpreter
from tflite_ort.schema import Op


def with_fixed(name: str) -> bytes:
    """A model whose second subgraph adds a constant of three numbers."""
    if name == "WHILE":
        return loop(body([binary(Op.ADD, "x", "half", "y")], y=X, half=HALF))
    tensors, half = {"a": X, "b": X, "half": HALF, "r": X}, binary(Op.ADD, "a", "half", "r")
    return choice(function(Op.ADD), Sub(tensors, [half], ["a", "b"], ["r"]))


def resized(interpreter: Any) -> Any:
    """`interpreter` with vectors of five numbers."""
    for detail in interpreter.get_input_details():
        if len(detail["shape"]):
            interpreter.resize_tensor_input(detail["index"], [5])
    return interpreter


@pytest.mark.parametrize("name", ["IF", "WHILE"])
def test_litert_refuses_them_whether_the_subgraph_runs_or_not(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name}.* failed to prepare"):
        resized(LiteRT(model_content=with_fixed(name))).allocate_tensors()
    message = rf"ADD_\d: .*, in subgraph 2, which {name}_0 calls \(inputs were resized"
    with pytest.raises(AllocationError, match=message):
        resized(Interpreter(model_content=with_fixed(name))).allocate_tensors()
