"""Numbers that are almost zero are zero where a mask makes many of them, and nowhere else."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.cached import is_hit
from tests.one_op import graph_model
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort import Interpreter
from tflite_ort.providers import small_numbers
from tflite_ort.schema import BatchMatMulOptions, Op

Array = npt.NDArray[Any]
KNOWN = sys.platform == "linux" and platform.machine() == "x86_64"
needs_setting = pytest.mark.skipif(not KNOWN, reason="only there can a thread be set so")
SEED, TOKENS, SIZE = 5, 8, 4
TINY = np.full((2, 4), 1e-20, np.float32)  # whose square is no normal float


def network(*, masked: bool, beside: str = "") -> bytes:
    """An attention, and the square of one more input.

    Args:
        beside: where the weights stand that the softmax makes: they are read as an ``output`` too,
            so that no rule makes one node of the attention, or are the ``end`` of the network.
    """
    n, square = Builder(), (1, TOKENS, TOKENS)
    q, k, v = (n.input(name, 1, TOKENS, SIZE) for name in "qkv")
    mask, tiny = n.input("mask", *square), n.input("tiny", *TINY.shape)
    scores = n.op(Op.BATCH_MATMUL, [q, k], square, BatchMatMulOptions(adj_y=True))
    hidden = n.op(Op.ADD, [scores, mask], square)
    weights = n.op(Op.SOFTMAX, [hidden if masked else scores], square)
    squares = n.op(Op.MUL, [tiny, tiny], TINY.shape)
    results = [squares, weights] if beside else [squares]
    if beside != "end":
        results.append(n.op(Op.BATCH_MATMUL, [weights, v], (1, TOKENS, SIZE)))
    if not masked:
        results.append(hidden)
    return graph_model(n.tensors, n.nodes, results)


def inputs() -> list[Array]:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    rows = [rng.normal(0, 1, (1, TOKENS, SIZE)).astype(np.float32) for _ in range(3)]
    mask = np.where(rng.random((1, TOKENS, TOKENS)) < 0.5, 0, -1e4).astype(np.float32)
    return [*rows, mask, TINY]


def squares_are_kept() -> bool:
    """Whether this thread has numbers as they are."""
    return bool(np.all(TINY * TINY > 0))


@needs_setting
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("masked", "beside", "zero"),
    [(True, "", True), (True, "output", True), (True, "end", False), (False, "", False)],
)
def test_in_sessions_with_a_mask(threads: int, masked: bool, beside: str, zero: bool) -> None:
    content = network(masked=masked, beside=beside)
    squares, *_ = answers(content, inputs(), num_threads=threads)
    assert np.all(squares == 0) == zero
    assert squares_are_kept()


@pytest.mark.parametrize("beside", ["", "output"])
def test_results_are_those_of_litert(beside: str) -> None:
    content = network(masked=True, beside=beside)
    pairs = zip(answers(content, inputs()), litert(content, inputs()), strict=True)
    for got, want in pairs:
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@needs_setting
@pytest.mark.parametrize("threads", [1, 2])
def test_a_stored_plan_knows_it(threads: int, tmp_path: Path) -> None:
    content = network(masked=True)
    for stored in (False, True):
        interpreter = Interpreter(model_content=content, cache=tmp_path, num_threads=threads)
        assert is_hit(interpreter) == stored
        for detail, array in zip(interpreter.get_input_details(), inputs(), strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        squares = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert np.all(squares == 0)
        assert squares_are_kept()


_FIRST = """
import sys
from tests.providers.test_small_numbers import answers, inputs, network, squares_are_kept
from tflite_ort import Interpreter

content = network(masked=True)
Interpreter(model_content=content, num_threads=int(sys.argv[1])).allocate_tensors()
assert squares_are_kept()
answers(content, inputs())
assert squares_are_kept()
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_first_session_of_a_process_leaves_its_thread_as_it_was(threads: str) -> None:
    subprocess.run([sys.executable, "-c", _FIRST, threads], check=True, timeout=60)


@needs_setting
def test_the_setting_ends_with_a_failure() -> None:
    seen = list[bool]()

    def fail() -> None:
        seen.append(squares_are_kept())
        raise KeyError

    with pytest.raises(KeyError):
        small_numbers.small_as_zero(fail)()
    assert seen == [False]
    assert squares_are_kept()


@needs_setting
def test_a_caller_that_has_it_set_keeps_it() -> None:
    """Runs within runs, as of a callback, and other code that sets its thread so."""
    seen = list[bool]()
    inner = small_numbers.small_as_zero(lambda: seen.append(squares_are_kept()))

    def outer() -> None:
        inner()
        seen.append(squares_are_kept())

    small_numbers.small_as_zero(outer)()
    assert seen == [False, False]
    assert squares_are_kept()


def test_elsewhere_a_run_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_numbers, "_functions", lambda: None)
    assert small_numbers.small_as_zero(squares_are_kept) is squares_are_kept
    assert small_numbers.unchanged(squares_are_kept)
