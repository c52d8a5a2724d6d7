"""Loops whose number of iterations is an input, against LiteRT, against the same loop of a known
number of iterations, and against a Loop: no Loop runs while the lists have enough rows.

Recurrent cells are in test_control_flow_loop_cells.py."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.ops.loop_models import (
    COUNT,
    FLAG,
    ROWS,
    TABLE,
    VECTOR,
    WIDTH,
    Array,
    Piece,
    as_row,
    binary,
    every_node,
    feeds,
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
from tflite_ort import Interpreter, export_onnx
from tflite_ort.opmap.loops import bounded_loop
from tflite_ort.schema import (
    AddOptions,
    DelegateError,
    FullyConnectedOptions,
    Op,
    SubOptions,
    TensorType,
    WhileOptions,
)

Integer = np.signedinteger[Any]
SUM: Piece = ([binary(Op.ADD, "x", "row", "y")], {"y": VECTOR})
SCALED: Piece = (
    [binary(Op.MUL, "x", "half", "y")],
    {"half": T.constant(np.float32(0.5)), "y": VECTOR},
)
COUNTED: Piece = (
    [*of_counter("real")[0], binary(Op.ADD, "x", "real", "y")],
    {**of_counter("real")[1], "y": VECTOR},
)
READ, STACK = reading("xs", "row"), as_row("y", "line")
WRITE, UPDATE = writing("table", "line", "new"), updating("table", "line", "new")
BOTH = {"x": "y", "table": "new"}
PRODUCT: Piece = (
    [
        *as_row("row", "input")[0],
        Node(Op.FULLY_CONNECTED, ["input", "w", None], ["line"], FullyConnectedOptions()),
    ],
    {
        **as_row("row", "input")[1],
        "w": T.constant(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)).astype(np.float32)),
        "line": T((1, WIDTH)),
    },
)

# Pieces, what else `loop` takes, and how many iterations use rows that are there.
LOOPS = {
    "sum of rows": ((READ, SUM), {"x": "y"}, ROWS),
    "running sums in a list": ((READ, SUM, STACK, WRITE), BOTH, ROWS),
    "rows by STRIDED_SLICE": ((slicing("xs", "row"), SUM, STACK, WRITE), BOTH, ROWS),
    "DYNAMIC_UPDATE_SLICE": ((READ, SUM, STACK, UPDATE), BOTH, ROWS),
    "from the second row": ((READ, SUM, STACK, WRITE), BOTH | {"start": 2}, ROWS),
    "a list of what is read alone": ((READ, as_row("row", "line"), WRITE), {"table": "new"}, ROWS),
    "products of all rows": ((READ, PRODUCT, WRITE), {"table": "new"}, ROWS),
    "the row before": ((READ, as_row("x", "line"), WRITE), {"x": "row", "table": "new"}, ROWS),
    "the counter as a number": ((COUNTED, STACK, WRITE), BOTH, ROWS),
    "without rows": ((SCALED,), {"x": "y"}, 100),
    "the sum of counters": ((COUNTED,), {"x": "y"}, 100),
}


def counts(most: int) -> list[int]:
    return [most, 1, 0, 3, -2, -(2**31), 2, most]


def without_if(model: bytes) -> Interpreter:
    """An interpreter whose loops are Loops."""
    with patch.object(bounded_loop, "of_unknown_count", lambda *_: None):
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
    return interpreter


def check_as_a_loop(model: bytes, invokes: list[list[Array]]) -> None:
    """As LiteRT and numpy, as a Loop, and exported."""
    mine, plain = check_invokes(model, invokes, {"ort"}), without_if(model)
    check_otherwise(model, invokes, mine, plain)


@pytest.mark.parametrize("name", LOOPS)
def test_a_count_that_is_an_input(name: str) -> None:
    pieces, options, most = LOOPS[name]
    model = loop(*pieces, until=None, **options)
    (fed,) = feeds(count=1)
    check_as_a_loop(model, [[*fed, np.array(n, np.int32)] for n in counts(most)])
    (branches,) = [node for node in export_onnx(model).graph.node if node.op_type == "If"]
    for attribute in branches.attribute:
        loops = [node for node in every_node(attribute.g) if node.op_type == "Loop"]
        assert len(loops) == (attribute.name == "else_branch")


@pytest.mark.parametrize("name", LOOPS)
def test_a_known_count_beyond_all_rows_has_no_branches(name: str) -> None:
    """ONNX Runtime would write down the numbers of all iterations as it makes the session."""
    pieces, options, _ = LOOPS[name]
    exported = export_onnx(loop(*pieces, until=2**26, **options))
    assert not {"If", "Range"} & {node.op_type for node in every_node(exported.graph)}


@given(
    name=st.sampled_from(sorted(LOOPS)),
    start=st.integers(0, ROWS - 1),
    n=st.integers(-3, ROWS),
    seed=st.integers(0, 2**32 - 1),
)
def test_as_with_a_known_count(name: str, start: int, n: int, seed: int) -> None:
    pieces, options, _ = LOOPS[name]
    options = options | {"start": start}
    (fed,) = feeds(seed, 1)
    results = []
    for until, more in ((n, []), (None, [np.array(n, np.int32)])):
        interpreter = Interpreter(model_content=loop(*pieces, until=until, **options))
        interpreter.allocate_tensors()
        results.append(invoked(interpreter, [*fed, *more]))
    for want, got in zip(*results, strict=True):
        assert_close(got, want, 0, 1e-6, "known")


@pytest.mark.parametrize(
    "name",
    [
        "sum of rows",
        "running sums in a list",
        "products of all rows",
        "the counter as a number",
    ],
)
def test_rows_that_are_not_there(name: str) -> None:
    """LiteRT refuses them when it runs, and so do we; the next invoke is right."""
    pieces, options, most = LOOPS[name]
    model = loop(*pieces, until=None, **options)
    (fed,) = feeds(count=1)
    theirs, mine = litert_interpreter(model, "reference"), Interpreter(model_content=model)
    for interpreter, errors in ((theirs, RuntimeError), (mine, DelegateError)):
        interpreter.allocate_tensors()
        with pytest.raises(errors):
            invoked(interpreter, [*fed, np.array(most + 1, np.int32)])
    few = [*fed, np.array(2, np.int32)]
    fresh = litert_interpreter(model, "reference")
    fresh.allocate_tensors()
    for want, got in zip(invoked(fresh, few), invoked(mine, few), strict=True):
        assert_close(got, want, 0, 1e-5, "after an error")


def bounded_by(integer: type[Integer], step: int, changes: bool, first: int = 5) -> bytes:
    """i and k from 0 and `first` by 1 and `step` while i < n, and x + k; n is an input.

    Args:
        changes: the body takes 1 from n.
    """
    t = T((), TensorType.INT64 if integer is np.int64 else TensorType.INT32)
    state = {"i": t, "k": COUNT, "n": t, "x": VECTOR}
    made = {f"o{name}": tensor for name, tensor in state.items()}
    one = T.constant(np.array(1, integer))
    starts = {"i": T.constant(np.array(0, integer)), "k": number(first)}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    main = Sub(state | starts | made, [node], ["n", "x"], ["oi", "ok", "on", "ox"])
    condition = Sub(state | {"t": FLAG}, [Node(Op.LESS, ["i", "n"], ["t"])], list(state), ["t"])
    pieces = of_counter("real")[1] | {"j": t, "l": COUNT, "m": t, "y": VECTOR, "one": one}
    nodes = [
        Node(Op.ADD, ["i", "one"], ["j"], AddOptions()),
        Node(Op.ADD, ["k", "step"], ["l"], AddOptions()),
        Node(Op.CAST, ["k"], ["real"], of_counter("real")[0][0].options),
        binary(Op.ADD, "x", "real", "y"),
    ]
    if changes:
        nodes.append(Node(Op.SUB, ["n", "one"], ["m"], SubOptions()))
    body = Sub(
        state | pieces | {"step": number(step)},
        nodes,
        list(state),
        ["j", "l", "m" if changes else "n", "y"],
    )
    return model_of(main, condition, body)


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (bounded_by(np.int32, 2, changes=True), np.int32),
        (bounded_by(np.int64, 2, changes=False), np.int64),
    ],
)
def test_what_no_count_says_stays_a_loop(model: bytes, n: type[Integer]) -> None:
    """A bound that the body changes, and one that is no 32-bit integer."""
    exported = export_onnx(model)
    assert "If" not in {node.op_type for node in exported.graph.node}
    x = np.array([1, 2, 3], np.float32)
    check_invokes(model, [[np.array(k, n), x] for k in (4, 0, 9, -1)])


def test_a_counter_that_runs_over_in_some_counts() -> None:
    """Such counts run as a Loop, in which it starts anew at the lowest number."""
    model = bounded_by(np.int32, 2**28, changes=False, first=2**30)
    x = np.array([1, 2, 3], np.float32)
    check_as_a_loop(model, [[np.array(k, np.int32), x] for k in (4, 0, 9, 1, 3)])


STATE = {"i": COUNT, "x": VECTOR, "xs": TABLE, "n": COUNT}
COUNTS = {"zero": number(0), "one": number(1), "three": number(3), "j": COUNT, "t": FLAG}
# x / 2 + xs[i] while i < n.
HALVES = (
    Sub(STATE | COUNTS, [Node(Op.LESS, ["i", "n"], ["t"])], list(STATE), ["t"]),
    Sub(
        STATE | COUNTS | READ[1] | SCALED[1] | {"sum": VECTOR},
        [
            *(*READ[0], *SCALED[0]),
            binary(Op.ADD, "y", "row", "sum"),
            binary(Op.ADD, "i", "one", "j"),
        ],
        list(STATE),
        ["j", "sum", "xs", "n"],
    ),
)


def repeated(inputs: list[str], made: str, subgraph: int = 1) -> tuple[Node, dict[str, T]]:
    """A loop over `inputs`, and the tensors that it makes, whose names begin with `made`."""
    outputs = {f"{made}{name}": tensor for name, tensor in STATE.items()}
    return Node(Op.WHILE, inputs, list(outputs), WhileOptions(subgraph, subgraph + 1)), outputs


def nested(bound: str, known: bool) -> bytes:
    """HALVES for the count `bound`, n, i or i + 1, while i < n, or three times."""
    outer, made = repeated(list(STATE), "o", 3)
    inner, last = repeated(["zero", "x", "xs", bound], "o")
    test = Node(Op.LESS, ["i", "three" if known else "n"], ["t"])
    nodes = [binary(Op.ADD, "i", "one", "j"), inner]
    return model_of(
        Sub(STATE | made | {"i": number(0)}, [outer], ["x", "xs", "n"], ["oi", "ox"]),
        *HALVES,
        Sub(STATE | COUNTS, [test], list(STATE), ["t"]),
        Sub(STATE | COUNTS | last, nodes, list(STATE), ["j", "ox", "xs", "n"]),
    )


def in_a_row() -> bytes:
    first, made = repeated(["zero", "x", "xs", "n"], "first ")
    second, last = repeated(["zero", "first x", "xs", "n"], "second ")
    tensors = STATE | COUNTS | made | last
    return model_of(Sub(tensors, [first, second], ["x", "xs", "n"], ["second x"]), *HALVES)


def of_one_size(*, captured: bool) -> bytes:
    """Two loops in a row of x / 2 + 1 / 2, the second perhaps of y x + x; neither reads rows."""
    state = {"i": COUNT, "x": VECTOR, "y": VECTOR, "n": COUNT}
    made = {f"{loop} {name}": t for loop in ("first", "second") for name, t in state.items()}
    first, second = list(made)[:4], list(made)[4:]
    again = ["zero", "first x", "y" if captured else "first y", "n"]
    nodes = [
        Node(Op.WHILE, ["zero", "x", "y", "n"], first, WhileOptions(1, 2)),
        Node(Op.WHILE, again, second, WhileOptions(1, 3 if captured else 2)),
    ]
    tensors = state | COUNTS | {"half": SCALED[1]["half"], "h": VECTOR, "sum": VECTOR}
    step = binary(Op.ADD, "i", "one", "j")
    halves = [step, binary(Op.MUL, "x", "half", "h"), binary(Op.ADD, "h", "half", "sum")]
    sums = [step, binary(Op.MUL, "y", "x", "h"), binary(Op.ADD, "h", "x", "sum")]
    return model_of(
        Sub(tensors | made, nodes, ["x", "y", "n"], second[1:3]),
        Sub(tensors, [Node(Op.LESS, ["i", "n"], ["t"])], list(state), ["t"]),
        Sub(tensors, halves, list(state), ["j", "sum", "y", "n"]),
        Sub(tensors, sums, list(state), ["j", "x", "sum", "n"]),
    )


@pytest.mark.parametrize("captured", [False, True])
def test_loops_without_rows_in_a_row(captured: bool) -> None:
    x, _, xs = feeds(count=1)[0]
    invokes = [[x, xs[0], np.array(n, np.int32)] for n in (3, 0, 1, 70, -2)]
    check_as_a_loop(of_one_size(captured=captured), invokes)


@pytest.mark.parametrize(
    "model",
    [in_a_row(), *(nested(bound, known) for bound in ("n", "i", "j") for known in (False, True))],
)
def test_a_loop_after_a_loop(model: bytes) -> None:
    """ONNX Runtime infers no shape of what the first one makes, which the second starts with."""
    x, _, xs = feeds(count=1)[0]
    invokes = [[x, xs, np.array(n, np.int32)] for n in (3, 0, 1, ROWS, -2)]
    check_as_a_loop(model, invokes)
