"""Calls of one interpreter in several threads: overlaps are refused, turns are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.registered import ONE, X, opened
from tflite_ort import Interpreter, Registration, StateError
from tflite_ort.command.demo import digits_model
from tflite_ort.compiled_model import CompiledModel

IN_USE = "The interpreter is in use: another call has not ended"
TIMEOUT = 30


class Gate:
    """A kernel that doubles, and waits in the middle where it is told to."""

    def __init__(self) -> None:
        self.entered, self.leave, self.waits = threading.Event(), threading.Event(), False

    def __call__(self, op: Any, inputs: Any, state: Any) -> Any:
        if self.waits:
            self.entered.set()
            assert self.leave.wait(TIMEOUT)
        return (inputs[0] * 2,)


def gated() -> tuple[Interpreter, Gate]:
    gate = Gate()
    interpreter = opened(ONE, Registration(kernel=gate))
    interpreter.allocate_tensors()
    interpreter.set_tensor(source(interpreter), X)
    return interpreter, gate


def source(interpreter: Interpreter) -> int:
    return int(interpreter.get_input_details()[0]["index"])


def target(interpreter: Interpreter) -> int:
    return int(interpreter.get_output_details()[0]["index"])


@contextmanager
def running(gate: Gate, call: Callable[[], Any]) -> Iterator[list[Any]]:
    """While `call` is in the middle of the kernel in another thread; then what it returned."""
    gate.waits, results = True, list[Any]()
    gate.entered.clear()
    gate.leave.clear()
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    try:
        assert gate.entered.wait(TIMEOUT)
        yield results
    finally:
        gate.leave.set()
        thread.join(TIMEOUT)
        gate.waits = False


CALLS: dict[str, Callable[[Interpreter], object]] = {
    "invoke": lambda x: x.invoke(),
    "set_tensor": lambda x: x.set_tensor(source(x), X + 1),
    "get_tensor": lambda x: x.get_tensor(target(x)),
    "tensor": lambda x: x.tensor(target(x))(),
    "resize": lambda x: x.resize_tensor_input(source(x), [7]),
    "reset": lambda x: x.reset_all_variables(),
    "profile": lambda x: x.profile(1),
    "close": lambda x: x.close(),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_call_overlaps_an_invoke(name: str) -> None:
    interpreter, gate = gated()
    with running(gate, interpreter.invoke) as ended:
        for _ in range(2):
            with pytest.raises(StateError, match=IN_USE) as caught:
                CALLS[name](interpreter)
            assert isinstance(caught.value, RuntimeError)
        interpreter.allocate_tensors()  # there is nothing to do
        assert interpreter.get_input_details()
    assert ended == [None]
    np.testing.assert_array_equal(interpreter.get_tensor(target(interpreter)), X * 2)
    CALLS[name](interpreter)


def test_a_runner_is_one_call_from_its_inputs_to_its_results() -> None:
    interpreter = Interpreter(model_content=digits_model("float32").read_bytes())
    interpreter.allocate_tensors()
    calls = interpreter._shared.state.calls
    runner = interpreter.get_signature_runner()
    (name,) = runner.get_input_details()
    image = np.zeros(runner.get_input_details()[name]["shape"], np.float32)
    for _ in range(2):  # the second one repeats the first
        runner(**{name: image})
        calls.copying.append(None)
        with pytest.raises(StateError, match=IN_USE):
            runner(**{name: image})
        calls.copying.pop()
        calls.running.append(None)
        with pytest.raises(StateError, match=IN_USE):
            runner(**{name: image})
        calls.running.pop()
    assert not (calls.running or calls.copying)
    runner(**{name: image})


class Slow:
    """An array that takes its time to be read."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.gate(None, [X], None)
        return X


def test_copies_may_overlap_each_other_and_no_invoke() -> None:
    interpreter, gate = gated()
    with running(gate, lambda: interpreter.set_tensor(source(interpreter), Slow(gate))):
        interpreter.set_tensor(source(interpreter), X)
        interpreter.get_tensor(source(interpreter))
        for name in ("invoke", "resize", "close"):
            with pytest.raises(StateError, match=IN_USE):
                CALLS[name](interpreter)
    interpreter.invoke()


def test_threads_that_take_turns_are_right() -> None:
    """Each thread sets, runs or reads by turns, under one lock."""
    interpreter = Interpreter(digits_model("float32"))
    interpreter.allocate_tensors()
    seed = 0
    print(f"seed {seed}")
    shape = interpreter.get_input_details()[0]["shape"]
    images = np.random.default_rng(seed).uniform(0, 1, (4, *shape)).astype(np.float32)
    lock = threading.Lock()

    def answer(image: Any) -> Any:
        interpreter.set_tensor(source(interpreter), image)
        interpreter.invoke()
        return interpreter.get_tensor(target(interpreter))

    def locked(number: int) -> Any:
        with lock:
            return answer(images[number])

    right = [answer(image) for image in images]
    with ThreadPoolExecutor(4) as pool:
        numbers = [number % 4 for number in range(80)]
        for number, got in zip(numbers, pool.map(locked, numbers), strict=True):
            np.testing.assert_array_equal(got, right[number])
        # One thread sets, another runs, a third reads.
        pool.submit(interpreter.set_tensor, source(interpreter), images[2]).result()
        pool.submit(interpreter.invoke).result()
        got = pool.submit(interpreter.get_tensor, target(interpreter)).result()
    np.testing.assert_array_equal(got, right[2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_a_call_that_fails_leaves_the_interpreter_usable(error: type[BaseException]) -> None:
    failing = [True]

    def kernel(op: Any, inputs: Any, state: Any) -> Any:
        if failing:
            failing.clear()
            raise error
        return (inputs[0] * 2,)

    interpreter = opened(ONE, Registration(kernel=kernel))
    interpreter.allocate_tensors()
    interpreter.set_tensor(source(interpreter), X)
    with pytest.raises(BaseException):  # noqa: B017
        interpreter.invoke()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(target(interpreter)), X * 2)


def test_a_kernel_cannot_use_the_interpreter_that_runs_it() -> None:
    said = list[str]()

    def kernel(op: Any, inputs: Any, state: Any) -> Any:
        with pytest.raises(StateError) as caught:
            interpreter.invoke()
        said.append(str(caught.value))
        return (inputs[0] * 2,)

    interpreter = opened(ONE, Registration(kernel=kernel))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert said[0].startswith(IN_USE)


def test_compiled_models_wait_for_each_other_and_refuse_the_interpreter_under_them() -> None:
    interpreter, gate = gated()
    model = CompiledModel(interpreter)
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(X)
    run = running(gate, lambda: model.run_by_index(0, inputs, outputs))
    with run, pytest.raises(StateError, match=IN_USE):
        interpreter.invoke()
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(model.run_by_index, 0, inputs, outputs) for _ in range(20)]:
            each.result()
    np.testing.assert_array_equal(outputs[0].read(X.size, np.float32), X * 2)
