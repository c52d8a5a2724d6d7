"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: number by number LiteRT's, through ONNX
Runtime, in numpy, and from an exported file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close, one_op_model
from tests.subgraph_models import Sub, check_invokes, model_of
from tflite_ort import Interpreter, export_onnx
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import Target, lower, translator
from tflite_ort.schema import (
    AddOptions,
    IfOptions,
    Op,
    RandomOptions,
    TensorType,
    WhileOptions,
    read_model,
)
from tflite_ort.specialize.specialization import specialize

Array = npt.NDArray[Any]

NUMBERS = (Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL)
# A provider that is not the CPU's, with numpy behind it.
OTHER = Target(fallback=True)
# Of what Log, Sin and Cos give.
TOLERANCE = 1e-6
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


class Exported:
    """The file of a model, run with its own state."""

    def __init__(self, model: bytes, **options: Any) -> None:
        file = export_onnx(model, state_defaults=True, **options)
        self.session = onnxruntime.InferenceSession(file.SerializeToString())
        properties = {entry.key: entry.value for entry in file.metadata_props}
        self.pairs = json.loads(properties.get("tflite.state", "[]"))
        self.state: dict[str, Array] = {}

    def run(self, feeds: Sequence[Array]) -> Array:
        names = [value.name for value in self.session.get_inputs()]
        given = dict(zip(names, feeds, strict=False)) | self.state
        made = [value.name for value in self.session.get_outputs()]
        results = dict(zip(made, self.session.run(None, given), strict=True))
        self.state = {before: results[after] for before, after in self.pairs}
        return results[made[0]]


def check(model: bytes, feeds: Sequence[Array] = (), runs_on: str = "ort") -> None:
    """Three invokes in a row give LiteRT's results."""
    theirs, mine = litert.Interpreter(model_content=model), Interpreter(model_content=model)
    numpy, exported = Interpreter(model_content=model, providers=[]), Exported(model)
    for interpreter in (theirs, mine, numpy):
        interpreter.allocate_tensors()
    assert {row.runs_on for row in mine.delegation()} == {runs_on}
    for number in range(3):
        want = invoked(theirs, feeds)
        for got in (invoked(mine, feeds), invoked(numpy, feeds), exported.run(feeds)):
            assert_close(got, want, 0, TOLERANCE, f"invoke {number}")


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
    check(model, [np.array([3, 5], np.int32)], "numpy")  # they may be many


@pytest.mark.parametrize("op", NUMBERS)
def test_without_seeds_every_interpreter_draws_others(op: Op) -> None:
    drawn = []
    for _ in range(2):
        interpreter = Interpreter(model_content=numbers(op, (100,), (0, 0)))
        interpreter.allocate_tensors()
        drawn.append(invoked(interpreter, []))
    assert not np.array_equal(*drawn)
    assert np.abs(drawn[0]).max() < (1 if op == Op.RANDOM_UNIFORM else 7)


@pytest.mark.parametrize("providers", [[], None])
def test_a_negative_size_is_refused(providers: Any) -> None:
    model = one_op_model(
        Op.RANDOM_UNIFORM, [T((2,), TensorType.INT32)], [T((1, 1))], RandomOptions(seed=1)
    )
    interpreter = Interpreter(model_content=model, providers=providers)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"shape is \[3, -1\]"):
        invoked(interpreter, [np.array([3, -1], np.int32)])


@pytest.mark.parametrize("op", NUMBERS)
def test_numpy_draws_many_numbers(op: Op) -> None:
    interpreter = Interpreter(model_content=numbers(op, (100, 100)))
    interpreter.allocate_tensors()
    (row,) = interpreter.delegation()
    assert (row.runs_on, row.reason) == ("numpy", "numpy draws many numbers faster")


def test_only_the_cpu_is_given_integers_of_64_bits() -> None:
    model = read_model(numbers(Op.RANDOM_UNIFORM, (3,)))
    graph = specialize(model, 0, {}, kernel)
    (op,) = graph.operators
    refused = lower([op], op.present_inputs()[1:], op.outputs, translator, target=OTHER)
    assert refused.refusals == {0: "integers of 64 bits are left to the CPU"}


@pytest.mark.parametrize("op", NUMBERS)
def test_a_reset_of_variables_leaves_the_stream_as_it_is(op: Op) -> None:
    model = numbers(op, (3,))
    theirs, mine = litert.Interpreter(model_content=model), Interpreter(model_content=model)
    for interpreter in (theirs, mine):
        interpreter.allocate_tensors()
    for _ in range(2):
        assert_close(invoked(mine, []), invoked(theirs, []), 0, TOLERANCE, "")
        for interpreter in (theirs, mine):
            interpreter.reset_all_variables()


