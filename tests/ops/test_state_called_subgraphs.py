"""Variable tensors of called subgraphs against LiteRT: they start anew whenever they are called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close
from tests.ops.test_state import BELOW, COUNT, FLAG, STATE, add, floats, mul
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    IfOptions,
    Op,
    RNNOptions,
    Unbatchable,
    WhileOptions,
)

Array = npt.NDArray[Any]

ROW = T((1, 2))
KEPT = replace(ROW, is_variable=True)
WEIGHTS = T.constant(np.array([[0.5, -0.25], [0.75, 0.5]], np.float32))
CELL = {"x": ROW, "w": WEIGHTS, "b": T.constant(floats(0, 0.1)), "g": KEPT, "y": ROW}
CELL_STEP = Node(Op.RNN, ["x", "w", "w", "b", "g"], ["y"], RNNOptions(ActivationFunctionType.TANH))
CALLS: dict[str, tuple[bytes, list[list[Array]]]] = {
    "branch": (
        model_of(
            Sub(
                {"c": FLAG, "x": ROW, "y": ROW},
                [Node(Op.IF, ["c", "x"], ["y"], IfOptions(1, 2))],
                ["c", "x"],
                ["y"],
            ),
            Sub(CELL, [CELL_STEP], ["x"], ["y"]),
            Sub({"x": ROW, "y": ROW}, [mul("x", "x", "y")], ["x"], ["y"]),
        ),
        [[np.array(flag), np.ones((1, 2), np.float32)] for flag in (True, True, False, True)],
    ),
    "loop": (
        model_of(
            Sub(
                {"i": COUNT, "n": COUNT, "x": ROW, "oi": COUNT, "on": COUNT, "y": ROW},
                [Node(Op.WHILE, ["i", "n", "x"], ["oi", "on", "y"], WhileOptions(1, 2))],
                ["i", "n", "x"],
                ["y"],
            ),
            replace(BELOW, tensors=STATE | {"g": ROW, "t": FLAG}),
            Sub(
                {"i": COUNT, "n": COUNT, "one": T.constant(np.int32(1)), "j": COUNT} | CELL,
                [add("i", "one", "j"), CELL_STEP],
                ["i", "n", "x"],
                ["j", "n", "y"],
            ),
        ),
        [
            [np.zeros((), np.int32), np.array(n, np.int32), np.ones((1, 2), np.float32)]
            for n in (3, 2, 3)
        ],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_variable_tensor_of_a_called_subgraph_starts_anew(name: str) -> None:
    model, invokes = CALLS[name]
    check_invokes(model, invokes, {"ort"}, kernels="default")
    exported = export_onnx(model, state_defaults=True)
    assert "tflite.state" not in {entry.key for entry in exported.metadata_props}
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    interpreter = litert_interpreter(model)
    interpreter.allocate_tensors()
    for feeds in invokes:
        named = {v.name: x for v, x in zip(session.get_inputs(), feeds, strict=True)}
        (want,) = invoked(interpreter, feeds)
        assert_close(session.run(None, named)[0], want, 0, 1e-6, name)


@pytest.mark.parametrize("size", ["n", 3])
@pytest.mark.parametrize("name", CALLS)
def test_a_batch_of_it_is_refused(name: str, size: str | int) -> None:
    """The variable has a row for one sample."""
    with pytest.raises(Unbatchable, match="it uses a variable or table of the model"):
        export_onnx(CALLS[name][0], input_shapes={"x": (size, 2)})
