"""Loops that run a known number of times against LiteRT: without a Loop where that is possible, and
with the same numbers and the same refusals wherever they run."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import ExecutionProviderDelegate, Interpreter, export_onnx
from tflite_ort.schema import (
    AddOptions,
    AllocationError,
    CastOptions,
    ConcatenationOptions,
    DelegateError,
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    MulOptions,
    Op,
    ReshapeOptions,
    StridedSliceOptions,
    SubOptions,
    TensorType,
    WhileOptions,
)

Array = npt.NDArray[Any]

ROWS, WIDTH = 6, 3
COUNT, FLAG = T((), TensorType.INT32), T((), TensorType.BOOL)
VECTOR, ROW, TABLE = T((WIDTH,)), T((1, WIDTH)), T((ROWS, WIDTH))
PART = T((1, WIDTH), shape_signature=(-1, WIDTH))  # of as many rows as there turn out to be
OPTIONS = {Op.ADD: AddOptions(), Op.MUL: MulOptions(), Op.SUB: SubOptions()}
CPU = "CPUExecutionProvider"


def integers(*values: int) -> T:
    return T.constant(np.array(values, np.int32))


def number(value: int) -> T:
    return T.constant(np.array(value, np.int32))


def binary(op: Op, a: str, b: str, result: str) -> Node:
    return Node(op, [a, b], [result], OPTIONS[op])


# What bodies are made of: nodes, and the tensors that they add.
Piece = tuple[list[Node], dict[str, T]]


def reading(source: str, result: str) -> Piece:
    """result = source[i]."""
    gather = Node(Op.GATHER, [source, "i"], [result], GatherOptions(axis=0))
    return [gather], {result: VECTOR}


def slicing(source: str, result: str) -> Piece:
    """result = source[i], as tf.function writes it."""
    options = StridedSliceOptions(shrink_axis_mask=1)
    nodes = [
        Node(Op.RESHAPE, ["i", "shape"], ["begin"], ReshapeOptions()),
        Node(Op.RESHAPE, ["j", "shape"], ["end"], ReshapeOptions()),
        Node(Op.STRIDED_SLICE, [source, "begin", "end", "shape"], [result], options),
    ]
    vector = T((1,), TensorType.INT32)
    return nodes, {"shape": integers(1), "begin": vector, "end": vector, result: VECTOR}


def writing(table: str, row: str, result: str) -> Piece:
    """result = table with table[i] = row [1, WIDTH], as a TensorList is written."""
    nodes = [
        Node(Op.RESHAPE, ["i", "one_size"], ["i_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["i_list", "rest"], ["before"], ConcatenationOptions(axis=0)),
        Node(Op.SLICE, [table, "origin", "before"], ["head"]),
        binary(Op.ADD, "i", "unit", "next"),
        Node(Op.RESHAPE, ["next", "one_size"], ["next_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["next_list", "zero"], ["after"], ConcatenationOptions(axis=0)),
        Node(Op.SLICE, [table, "after", "all"], ["tail"]),
        Node(Op.CONCATENATION, ["head", row, "tail"], [result], ConcatenationOptions(axis=0)),
    ]
    one, two = T((1,), TensorType.INT32), T((2,), TensorType.INT32)
    tensors = {"one_size": integers(1), "rest": integers(-1), "origin": integers(0, 0)}
    tensors |= {"zero": integers(0), "all": integers(-1, -1), "unit": number(1), "next": COUNT}
    tensors |= {"i_list": one, "next_list": one, "before": two, "after": two}
    return nodes, tensors | {"head": PART, "tail": PART, result: TABLE}


def updating(table: str, row: str, result: str) -> Piece:
    """As `writing`, by DYNAMIC_UPDATE_SLICE."""
    nodes = [
        Node(Op.RESHAPE, ["i", "one_size"], ["i_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["i_list", "zero"], ["place"], ConcatenationOptions(axis=0)),
        Node(Op.DYNAMIC_UPDATE_SLICE, [table, row, "place"], [result]),
    ]
    one, two = T((1,), TensorType.INT32), T((2,), TensorType.INT32)
    tensors = {"one_size": integers(1), "zero": integers(0), "i_list": one, "place": two}
    return nodes, tensors | {result: TABLE}


def as_row(vector: str, result: str) -> Piece:
    node = Node(Op.RESHAPE, [vector, f"{result} shape"], [result], ReshapeOptions())
    return [node], {f"{result} shape": integers(1, WIDTH), result: ROW}


def of_counter(result: str) -> Piece:
    """The counter as a float."""
    return [Node(Op.CAST, ["i"], [result], CastOptions())], {result: T(())}


def loop(
    *pieces: Piece,
    x: str = "x",
    table: str = "table",
    start: int = 0,
    step: int = 1,
    until: int = ROWS,
    test: Op = Op.LESS,
    called: Sequence[Sub] = (),
    t: T = VECTOR,
) -> bytes:
    """i, x, table = i + step, what `pieces` make while `test`(i, until), and xs stays.

    x, xs and table are the inputs; i, x and table the outputs.
    """
    state = {"i": COUNT, "x": t, "table": TABLE, "xs": TABLE}
    made = {"oi": COUNT, "ox": t, "otable": TABLE, "oxs": TABLE}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    outputs = ["oi", "ox", "otable"]
    main = Sub(state | made | {"i": number(start)}, [node], list(state)[1:], outputs)
    tensors = state | {"until": number(until), "t": FLAG}
    condition = Sub(tensors, [Node(test, ["i", "until"], ["t"])], list(state), ["t"])
    nodes, tensors = [binary(Op.ADD, "i", "step", "j")], {"step": number(step), "j": COUNT}
    for more, own in pieces:
        nodes += more
        tensors = own | tensors
    body = Sub(tensors | state, nodes, list(state), ["j", x, table, "xs"])
    return model_of(main, condition, body, *called)


def feeds(seed: int = 0, count: int = 2) -> list[list[Array]]:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    return [[t.random(rng, -1, 1) for t in (VECTOR, TABLE, TABLE)] for _ in range(count)]


def kinds(model: bytes) -> set[str]:
    return {node.op_type for node in export_onnx(model).graph.node}


def check(model: bytes) -> None:
    """As LiteRT: whole, with the additions of bodies in numpy, all in numpy, and exported."""
    invokes = feeds()
    interpreter = check_invokes(model, invokes, {"ort"})
    some = ExecutionProviderDelegate(CPU, max_versions={Op.ADD: 0})
    driven = Interpreter(model_content=model, providers=[some])
    driven.allocate_tensors()
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    for given_ in invokes:
        wanted = invoked(interpreter, given_)
        named = {v.name: x for v, x in zip(session.get_inputs(), given_, strict=True)}
        for others in (invoked(driven, given_), session.run(None, named)):
            for want, got in zip(wanted, others, strict=True):
                assert got.shape == want.shape
                assert_close(got, want, 0, 1e-5, "otherwise")


SUM = ([binary(Op.ADD, "x", "row", "y")], {"y": VECTOR})
SCALED = ([binary(Op.MUL, "x", "half", "y")], {"half": T.constant(np.float32(0.5)), "y": VECTOR})
CONSTANT: Piece = ([], {"line": T.constant(np.ones((1, WIDTH), np.float32))})
READ, STACK = reading("xs", "row"), as_row("y", "line")
WRITE, UPDATE = writing("table", "line", "new"), updating("table", "line", "new")
COUNTED = (
    [*of_counter("real")[0], binary(Op.ADD, "x", "real", "y")],
    {**of_counter("real")[1], "y": VECTOR},
)
INNER = (
    Sub(
        {"k": COUNT, "x": VECTOR, "three": number(3), "t": FLAG},
        [Node(Op.LESS, ["k", "three"], ["t"])],
        ["k", "x"],
        ["t"],
    ),
    Sub(
        {"k": COUNT, "x": VECTOR, "one": number(1), "l": COUNT, "y": VECTOR},
        [binary(Op.ADD, "k", "one", "l"), binary(Op.ADD, "x", "x", "y")],
        ["k", "x"],
        ["l", "y"],
    ),
)
NESTED: Piece = (
    [Node(Op.WHILE, ["none", "row"], ["k", "y"], WhileOptions(3, 4))],
    {"none": number(0), "k": COUNT, "y": VECTOR},
)
BRANCH: Piece = (
    [
        Node(Op.EQUAL, ["i", "two"], ["is two"]),
        Node(Op.IF, ["is two", "x"], ["y"], IfOptions(3, 4)),
    ],
    {"two": number(2), "is two": FLAG, "y": VECTOR},
)
BRANCHES = (
    Sub({"x": VECTOR, "y": VECTOR}, [binary(Op.ADD, "x", "x", "y")], ["x"], ["y"]),
    Sub({"x": VECTOR, "y": VECTOR}, [binary(Op.MUL, "x", "x", "y")], ["x"], ["y"]),
)

MODELS = {
    "sum of rows": loop(READ, SUM, x="y"),
    "running sums in a list": loop(READ, SUM, STACK, WRITE, x="y", table="new"),
    "rows by STRIDED_SLICE": loop(slicing("xs", "row"), SUM, STACK, WRITE, x="y", table="new"),
    "DYNAMIC_UPDATE_SLICE": loop(READ, SUM, STACK, UPDATE, x="y", table="new"),
    "every other row": loop(READ, SUM, STACK, UPDATE, x="y", table="new", step=2),
    "backwards": loop(
        *(READ, SUM, STACK, UPDATE),
        x="y",
        table="new",
        start=ROWS - 1,
        step=-1,
        until=0,
        test=Op.GREATER_EQUAL,
    ),
    "some rows": loop(READ, SUM, STACK, WRITE, x="y", table="new", start=1, until=4),
    "one row": loop(READ, SUM, STACK, WRITE, x="y", table="new", start=3, until=4),
    "no row": loop(READ, SUM, STACK, WRITE, x="y", table="new", start=4, until=4),
    "a list that is read too": loop(reading("table", "row"), SUM, STACK, WRITE, x="y", table="new"),
    "a list of what is read alone": loop(READ, as_row("row", "line"), WRITE, table="new"),
    "the row before": loop(READ, as_row("x", "line"), WRITE, x="row", table="new"),
    "the counter as a number": loop(COUNTED, STACK, WRITE, x="y", table="new"),
    "one row each time": loop(CONSTANT, WRITE, table="new"),
    "without rows": loop(SCALED, x="y"),
    "often": loop(SCALED, x="y", until=100),
    "a loop in it": loop(READ, NESTED, STACK, WRITE, x="y", table="new", called=INNER),
    "a branch in it": loop(BRANCH, STACK, WRITE, x="y", table="new", called=BRANCHES),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loop_gives_what_litert_gives(name: str) -> None:
    check(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_no_loop_is_left(name: str) -> None:
    assert "Loop" not in kinds(MODELS[name])


def test_what_does_not_need_the_iteration_before_is_no_step() -> None:
    model = loop(READ, as_row("row", "line"), WRITE, table="new", until=ROWS)
    assert not {"Scan", "Split", "Concat"} & kinds(model)
    assert "Scan" in kinds(MODELS["often"])
    assert "Scan" not in kinds(MODELS["without rows"])


@given(
    start=st.integers(-4, 8),
    step=st.integers(-3, 3).filter(bool),
    until=st.integers(-4, 8),
    test=st.sampled_from([Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL, Op.NOT_EQUAL]),
    seed=st.integers(0, 2**32 - 1),
)
def test_drawn_counters(start: int, step: int, until: int, test: Op, seed: int) -> None:
    """Also those that count off, and rows that are not there, which LiteRT refuses."""
    values = range(start, start + 40 * step, step)
    compare = {
        Op.LESS: int.__lt__,
        Op.LESS_EQUAL: int.__le__,
        Op.GREATER: int.__gt__,
        Op.GREATER_EQUAL: int.__ge__,
        Op.NOT_EQUAL: int.__ne__,
    }
    runs = next((k for k, i in enumerate(values) if not compare[test](i, until)), None)
    # Not for a very long time, and what does not run has to fit nevertheless.
    assume(runs is not None and (runs or 0 <= start < ROWS))
    read = all(0 <= i < ROWS for i in list(values)[:runs])
    pieces = [READ, SUM, STACK, WRITE] if seed % 2 else [COUNTED, STACK, UPDATE]
    more = {"x": "y", "table": "new", "test": test}
    model = loop(*pieces, start=start, step=step, until=until, **more)
    if read or not seed % 2:
        check_invokes(model, feeds(seed, 1))
        return
    theirs = litert_interpreter(model, "reference")
    mine = Interpreter(model_content=model)
    for interpreter, errors in ((theirs, RuntimeError), (mine, (AllocationError, DelegateError))):
        with pytest.raises(errors):
            interpreter.allocate_tensors()
            invoked(interpreter, feeds(seed, 1)[0])


def test_a_counter_that_runs_over_is_not_counted() -> None:
    """It starts anew at the lowest number."""
    model = loop(SCALED, x="y", start=2**31 - 3, step=2, until=0, test=Op.GREATER)
    assert "Loop" in kinds(model)
    check(model)


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
ONE_SIZE = T((1,), TensorType.INT32)


@pytest.mark.parametrize(
    ("model", "states"),
    [
        (bounded(DOUBLED, [BELOW]), 1),
        (bounded(DOUBLED, [ABOVE], ONE_SIZE), 1),
        (bounded(DOUBLED, BOTH), 1),
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
    (node,) = [node for node in exported.graph.node if node.op_type == "Loop"]
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


def node_count(graph: onnx.GraphProto) -> int:
    """With those of the bodies inside."""
    bodies = [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    return len(graph.node) + sum(map(node_count, bodies))


def loading(model: bytes) -> float:
    """The least seconds of three times."""

    def once() -> float:
        begin = perf_counter()
        Interpreter(model_content=model).allocate_tensors()
        return perf_counter() - begin

    return min(once() for _ in range(3))


@pytest.mark.parametrize("pieces", [(COUNTED,), (SCALED,), ()])
def test_a_long_loop_is_as_soon_ready_as_a_short_one(pieces: Sequence[Piece]) -> None:
    """Also one whose iterations do nothing but count."""
    short, long = (loop(*pieces, x="y" if pieces else "x", until=n) for n in (100, 1000))
    assert node_count(export_onnx(short).graph) == node_count(export_onnx(long).graph)
    assert loading(long) < loading(short) + 0.2


@pytest.mark.parametrize("count", [3, 100, 101])
def test_states_that_are_exchanged(count: int) -> None:
    """LiteRT's result depends on memory that both share."""
    state = {"i": COUNT, "x": VECTOR, "y": VECTOR}
    made = {f"o{name}": t for name, t in state.items()}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    main = Sub(state | made | {"i": number(0)}, [node], ["x", "y"], ["ox", "oy"])
    tensors = state | {"n": number(count), "t": FLAG}
    condition = Sub(tensors, [Node(Op.LESS, ["i", "n"], ["t"])], list(state), ["t"])
    tensors = state | {"one": number(1), "j": COUNT}
    body = Sub(tensors, [binary(Op.ADD, "i", "one", "j")], list(state), ["j", "y", "x"])
    model = model_of(main, condition, body)
    assert node_count(export_onnx(model).graph) < 10
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    x, y = np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32)
    np.testing.assert_array_equal(invoked(interpreter, [x, y]), [y, x] if count % 2 else [x, y])