# Inside a branch, and in a loop: each node has a stream of its own, whoever calls it.
OPTIONS = RandomOptions(seed=3, seed2=4)
DRAW = Node(Op.RANDOM_UNIFORM, ["n"], ["r"], OPTIONS)
SIZES = T.constant(np.array([2], np.int32))
COUNT, FLAG, X = T((), TensorType.INT32), T((), TensorType.BOOL), T((2,))
ADDED = Node(Op.ADD, ["x", "r"], ["y"], AddOptions())
BRANCH = Sub({"x": X, "n": SIZES, "r": X, "y": X}, [DRAW, ADDED], ["x"], ["y"])
KEEP = Sub({"x": X, "y": X}, [Node(Op.ABS, ["x"], ["y"])], ["x"], ["y"])
BELOW = Sub(
    {"i": COUNT, "x": X, "k": T.constant(np.int32(3)), "t": FLAG},
    [Node(Op.LESS, ["i", "k"], ["t"])],
    ["i", "x"],
    ["t"],
)
STEP = Sub(
    {"i": COUNT, "x": X, "one": T.constant(np.int32(1)), "j": COUNT, "n": SIZES, "r": X, "y": X},
    [Node(Op.ADD, ["i", "one"], ["j"], AddOptions()), DRAW, ADDED],
    ["i", "x"],
    ["j", "y"],
)
NESTED = {
    "branch": (
        model_of(
            Sub(
                {"c": FLAG, "x": X, "y": X},
                [Node(Op.IF, ["c", "x"], ["y"], IfOptions(1, 2))],
                ["c", "x"],
                ["y"],
            ),
            BRANCH,
            KEEP,
        ),
        [[np.array(flag), np.ones(2, np.float32)] for flag in (True, True, False, True, False)],
    ),
    "two loops of one body": (
        model_of(
            Sub(
                {"i": T.constant(np.int32(0)), "x": X, "j": COUNT, "y": X, "k": COUNT, "z": X},
                [
                    Node(Op.WHILE, ["i", "x"], ["j", "y"], WhileOptions(1, 2)),
                    Node(Op.WHILE, ["i", "y"], ["k", "z"], WhileOptions(1, 2)),
                ],
                ["x"],
                ["y", "z"],
            ),
            BELOW,
            STEP,
        ),
        [[np.ones(2, np.float32)]] * 3,
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_in_called_subgraphs(name: str) -> None:
    model, invokes = NESTED[name]
    check_invokes(model, invokes, {"ort"})
    exported, interpreter = Exported(model), Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for feeds in invokes:
        np.testing.assert_array_equal(exported.run(feeds), invoked(interpreter, feeds))


# Exported files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", NUMBERS)
def test_a_stateless_export_starts_anew(op: Op) -> None:
    exported = Exported(numbers(op, (5,)), stateful=False)
    assert exported.pairs == []
    assert np.array_equal(exported.run([]), exported.run([]))


def test_the_position_is_a_named_input_and_output() -> None:
    exported = Exported(numbers(Op.RANDOM_UNIFORM, (9,)))
    assert exported.pairs == [["RANDOM_UNIFORM_0/position", "RANDOM_UNIFORM_0/position_next"]]
    first, second = (exported.run([]) for _ in range(2))
    assert exported.state == {"RANDOM_UNIFORM_0/position": 6}  # blocks of 4
    exported.state = {"RANDOM_UNIFORM_0/position": np.array(3)}
    assert np.array_equal(exported.run([]), second) and not np.array_equal(first, second)


def test_an_export_without_seeds_draws_others_in_each_run_and_node() -> None:
    shape = T.constant(np.array([1000], np.int32))
    nodes = [Node(op, ["n"], [op.name], RandomOptions()) for op in NUMBERS]
    nodes.append(Node(Op.RANDOM_UNIFORM, ["n"], ["again"], RandomOptions()))
    tensors = {"n": shape, "again": T((1000,))} | {op.name: T((1000,)) for op in NUMBERS}
    exported = Exported(model_of(Sub(tensors, nodes, [], ["again", *(op.name for op in NUMBERS)])))
    assert exported.pairs == []
    again, uniform, normal = exported.session.run(None, {})
    for drawn in (again, uniform):
        assert drawn.min() >= 0 and drawn.max() < 1
        assert abs(drawn.mean() - 0.5) < 0.1
    assert abs(normal.mean()) < 0.3 and abs(normal.std() - 1) < 0.2
    assert abs(np.corrcoef(again, uniform)[0, 1]) < 0.2
    assert not np.array_equal(again, exported.run([]))


def test_classes_without_seeds_are_exported() -> None:
    exported = Exported(classes((1, 3), 2000, (0, 0)))
    logits = np.log(np.array([[1, 2, 5]], np.float32))
    shares = np.bincount(exported.run([logits])[0], minlength=3) / 2000
    np.testing.assert_allclose(shares, [1 / 8, 2 / 8, 5 / 8], atol=0.08)


@given(st.data())
def test_drawn(data: st.DataObject) -> None:
    seeds = data.draw(st.tuples(st.integers(1, 2**31 - 1), st.integers(-(2**31), 2**31 - 1)))
    shape = data.draw(st.lists(st.integers(1, 9), max_size=3))
    check(numbers(data.draw(st.sampled_from(NUMBERS)), shape, seeds))
    rows = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    logits = rng.normal(scale=3, size=rows).astype(np.float32)
    check(classes(rows, data.draw(st.integers(1, 20)), seeds), [logits])
