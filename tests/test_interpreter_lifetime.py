"""Interpreters in threads, copied, pickled, closed, and used for a long time."""

from __future__ import annotations

import copy
import gc
import hashlib
import os
import pickle
import statistics
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.litert_models import permute_float, running_sum, two_signatures
from tests.one_op import Node, T, graph_model
from tflite_ort import (
    Interpreter,
    InterpreterWithCustomOps,
    OpResolverType,
    Registration,
    StateError,
)
from tflite_ort.command.demo import digits_model
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema import FullyConnectedOptions, Op

Array = npt.NDArray[Any]

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
STATM = Path("/proc/self/statm")


def heavy(width: int = 512) -> bytes:
    """Ten square matrix products."""
    rng = np.random.default_rng(0)
    tensors, nodes = {"t0": T((64, width))}, []
    for i in range(10):
        weights = rng.normal(size=(width, width), scale=width**-0.5).astype(np.float32)
        tensors |= {f"w{i}": T.constant(weights), f"t{i + 1}": T((64, width))}
        nodes.append(
            Node(
                Op.FULLY_CONNECTED,
                [f"t{i}", f"w{i}", None],
                [f"t{i + 1}"],
                FullyConnectedOptions(),
            )
        )
    return graph_model(tensors, nodes, ["t10"])


def loaded(model: bytes, **arguments: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **arguments)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: Array) -> Any:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


# Threads ----------------------------------------------------------------------------------------


def test_interpreters_in_threads_share_nothing() -> None:
    """Each thread has its own input and its own running sum."""

    def total(seed: int) -> bool:
        rng, interpreter, state = (
            np.random.default_rng(seed),
            loaded(running_sum()),
            np.zeros((1, 2)),
        )
        for _ in range(200):
            x = rng.normal(size=(1, 2)).astype(np.float32)
            state = x + state / 2
            np.testing.assert_allclose(run(interpreter, x), state, rtol=1e-4, atol=1e-4)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(total, range(8)))


def test_one_interpreter_runs_while_another_does() -> None:
    """Most invokes of one thread begin within an invoke of the other: none holds the interpreter
    lock. That shows on a busy machine too, where a speed-up may not."""
    model, rounds = heavy(), 40
    barrier, spans = threading.Barrier(2), {}

    def work(name: str) -> None:
        interpreter, own = loaded(model), []
        barrier.wait()
        for _ in range(rounds):
            started = time.perf_counter()
            interpreter.invoke()
            own.append((started, time.perf_counter()))
        spans[name] = own

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    within = sum(a < start < b for start, _ in spans["b"] for a, b in spans["a"])
    within += sum(a < start < b for start, _ in spans["a"] for a, b in spans["b"])
    assert within > rounds / 2


def test_two_threads_are_faster_than_one() -> None:
    """In the best of 40 rounds; unless hashing is not either, for want of a free second core."""
    interpreters, text = [loaded(heavy()) for _ in range(2)], bytes(1 << 20)

    def invokes(interpreter: Interpreter) -> None:
        for _ in range(10):
            interpreter.invoke()

    def hashes(_: Interpreter) -> None:
        for _ in range(10):
            hashlib.sha256(text).digest()

    def seconds(work: Callable[[], object]) -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    ratios: dict[Callable[[Interpreter], None], list[float]] = {invokes: [], hashes: []}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(40):
            for work, measured in ratios.items():
                in_turn = seconds(lambda work=work: [work(each) for each in interpreters])
                at_once = seconds(lambda work=work: list(pool.map(work, interpreters)))
                measured.append(in_turn / at_once)
            if ratios[invokes][-1] > 1.2:
                return
    assert statistics.median(ratios[hashes]) < 1.2, ratios


# Copies -----------------------------------------------------------------------------------------