def test_codes_are_stacked_as_they_are() -> None:
    """A list of int8, one row a time, and sums that are rounded to codes each time."""
    codes = T((WIDTH,), TensorType.INT8, scale=0.5, zero_point=-3)
    row = T((1, WIDTH), TensorType.INT8, scale=0.5, zero_point=-3)
    table = T((ROWS, WIDTH), TensorType.INT8, scale=0.5, zero_point=-3)
    state = {"i": COUNT, "x": codes, "table": table, "xs": table}
    made = {"oi": COUNT, "ox": codes, "otable": table, "oxs": table}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    main = Sub(state | made | {"i": number(0)}, [node], list(state)[1:], ["ox", "otable"])
    condition = Sub(
        state | {"n": number(ROWS), "t": FLAG},
        [Node(Op.LESS, ["i", "n"], ["t"])],
        list(state),
        ["t"],
    )
    tensors: dict[str, T] = {"one": number(1), "j": COUNT}
    nodes = [binary(Op.ADD, "i", "one", "j")]
    for more, own in (READ, SUM, STACK, UPDATE):
        nodes += more
        tensors |= own
    tensors |= {"row": codes, "y": codes, "line": row, "new": table}
    body = Sub(tensors | state, nodes, list(state), ["j", "y", "new", "xs"])
    model = model_of(main, condition, body)
    assert "Loop" not in kinds(model)
    rng = np.random.default_rng(0)
    given_ = [t.random(rng) for t in (codes, table, table)]
    theirs, mine = litert_interpreter(model, "reference"), Interpreter(model_content=model)
    for interpreter in (theirs, mine):
        interpreter.allocate_tensors()
    for want, got in zip(invoked(theirs, given_), invoked(mine, given_), strict=True):
        assert_close(got, want, 1, 0, "codes")


def test_a_product_in_all_iterations_is_one() -> None:
    weights = np.random.default_rng(0).normal(size=(WIDTH, WIDTH)).astype(np.float32)
    product: Piece = (
        [
            *as_row("row", "input")[0],
            Node(Op.FULLY_CONNECTED, ["input", "w", None], ["line"], FullyConnectedOptions()),
        ],
        {**as_row("row", "input")[1], "w": T.constant(weights), "line": ROW},
    )
    model = loop(READ, product, WRITE, table="new")
    check(model)
    types = [node.op_type for node in export_onnx(model).graph.node]
    assert types.count("Gemm") == 1
    assert not {"Loop", "Scan"} & set(types)
