"""States of SVDF that sessions keep as rows of steps, and variables whose arrays take turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import invokes
from tests.one_op import Node, T
from tests.optimised import optimised_nodes
from tests.oracle import litert_interpreter
from tests.registered import opened
from tests.rnn_models import Svdf
from tests.subgraph_models import HANDLE, Sub, invoked, model_of
from tflite_ort import Interpreter, KernelError, Registration
from tflite_ort.opmap.idioms.fixed_point import rounds_alike
from tflite_ort.plan import session_step
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    CallOnceOptions,
    Op,
    SVDFOptions,
    TensorType,
    VarHandleOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier

Array = npt.NDArray[Any]
RELU = ActivationFunctionType.RELU
CASE = Svdf(weights="integer", activation=RELU, batch=1, features=30, units=7, memory=8)


def state_of(interpreter: Any) -> int:
    """The index of the state."""
    (index,) = (
        detail["index"]
        for detail in interpreter.get_tensor_details()
        if tuple(detail["shape"]) == (1, 7 * 8)
    )
    return int(index)


def test_no_node_moves_the_state() -> None:
    nodes = optimised_nodes(CASE.model())
    assert not {"Slice", "Transpose", "Reshape", "Unsqueeze"} & nodes.keys()
    assert nodes.total() <= 12


def test_the_state_is_read_set_and_reset_as_in_litert() -> None:
    model, rng = CASE.model(), np.random.default_rng(5)
    ours = Interpreter(model_content=model, num_threads=1)
    theirs = litert_interpreter(model)
    ours.allocate_tensors()
    theirs.allocate_tensors()
    index = state_of(ours)
    for turn, given in enumerate(CASE.feeds(24)):
        if turn % 5 == 4:
            state = rng.integers(-32768, 32767, (1, 56), np.int16, endpoint=True)
            for each in (ours, theirs):
                each.set_tensor(index, state)
        if turn == 11:
            ours.reset_all_variables()
            theirs.reset_all_variables()
        np.testing.assert_array_equal(invoked(ours, given), invoked(theirs, given))
        if turn % 3:
            np.testing.assert_array_equal(ours.get_tensor(index), theirs.get_tensor(index))


def test_a_stored_plan_keeps_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, feeds = CASE.model(), CASE.feeds(6)
    expected = invokes(Interpreter(model_content=model, providers=[]), feeds)
    first = Interpreter(model_content=model, cache=tmp_path)
    np.testing.assert_array_equal(invokes(first, feeds), expected)
    monkeypatch.delattr(session_step, "model_session")  # what is stored is not made again
    stored = Interpreter(model_content=model, cache=tmp_path)
    np.testing.assert_array_equal(invokes(stored, feeds), expected)
    assert first.get_tensor(state_of(first)).any()
    np.testing.assert_array_equal(
        stored.get_tensor(state_of(stored)), first.get_tensor(state_of(first))
    )


def test_an_invoke_that_fails_leaves_the_rows_as_they_were() -> None:
    """An operator of numpy after the SVDF fails, so that the invoke does."""
    rng = np.random.default_rng(3)
    feature, time = (rng.integers(-127, 127, shape) for shape in ((7, 30), (7, 8)))
    tensors = {
        "x": T((1, 30), TensorType.INT8, 0.05, -7),
        "feature": T.constant(feature.astype(np.int8), scale=0.006),
        "time": T.constant((time * 200).astype(np.int16), scale=1 / 32767),
        "state": T((1, 56), TensorType.INT16, 2.0**-12, is_variable=True),
        **dict.fromkeys("ry", T((1, 7), TensorType.INT8, 0.03, -128)),
    }
    svdf = Node(Op.SVDF, ["x", "feature", "time", None, "state"], ["r"], SVDFOptions(1, RELU), 3)
    calls = iter([False, True, True, False, False, True])

    def function(x: Array) -> Array:
        if next(calls, False):
            raise OSError("not today")
        return x

    model = model_of(Sub(tensors, [svdf, Node("Own", ["r"], ["y"])], ["x"], ["y"]))
    plain = model_of(Sub(tensors, [svdf], ["x"], ["r"]))
    feeds = CASE.feeds(6)
    expected = invokes(litert_interpreter(plain), feeds)
    ours, failures = opened(model, Registration(function=function)), 0
    ours.allocate_tensors()
    for given, wanted in zip(feeds, expected, strict=True):
        got = None
        while got is None:
            try:
                got = invoked(ours, given)
            except KernelError:
                failures += 1
        np.testing.assert_array_equal(got, wanted)
    assert failures == 3


def test_signatures_that_set_the_same_variables_take_turns() -> None:
    """Each subgraph has a session of its own that sets both variables."""
    variables = {"h": "first", "k": "second"}
    handles = [
        Node(Op.VAR_HANDLE, [], [handle], VarHandleOptions(container="", shared_name=name))
        for handle, name in variables.items()
    ]
    row, ones = T((1, 3)), T.constant(np.ones((1, 3), np.float32))
    names = [f"{what}{handle}" for handle in variables for what in ("old ", "new ")]
    tensors = {**dict.fromkeys(variables, HANDLE), **dict.fromkeys(("x", *names), row)}

    def body(signature: str, *order: str) -> Sub:
        """What a variable and x are together is added to the next one of `order`."""
        nodes = [Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=2)), *handles]
        nodes += [Node(Op.READ_VARIABLE, [handle], [f"old {handle}"]) for handle in variables]
        for handle, other in zip(order, (*order[1:], "x"), strict=True):
            given = "x" if other == "x" else f"old {other}"
            add = Node(Op.ADD, [f"old {handle}", given], [f"new {handle}"], AddOptions())
            nodes += [add, Node(Op.ASSIGN_VARIABLE, [handle, f"new {handle}"], [])]
        return Sub(tensors, nodes, ["x"], ["new h", "new k"], signature)

    start = [*handles, *(Node(Op.ASSIGN_VARIABLE, [handle, "ones"], []) for handle in variables)]
    tables = {**dict.fromkeys(variables, HANDLE), "ones": ones}
    model = model_of(body("one", "h", "k"), body("two", "k", "h"), Sub(tables, start))

    def results(make: Callable[[bytes], Any]) -> list[list[Array]]:
        interpreter = make(model)
        runners = [interpreter.get_signature_runner(name) for name in ("one", "two")]
        x, made = np.full((1, 3), 0.5, np.float32), []
        for runner in "0000110100111101000":
            outputs = runners[int(runner)](x=x)
            made.append([outputs[name] for name in sorted(outputs)])
        return made

    ours = results(lambda content: Interpreter(model_content=content, num_threads=1))
    np.testing.assert_array_equal(ours, results(litert_interpreter))


def test_a_product_that_is_off_by_less_than_the_error_rounds_alike() -> None:
    rng, alike = np.random.default_rng(7), 0
    for _ in range(60):
        multiplier, error = float(2.0 ** rng.uniform(-16, -9)), int(2.0 ** rng.uniform(10, 24))
        q31, shift = (int(each) for each in quantize_multiplier(multiplier))

        def code(product: int, right: int = -shift) -> int:
            """The whole part of a product with a half, as SVDF has it."""
            return (product + ((2**right + 1) << 30)) >> (31 + right)

        edges = [((2 * k + 1) * 2**-shift - 1) << 30 for k in range(255)]
        products = {(edge // q31 + more) * q31 for edge in edges for more in (-1, 0, 1, 2)}
        safe = rounds_alike(multiplier, error, bits=8)
        alike += safe
        same = all(code(p - error) == code(p) == code(p + error) for p in products)
        assert same or not safe
    assert 20 < alike < 60
