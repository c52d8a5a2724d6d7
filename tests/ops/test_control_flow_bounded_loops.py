"""Loops whose number of iterations is an input or depends on data, against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T
from tests.ops.loop_models import (
    COUNT,
    FLAG,
    VECTOR,
    WIDTH,
    binary,
    every_node,
    kinds,
    number,
)
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import CastOptions, Op, TensorType, WhileOptions


def bounded(nodes: Sequence[Node], tests: Sequence[Node], n: T = COUNT, **tensors: T) -> bytes:
    """i, k, x = i + 1, k + 2, what `nodes` make of x while the last of `tests`: n and x are given,
    i starts at 0 and k at 5."""
    state = {"i": COUNT, "k": COUNT, "n": n, "x": VECTOR}
    given_ = state | {"i": number(0), "k": number(5)}
    made = {f"o{name}": t for name, t in state.items()}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    main = Sub(given_ | made, [node], ["n", "x"], ["oi", "ok", "ox"])
    flags = {test.outputs[0]: T(n.shape, TensorType.BOOL) for test in tests}
    condition = Sub(state | flags | {"four": number(4)}, tests, list(state), [tests[-1].outputs[0]])
    counts = [binary(Op.ADD, "i", "one", "j"), binary(Op.ADD, "k", "two", "l")]
    own = {"one": number(1), "two": number(2), "j": COUNT, "l": COUNT, "y": VECTOR}
    body = Sub(state | own | tensors, [*counts, *nodes], list(state), ["j", "l", "n", "y"])
    return model_of(main, condition, body)


BELOW, ABOVE = Node(Op.LESS, ["i", "n"], ["t"]), Node(Op.GREATER, ["n", "i"], ["t"])
BOTH = [BELOW, Node(Op.LESS, ["i", "four"], ["u"]), Node(Op.LOGICAL_AND, ["t", "u"], ["v"])]
DOUBLED = [binary(Op.ADD, "x", "x", "y")]
OF_COUNTER = [Node(Op.CAST, ["k"], ["real"], CastOptions()), binary(Op.ADD, "x", "real", "y")]
# Each test asks the one before it twice; the first one is asked 2 ** 60 times.
TWICE = [BELOW, *(Node(Op.LOGICAL_AND, [f"t{n or ''}"] * 2, [f"t{n + 1}"]) for n in range(60))]
ONE_SIZE = T((1,), TensorType.INT32)


@pytest.mark.parametrize(
    ("model", "states"),
    [
        (bounded(DOUBLED, [BELOW]), 1),
        (bounded(DOUBLED, [ABOVE], ONE_SIZE), 1),
        (bounded(DOUBLED, BOTH), 1),
        (bounded(DOUBLED, TWICE), 1),
        (bounded(OF_COUNTER, [BELOW], real=T(())), 2),
        (bounded(DOUBLED, [Node(Op.LESS_EQUAL, ["i", "n"], ["t"])]), 3),
        (bounded(DOUBLED, [Node(Op.LESS, ["k", "n"], ["t"])]), 3),
    ],
)
def test_a_bound_that_is_an_input_is_read_once(model: bytes, states: int) -> None:
    """Then only what the body reads is handed from iteration to iteration."""
    shape = Interpreter(model_content=model).get_input_details()[0]["shape"]
    x = np.array([1, 2, 3], np.float32)
    invokes = [[np.full(shape, n, np.int32), x] for n in (3, 0, 7, -2, 1)]
    check_invokes(model, invokes, {"ort"})
    exported = export_onnx(model)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for n, x in invokes:
        wanted = invoked(interpreter, [n, x])
        for got, want in zip(session.run(None, {"n": n, "x": x}), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    (node,) = [node for node in every_node(exported.graph) if node.op_type == "Loop"]
    assert len(node.output) == states


def test_a_condition_on_data_is_a_loop() -> None:
    state = {"i": COUNT, "x": VECTOR}
    node = Node(Op.WHILE, ["i", "x"], ["oi", "ox"], WhileOptions(1, 2))
    main = Sub(state | {"oi": COUNT, "ox": VECTOR}, [node], ["i", "x"], ["oi", "ox"])
    condition = Sub(
        state | {"n": number(4), "t": FLAG}, [Node(Op.LESS, ["i", "n"], ["t"])], ["i", "x"], ["t"]
    )
    nodes = [binary(Op.ADD, "i", "one", "j"), binary(Op.ADD, "x", "x", "y")]
    tensors = state | {"one": number(1), "j": COUNT, "y": VECTOR}
    model = model_of(main, condition, Sub(tensors, nodes, ["i", "x"], ["j", "y"]))
    assert "Loop" in kinds(model)
    check_invokes(model, [[np.array(k, np.int32), np.ones(WIDTH, np.float32)] for k in (0, 3, 9)])
