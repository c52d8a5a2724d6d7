"""Loops that run a known number of times against LiteRT: without a Loop where that is possible, and
with the same numbers and the same refusals wherever they run."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.ops.loop_models import (
    COUNT,
    CPU,
    FLAG,
    ROW,
    ROWS,
    VECTOR,
    WIDTH,
    Piece,
    as_row,
    binary,
    feeds,
    kinds,
    loop,
    number,
    of_counter,
    reading,
    slicing,
    updating,
    writing,
)
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, check_invokes, check_otherwise, invoked, model_of
from tflite_ort import ExecutionProviderDelegate, Interpreter, export_onnx
from tflite_ort.schema import (
    AllocationError,
    DelegateError,
    FullyConnectedOptions,
    IfOptions,
    Op,
    TensorType,
    WhileOptions,
)


def check(model: bytes) -> None:
    """As LiteRT: whole, with the additions of bodies in numpy, all in numpy, and exported."""
    invokes = feeds()
    interpreter = check_invokes(model, invokes, {"ort"})
    some = ExecutionProviderDelegate(CPU, max_versions={Op.ADD: 0})
    driven = Interpreter(model_content=model, providers=[some])
    driven.allocate_tensors()
    check_otherwise(model, invokes, interpreter, driven)


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


def node_count(graph: onnx.GraphProto) -> int:
    """With those of the bodies inside, without Casts: constants may stand in narrower types."""
    bodies = [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    nodes = [node for node in graph.node if node.op_type != "Cast"]
    return len(nodes) + sum(map(node_count, bodies))


def loading(model: bytes) -> float:
    """The least seconds of the processor of three times."""

    def once() -> float:
        begin = process_time()
        Interpreter(model_content=model).allocate_tensors()
        return process_time() - begin

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
