"""An invoke that fails in the middle leaves variables, tables and random numbers as before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T
from tests.registered import opened
from tests.subgraph_models import HANDLE, Sub, invoked, model_of
from tflite_ort import Interpreter, KernelError, Registration
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    CallOnceOptions,
    HashtableOptions,
    Op,
    RandomOptions,
    RNNOptions,
    TensorType,
    VarHandleOptions,
    WhileOptions,
)

Array = npt.NDArray[Any]

X, COUNT, FLAG = T((2,)), T((), TensorType.INT32), T((), TensorType.BOOL)
INT64, WORDS = T((2,), TensorType.INT64), T((2,), TensorType.STRING)
FEEDS = [[np.array(values, np.float32)] for values in ((1, 2), (3, 5), (-1, 0), (2, 2), (7, 1))]


def own(source: str, result: str) -> Node:
    return Node("Own", [source], [result])


def add(a: str, b: str, result: str) -> Node:
    return Node(Op.ADD, [a, b], [result], AddOptions())


def handle() -> Node:
    return Node(Op.VAR_HANDLE, [], ["h"], VarHandleOptions(container="", shared_name="v"))


def read(result: str) -> Node:
    return Node(Op.READ_VARIABLE, ["h"], [result])


def assign(value: str) -> Node:
    return Node(Op.ASSIGN_VARIABLE, ["h", value], [])


def once(subgraph: int) -> Node:
    return Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=subgraph))


FIRST = Sub({"h": HANDLE, "k": T.constant(np.float32([1, 2]))}, [handle(), assign("k")])
VALUES = {"h": HANDLE, **dict.fromkeys("xrsqtuy", X)}
# The variable becomes r + x.
STEP = [read("r"), add("r", "x", "s"), assign("s")]


def resource(*nodes: Node) -> bytes:
    return model_of(Sub(VALUES, [once(1), handle(), *nodes], ["x"], ["y"]), FIRST)


def recurrent() -> bytes:
    """A RNN of float32 whose state is a variable tensor, then the custom operator."""
    weights = np.array([[0.5, 0.25], [-0.5, 1]], np.float32)
    tensors = {
        "x": T((1, 2)),
        "w": T.constant(weights),
        "u": T.constant(weights.T.copy()),
        "b": T.constant(np.float32([0.1, 0.2])),
        "state": T((1, 2), is_variable=True),
        "s": T((1, 2)),
        "y": T((1, 2)),
    }
    options = RNNOptions(fused_activation_function=ActivationFunctionType.TANH)
    rnn = Node(Op.RNN, ["x", "w", "u", "b", "state"], ["s"], options)
    return model_of(Sub(tensors, [rnn, own("s", "y")], ["x"], ["y"]))


def loop() -> bytes:
    """Two iterations add x to the variable, each before the custom operator."""
    state = {"i": COUNT, "g": HANDLE, "a": X}
    two, one = T.constant(np.int32(2)), T.constant(np.int32(1))
    below = Sub(
        {**state, "n": two, "t": FLAG}, [Node(Op.LESS, ["i", "n"], ["t"])], list(state), ["t"]
    )
    body = Sub(
        {**state, "one": one, "j": COUNT, "r": X, "s": X, "o": X, "z": X},
        [
            Node(Op.ADD, ["i", "one"], ["j"], AddOptions()),
            Node(Op.READ_VARIABLE, ["g"], ["r"]),
            add("r", "a", "s"),
            Node(Op.ASSIGN_VARIABLE, ["g", "s"], []),
            own("s", "o"),
        ],
        list(state),
        ["j", "g", "o"],
    )
    tensors = VALUES | {"zero": T.constant(np.int32(0)), "oi": COUNT, "oh": HANDLE}
    run = Node(Op.WHILE, ["zero", "h", "x"], ["oi", "oh", "y"], WhileOptions(2, 3))
    return model_of(Sub(tensors, [once(1), handle(), run], ["x"], ["y"]), FIRST, below, body)


def random_numbers() -> bytes:
    tensors = {"n": T.constant(np.int32([2])), **dict.fromkeys("xrsy", X)}
    draw = Node(Op.RANDOM_UNIFORM, ["n"], ["r"], RandomOptions(seed=3, seed2=4))
    return model_of(Sub(tensors, [draw, add("r", "x", "s"), own("s", "y")], ["x"], ["y"]))


MODELS = {
    "variable tensor": recurrent(),
    "resource": resource(*STEP, own("s", "y")),
    "set twice": resource(*STEP, assign("x"), read("q"), assign("s"), own("s", "y")),
    "set by two sessions": resource(
        *STEP, own("s", "q"), read("t"), add("t", "q", "u"), assign("u"), own("u", "y")
    ),
    "set before and after": resource(own("x", "q"), *STEP, own("s", "t"), assign("t"), read("y")),
    "read after": resource(*STEP, own("s", "q"), read("t"), add("t", "q", "y")),
    "loop": loop(),
    "random numbers": random_numbers(),
}


def twins(
    model: bytes, failing: Sequence[bool], **arguments: Any
) -> tuple[Interpreter, Interpreter]:
    """Two interpreters; the custom operator of the first raises as the list says, by call."""
    calls = iter(failing)

    def function(x: Array) -> Array:
        if next(calls, False):
            raise OSError("not today")
        return x * 2

    pair = (
        opened(model, Registration(function=function), **arguments),
        opened(model, Registration(function=lambda x: x * 2), **arguments),
    )
    for interpreter in pair:
        interpreter.allocate_tensors()
    return pair


@pytest.mark.parametrize("providers", [None, []])
@pytest.mark.parametrize("failing", [[1], [0, 0, 1], [0, 1, 1], [0, 0, 0, 1, 0, 1]])
@pytest.mark.parametrize("name", MODELS)
def test_state_is_as_before_the_invoke(name: str, failing: list[bool], providers: Any) -> None:
    ours, clean = twins(MODELS[name], failing, providers=providers)
    shape = ours.get_input_details()[0]["shape"]
    failures = 0
    for feeds in FEEDS:
        given = [feeds[0].reshape(shape)]
        expected = invoked(clean, given)
        for _ in range(3):
            try:
                result = invoked(ours, given)
                break
            except KernelError:
                failures += 1
        np.testing.assert_array_equal(result, expected)
    assert failures == sum(failing)


@pytest.mark.parametrize("providers", [None, []])
def test_a_table_is_as_before_the_invoke(providers: Any) -> None:
    """What a failed invoke has imported is not there: the next one imports its own."""
    tensors = {
        "h": T((1,), TensorType.RESOURCE),
        "k": INT64,
        "v": WORDS,
        "d": T((1,), TensorType.STRING),
        "x": X,
        "s": X,
        "y": WORDS,
        "n": T((1,), TensorType.INT64),
    }
    options = HashtableOptions(
        table_id=5, key_dtype=TensorType.INT64, value_dtype=TensorType.STRING
    )
    nodes = [
        Node(Op.HASHTABLE, [], ["h"], options),
        Node(Op.HASHTABLE_IMPORT, ["h", "k", "v"], []),
        own("x", "s"),
        Node(Op.HASHTABLE_FIND, ["h", "k", "d"], ["y"]),
        Node(Op.HASHTABLE_SIZE, ["h"], ["n"]),
    ]
    model = model_of(Sub(tensors, nodes, ["k", "v", "d", "x"], ["y", "n", "s"]))
    ours, _ = twins(model, [True, False, True, False], providers=providers)

    def fed(*keys: int) -> list[Array]:
        texts = [np.array([b"word%d" % key for key in keys], object), np.array([b"none"], object)]
        return [np.array(keys, np.int64), *texts, np.float32([1, 2])]

    with pytest.raises(KernelError, match="not today"):
        invoked(ours, fed(1, 2))
    assert invoked(ours, fed(3, 4))[0].tolist() == [b"word3", b"word4"]
    with pytest.raises(KernelError, match="not today"):
        invoked(ours, fed(5, 6))
    assert invoked(ours, fed(3, 6))[0].tolist() == [b"word3", b"none"]


@pytest.mark.parametrize("providers", [None, []])
def test_values_set_between_invokes_stay(providers: Any) -> None:
    ours, clean = twins(MODELS["variable tensor"], [False, True], providers=providers)
    given, state = [FEEDS[0][0].reshape(1, 2)], np.float32([[0.5, -0.5]])
    for interpreter in (ours, clean):
        invoked(interpreter, given)
        interpreter.set_tensor(4, state)
    with pytest.raises(KernelError, match="not today"):
        invoked(ours, given)
    np.testing.assert_array_equal(ours.get_tensor(4), state)
    np.testing.assert_array_equal(invoked(ours, given), invoked(clean, given))


def test_an_interrupt_is_taken_back_too() -> None:
    def function(x: Array) -> Array:
        if interrupted:
            raise KeyboardInterrupt
        return x

    interpreter = opened(MODELS["resource"], Registration(function=function))
    interpreter.allocate_tensors()
    interrupted = False
    np.testing.assert_array_equal(invoked(interpreter, FEEDS[0])[0], [2, 4])
    interrupted = True
    with pytest.raises(KeyboardInterrupt):
        invoked(interpreter, FEEDS[0])
    interrupted = False
    np.testing.assert_array_equal(invoked(interpreter, FEEDS[0])[0], [3, 6])
