"""Tensors that the file calls variables, and that no operator sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert, litert_interpreter
from tflite_ort import Interpreter, export_onnx, schema
from tflite_ort.schema import Op

FEEDS = [np.array([5, 6], np.float32), np.array([1, 2], np.float32)]


def difference(variables: Sequence[str], inputs: Sequence[str] = ("in0", "in1")) -> bytes:
    """in0 - in1, some of which are variables, and some inputs."""
    model = one_op_model(Op.SUB, [T((2,)), T((2,))], [T((2,))], schema.SubOptions())
    whole = schema.read_model(model)
    (graph,) = whole.subgraphs
    tensors = tuple(replace(t, is_variable=t.name in variables) for t in graph.tensors)
    given = tuple(i for i, tensor in enumerate(tensors) if tensor.name in inputs)
    graph = replace(graph, tensors=tensors, inputs=given)
    return schema.write_model(replace(whole, subgraphs=(graph,)))


@pytest.mark.parametrize("variables", [["in0"], ["in1"], ["in0", "in1"]], ids="-".join)
def test_an_input_is_fed(variables: Sequence[str]) -> None:
    """Through the interpreter, the kernels and an exported file, as in LiteRT."""
    model = difference(variables)
    want = litert(model, FEEDS)
    for got in (ours(model, FEEDS)[0], ours(model, FEEDS, [])[0], exported(model, FEEDS)):
        np.testing.assert_array_equal(got[0], want[0])
    proto = export_onnx(model)
    assert [value.name for value in proto.graph.input] == ["in0", "in1"]
    assert [value.name for value in proto.graph.output] == ["out0"]


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_one_that_is_only_read_stays_zero(providers: Sequence[str] | None) -> None:
    """It is no input, and nothing sets it."""
    model = difference(["in1"], ["in0"])
    want = litert(model, FEEDS[:1])
    got, _ = ours(model, FEEDS[:1], providers)
    np.testing.assert_array_equal(got[0], want[0])


def test_a_reset_clears_an_input() -> None:
    """As LiteRT does with all that the file calls variables."""
    model, results = difference(["in1"]), []
    for interpreter in (litert_interpreter(model), Interpreter(model_content=model)):
        interpreter.allocate_tensors()
        for index, array in enumerate(FEEDS):
            interpreter.set_tensor(index, array)
        interpreter.reset_all_variables()
        interpreter.invoke()
        results.append(interpreter.get_tensor(2))
    np.testing.assert_array_equal(results[0], FEEDS[0])
    np.testing.assert_array_equal(results[1], FEEDS[0])
