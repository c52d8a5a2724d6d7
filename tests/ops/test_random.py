"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: number by number LiteRT's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T, assert_close, one_op_model
from tflite_ort import Interpreter, KernelError
from tflite_ort.fallback_kernels.random import Stream
from tflite_ort.schema import Op, RandomOptions, TensorType

Array = npt.NDArray[Any]

NUMBERS = (Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL)
SEEDS = [(1, 2), (0, 5), (7, 0), (-3, -9), (2**40 + 3, 9), (9, -(2**35) - 1), (2**31, 1)]


def numbers(op: Op, shape: Sequence[int], seeds: tuple[int, int] = (1, 2)) -> bytes:
    options = RandomOptions(seed=seeds[0], seed2=seeds[1])
    return one_op_model(op, [T.constant(np.array(shape, np.int32))], [T(tuple(shape))], options)


def classes(
    shape: tuple[int, int], samples: int, seeds: tuple[int, int] = (1, 2), wide: bool = True
) -> bytes:
    result = T((shape[0], samples), TensorType.INT64 if wide else TensorType.INT32)
    options = RandomOptions(seed=seeds[0], seed2=seeds[1])
    return one_op_model(
        Op.MULTINOMIAL, [T(shape), T.constant(np.int32(samples))], [result], options
    )


def invoked(interpreter: Any, feeds: Sequence[Array]) -> Array:
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    result: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def check(model: bytes, feeds: Sequence[Array] = ()) -> None:
    """Three invokes in a row give LiteRT's results."""
    theirs, mine = litert.Interpreter(model_content=model), Interpreter(model_content=model)
    for interpreter in (theirs, mine):
        interpreter.allocate_tensors()
    assert {row.runs_on for row in mine.delegation()} == {"numpy"}
    for number in range(3):
        want, got = invoked(theirs, feeds), invoked(mine, feeds)
        assert_close(got, want, 0, 1e-6, f"invoke {number}")


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("op", NUMBERS)
def test_seeded_numbers(op: Op, seeds: tuple[int, int]) -> None:
    check(numbers(op, (3, 7), seeds))


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (4,), (5, 1, 3)])
@pytest.mark.parametrize("op", NUMBERS)
def test_shape(op: Op, shape: tuple[int, ...]) -> None:
    check(numbers(op, shape))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seeds", SEEDS)
def test_seeded_classes(seeds: tuple[int, int], wide: bool) -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    check(classes((3, 5), 7, seeds, wide), [logits])


def test_logits_that_are_not_finite_have_no_weight() -> None:
    logits = np.array([[0, -np.inf, 1, np.nan, np.inf]], np.float32)
    check(classes((1, 5), 50), [logits])


def test_another_number_of_rows_starts_the_stream_anew() -> None:
    model = classes((2, 4), 6)
    logits = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    results = []
    for make in (litert.Interpreter, Interpreter):
        interpreter: Any = make(model_content=model)
        interpreter.allocate_tensors()
        first = invoked(interpreter, [logits[:2]])
        interpreter.resize_tensor_input(0, (3, 4))
        interpreter.allocate_tensors()
        second = invoked(interpreter, [logits])
        assert np.array_equal(first, second[:2])
        results.append(second)
    assert np.array_equal(*results)


@pytest.mark.parametrize("op", NUMBERS)
def test_shape_computed_at_run_time(op: Op) -> None:
    options = RandomOptions(seed=3, seed2=4)
    model = one_op_model(op, [T((2,), TensorType.INT32)], [T((1, 1))], options)
    check(model, [np.array([3, 5], np.int32)])


@pytest.mark.parametrize("op", NUMBERS)
def test_without_seeds_every_interpreter_draws_others(op: Op) -> None:
    drawn = []
    for _ in range(2):
        interpreter = Interpreter(model_content=numbers(op, (100,), (0, 0)))
        interpreter.allocate_tensors()
        drawn.append(invoked(interpreter, []))
    assert not np.array_equal(*drawn)
    assert np.abs(drawn[0]).max() < (1 if op == Op.RANDOM_UNIFORM else 7)


def test_a_negative_size_is_refused() -> None:
    model = one_op_model(
        Op.RANDOM_UNIFORM, [T((2,), TensorType.INT32)], [T((1, 1))], RandomOptions(seed=1)
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    with pytest.raises(KernelError, match=r"shape is \[3, -1\]"):
        invoked(interpreter, [np.array([3, -1], np.int32)])


def test_the_counter_carries_into_its_upper_half() -> None:
    start = 2**64 - 2
    alone = [Stream(5, start + i).take(4) for i in range(4)]
    assert np.array_equal(Stream(5, start).take(16), np.concatenate(alone))


@given(st.data())
def test_drawn(data: st.DataObject) -> None:
    seeds = data.draw(st.tuples(st.integers(1, 2**31 - 1), st.integers(-(2**31), 2**31 - 1)))
    shape = data.draw(st.lists(st.integers(1, 9), max_size=3))
    check(numbers(data.draw(st.sampled_from(NUMBERS)), shape, seeds))
    rows = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    logits = rng.normal(scale=3, size=rows).astype(np.float32)
    check(classes(rows, data.draw(st.integers(1, 20)), seeds), [logits])