COPIES: dict[str, Callable[[Interpreter], Interpreter]] = {
    "copy()": Interpreter.copy,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda interpreter: pickle.loads(pickle.dumps(interpreter)),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_opens_the_model_anew(name: str, tmp_path: Path) -> None:
    path, x = tmp_path / "permute.tflite", np.float32([[1, 2, 3, 4]])
    path.write_bytes(permute_float())
    for original in (
        Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF),
        Interpreter(model_content=permute_float(), providers=[]),
        Interpreter(model_content=memoryview(permute_float()), providers=[]),
    ):
        original.allocate_tensors()
        run(original, x)
        again = COPIES[name](original)
        with pytest.raises(StateError, match="not ready"):
            again.invoke()
        again.allocate_tensors()
        np.testing.assert_array_equal(run(again, x), x[:, ::-1])
        assert {row.runs_on for row in again.delegation()} == {"numpy"}


def register(resolver: Any) -> None:
    resolver.add_custom("Double", Registration(kernel=lambda op, inputs, state: (inputs[0] * 2,)))


def test_a_copy_has_the_same_custom_operators() -> None:
    interpreter = InterpreterWithCustomOps([register], model_content=permute_float())
    again = pickle.loads(pickle.dumps(interpreter))
    assert type(again) is InterpreterWithCustomOps
    assert again._loaded.context().resolver.versions("Double") == [1]


# Closing ----------------------------------------------------------------------------------------


def test_a_closed_interpreter_refuses_every_call() -> None:
    with loaded(two_signatures()) as interpreter:
        add, view = interpreter.get_signature_runner("add"), interpreter.tensor(0)
        add(x=np.float32([1]))
    for call in (
        view,
        add.get_input_details,
        lambda: add(x=np.float32([1])),
        interpreter.allocate_tensors,
        interpreter.invoke,
        interpreter.get_input_details,
        interpreter.get_tensor_details,
        interpreter.reset_all_variables,
        interpreter.delegation,
        interpreter.get_signature_list,
        interpreter._get_ops_details,
        lambda: interpreter.get_signature_runner("add"),
        lambda: interpreter.metadata,
        lambda: interpreter.get_tensor(0),
        lambda: interpreter.set_tensor(0, np.zeros((1, 4), np.float32)),
        lambda: interpreter.resize_tensor_input(0, (1, 4)),
    ):
        with pytest.raises(StateError, match="closed"):
            call()
    interpreter.close()


# Memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_cached", [False, True])
def test_what_is_dropped_is_freed_at_once(tmp_path: Path, *, is_cached: bool) -> None:
    def use(*, is_hit: bool) -> weakref.ref[object]:
        interpreter = Interpreter(digits_model("float32"), cache=tmp_path if is_cached else False)
        interpreter.allocate_tensors()
        interpreter.invoke()
        interpreter.get_tensor_details()
        plan = interpreter._subgraph(0).executor.plan
        assert isinstance(plan, StoredPlan) == (is_hit and is_cached)
        assert plan is not None
        return weakref.ref(plan.run)

    gc.collect()
    gc.disable()
    try:
        for is_hit in (False, True):
            assert use(is_hit=is_hit)() is None
    finally:
        gc.enable()


def resident() -> int:
    gc.collect()
    return int(STATM.read_text().split()[1]) * PAGE


def growth(use: Callable[[], object], count: int) -> int:
    """Bytes by which the process grows while `use` is called `count` times."""
    before = resident()
    for _ in range(count):
        use()
    return resident() - before


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_memory_does_not_grow(request: pytest.FixtureRequest) -> None:
    """10,000 invokes and 500 loads in thorough runs; figures in docs/interpreter.md.

    The least growth of three times counts: a leak grows each time, an allocator's new arena once.
    """
    thorough = request.config.getoption("--thorough")
    invokes, loads = (10_000, 500) if thorough else (1_000, 40)
    model, x = heavy(128), np.ones((64, 128), np.float32)
    interpreter = loaded(model)
    grown = {}
    for name, count, use in (
        ("invokes", invokes, lambda: run(interpreter, x)),
        ("loads", loads, lambda: run(loaded(model), x)),
        ("numpy", invokes // 10, lambda: run(loaded(permute_float(), providers=[]), x[:1, :4])),
    ):
        for _ in range(count // 4):
            use()
        grown[name] = min(growth(use, count) for _ in range(3))
    print({name: f"{size / 1e6:.2f} MB" for name, size in grown.items()})
    assert max(grown.values()) < 4e6, grown
