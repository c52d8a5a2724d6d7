"""IF, WHILE, CALL_ONCE, CALL and STABLEHLO_CASE against LiteRT: in ONNX Runtime, in numpy with
bodies in ONNX Runtime, all in numpy, and exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import ExecutionProviderDelegate, Interpreter, ModelError, export_onnx
from tflite_ort.schema import (
    AddOptions,
    CallOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    IfOptions,
    MulOptions,
    Op,
    ReshapeOptions,
    StablehloCaseOptions,
    SubOptions,
    TensorType,
    WhileOptions,
)

Array = npt.NDArray[Any]

X = T((3,))
FLAG, COUNT = T((), TensorType.BOOL), T((), TensorType.INT32)
ONE = T.constant(np.int32(1))
CODES = T((3,), TensorType.INT8, scale=0.5, zero_point=-3)
OTHER_CODES = T((3,), TensorType.INT8, scale=0.25, zero_point=5)

OPTIONS = {Op.ADD: AddOptions, Op.MUL: MulOptions, Op.SUB: SubOptions}


def binary(op: Op, a: str, b: str, result: str) -> Node:
    return Node(op, [a, b], [result], OPTIONS[op]())


def joined(a: str, b: str, result: str) -> Node:
    return Node(Op.CONCATENATION, [a, b], [result], ConcatenationOptions(axis=0))


def function(op: Op, t: T = X) -> Sub:
    """r = op(a, b)."""
    return Sub({"a": t, "b": t, "r": t}, [binary(op, "a", "b", "r")], ["a", "b"], ["r"])


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def choice(
    *branches: Sub, results: Sequence[str] = ("z",), flag: T = FLAG, t: T = X, out: T = X
) -> bytes:
    """results = (then if c else otherwise)(x, y), and (c, x, y) are the inputs."""
    tensors = {"c": flag, "x": t, "y": t} | dict.fromkeys(results, out)
    options = IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    node = Node(Op.IF, ["c", "x", "y"], list(results), options)
    return model_of(Sub(tensors, [node], ["c", "x", "y"], list(results)), *branches)


def loop(
    body: Sub, *called: Sub, start: T = X, outputs: Sequence[str] = ("oi", "ox"), out: T = X
) -> bytes:
    """i, x = body(i, n, x) while i < n; (i, n, x) are the inputs."""
    state, results = ["i", "n", "x"], ["oi", "on", "ox"]
    tensors = dict.fromkeys(("i", "n", "oi", "on"), COUNT) | {"x": start, "ox": out}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Sub(tensors, [Node(Op.WHILE, state, results, options)], state, outputs)
    types = {"i": COUNT, "n": COUNT, "x": start, "t": FLAG}
    condition = Sub(types, [Node(Op.LESS, ["i", "n"], ["t"])], state, ["t"])
    return model_of(main, condition, body, *called)


def body(nodes: Sequence[Node], result: str = "y", t: T = X, **tensors: T) -> Sub:
    """i + 1, n and what `nodes` make of x."""
    given = {"i": COUNT, "n": COUNT, "x": t, "one": ONE, "j": COUNT, **tensors}
    count = binary(Op.ADD, "i", "one", "j")
    return Sub(given, [count, *nodes], ["i", "n", "x"], ["j", "n", result])


def iterations(*counts: int, x: Array | None = None) -> list[list[Array]]:
    given = floats(1, 2, 3) if x is None else x
    return [[np.zeros((), np.int32), np.array(n, np.int32), given] for n in counts]


def feeds(*flags: Any, dtype: Any = np.float32) -> list[list[Array]]:
    x, y = np.array([1, 2, 3], dtype), np.array([4, 5, 6], dtype)
    return [[np.asarray(flag), x, y] for flag in flags]


HALF = T.constant(floats(0.5, 0.25, 0.125))
INNER = WhileOptions(cond_subgraph_index=3, body_subgraph_index=4)
INNER_LOOP = (
    Sub(
        {"i": COUNT, "x": X, "n": T.constant(np.int32(3)), "t": FLAG},
        [Node(Op.LESS, ["i", "n"], ["t"])],
        ["i", "x"],
        ["t"],
    ),
    Sub(
        {"i": COUNT, "x": X, "one": ONE, "half": HALF, "j": COUNT, "y": X},
        [binary(Op.ADD, "i", "one", "j"), binary(Op.ADD, "x", "half", "y")],
        ["i", "x"],
        ["j", "y"],
    ),
)
SQUARE = Sub({"x": X, "y": X}, [binary(Op.MUL, "x", "x", "y")], ["x"], ["y"])
ADD_HALF = Sub({"x": X, "half": HALF, "y": X}, [binary(Op.ADD, "x", "half", "y")], ["x"], ["y"])

MODELS: dict[str, tuple[bytes, list[list[Array]]]] = {
    "if": (choice(function(Op.ADD), function(Op.MUL)), feeds(True, False, True)),
    "if of a vector": (
        choice(function(Op.ADD), function(Op.MUL), flag=T((1,), TensorType.BOOL)),
        feeds([True], [False]),
    ),
    "if of codes": (
        choice(function(Op.ADD, CODES), function(Op.SUB, CODES), t=CODES, out=CODES),
        feeds(True, False, dtype=np.int8),
    ),
    "if of codes that branches read with another scale": (
        choice(function(Op.ADD, OTHER_CODES), function(Op.SUB, CODES), t=CODES, out=CODES),
        feeds(True, False, dtype=np.int8),
    ),
    "if that hands on inputs and constants": (
        choice(
            Sub({"a": X, "b": X}, [], ["a", "b"], ["b", "a"]),
            Sub({"a": X, "b": X, "k": T.constant(floats(7, 8, 9))}, [], ["a", "b"], ["k", "a"]),
            results=("z", "w"),
        ),
        feeds(True, False),
    ),
    "if whose branches make different shapes": (
        choice(
            Sub(
                {"a": X, "b": X, "r": T((6,))},
                [joined("a", "b", "r")],
                ["a", "b"],
                ["r"],
            ),
            function(Op.MUL),
        ),
        feeds(True, False, True),
    ),
    "while": (
        loop(body([binary(Op.ADD, "x", "x", "y")], y=X)),
        iterations(3, 0, 5),
    ),
    "while of codes": (
        loop(body([binary(Op.ADD, "x", "x", "y")], y=CODES, t=CODES), start=CODES, out=CODES),
        iterations(2, 0, x=np.array([1, -2, 3], np.int8)),
    ),
    "while that grows its state": (
        loop(body([joined("x", "k", "y")], k=T.constant(floats(9)), y=T((4,)))),
        iterations(3, 0, 5),
    ),
    "while in a while": (
        loop(
            body(
                [Node(Op.WHILE, ["zero", "x"], ["k", "y"], INNER)],
                zero=T.constant(np.int32(0)),
                k=COUNT,
                y=X,
            ),
            *INNER_LOOP,
        ),
        iterations(3, 0, 5),
    ),
    "if in a while": (
        loop(
            body(
                [
                    Node(Op.EQUAL, ["i", "one"], ["c"]),
                    Node(Op.IF, ["c", "x"], ["y"], IfOptions(3, 4)),
                ],
                c=FLAG,
                y=X,
            ),
            SQUARE,
            ADD_HALF,
        ),
        iterations(3, 0, 5),
    ),
}
RNG = np.random.default_rng(0)
ROWS, WEIGHTS = T((2, 32)), T((32, 32))
GIVEN_WEIGHTS = T.constant(RNG.normal(scale=0.1, size=(32, 32)).astype(np.float32))
MODELS["while with weights in its body"] = (
    loop(
        body(
            [Node(Op.FULLY_CONNECTED, ["x", "w", None], ["y"], FullyConnectedOptions())],
            w=GIVEN_WEIGHTS,
            y=ROWS,
            t=ROWS,
        ),
        start=ROWS,
        out=ROWS,
    ),
    iterations(3, 0, x=np.ones((2, 32), np.float32)),
)


def loop_that_hands_on_its_weights() -> bytes:
    """They are constant outside of the loop alone."""
    state = {"i": COUNT, "n": COUNT, "x": ROWS, "w": WEIGHTS}
    given = state | {"w": GIVEN_WEIGHTS, "oi": COUNT, "on": COUNT, "ox": ROWS, "ow": WEIGHTS}
    node = Node(Op.WHILE, list(state), ["oi", "on", "ox", "ow"], WhileOptions(1, 2))
    condition = Node(Op.LESS, ["i", "n"], ["t"])
    nodes = [
        binary(Op.ADD, "i", "one", "j"),
        Node(Op.FULLY_CONNECTED, ["x", "w", None], ["y"], FullyConnectedOptions()),
    ]
    return model_of(
        Sub(given, [node], ["i", "n", "x"], ["ox"]),
        Sub(state | {"t": FLAG}, [condition], list(state), ["t"]),
        Sub(state | {"one": ONE, "j": COUNT, "y": ROWS}, nodes, list(state), ["j", "n", "y", "w"]),
    )


def loop_while_a_flag_holds(flag: T) -> bytes:
    """The flag is part of the state, and all that the condition says."""
    state = {"c": flag, "i": COUNT, "n": COUNT}
    less = Node(Op.LESS, ["j", "n"], ["d"])
    shaped = Node(Op.RESHAPE, ["d", "s"], ["e"], ReshapeOptions())
    sizes = T.constant(np.array(flag.shape, np.int32))
    tensors = state | {"one": ONE, "j": COUNT, "d": FLAG, "s": sizes, "e": flag}
    nodes = [binary(Op.ADD, "i", "one", "j"), less, shaped]
    node = Node(Op.WHILE, list(state), ["oc", "oi", "on"], WhileOptions(1, 2))
    return model_of(
        Sub(state | {"oc": flag, "oi": COUNT, "on": COUNT}, [node], list(state), ["oi", "oc"]),
        Sub(state, [], list(state), ["c"]),
        Sub(tensors, nodes, list(state), ["e", "j", "n"]),
    )


for shape in ((), (1,)):
    MODELS[f"while a flag of shape {shape} holds"] = (
        loop_while_a_flag_holds(T(shape, TensorType.BOOL)),
        [
            [np.full(shape, flag), np.zeros((), np.int32), np.array(count, np.int32)]
            for flag, count in ((True, 3), (False, 3), (True, 0))
        ],
    )
MODELS["while that hands on its weights"] = (
    loop_that_hands_on_its_weights(),
    iterations(3, 0, x=np.ones((2, 32), np.float32)),
)
CPU = "CPUExecutionProvider"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_litert_gives(name: str) -> None:
    check_invokes(*MODELS[name], runs_on={"ort"})


@pytest.mark.parametrize("refused", [Op.ADD, Op.MUL, Op.IF, Op.CONCATENATION])
@pytest.mark.parametrize("name", MODELS)
def test_a_body_that_is_not_taken_is_driven_from_outside(name: str, refused: Op) -> None:
    model, invokes = MODELS[name]
    delegate = ExecutionProviderDelegate(CPU, max_versions={refused: 0})
    whole, driven = Interpreter(model_content=model), None
    driven = Interpreter(model_content=model, providers=[delegate])
    whole.allocate_tensors()
    driven.allocate_tensors()
    for given in invokes:
        for want, got in zip(invoked(whole, given), invoked(driven, given), strict=True):
            assert_close(got, want, 1, 1e-6, name)
    for row in driven.delegation():
        if row.operator == refused.name:
            assert row.runs_on == "numpy"


@pytest.mark.parametrize("name", ["if", "while", "while that grows its state"])
def test_inputs_can_be_resized(name: str) -> None:
    model, invokes = MODELS[name]
    rng = np.random.default_rng(0)
    resized = [
        [x if x.ndim == 0 else rng.normal(size=size).astype(np.float32) for x in given]
        for size in (3, 5, 3, 1)
        for given in invokes
    ]
    check_invokes(model, resized)


def test_branches_of_other_ranks_leave_what_follows_to_numpy() -> None:
    row = T((1, 3))
    tensors = {"a": X, "b": X, "s": T.constant(np.array([1, 3], np.int32)), "r": row}
    reshaping = Node(Op.RESHAPE, ["a", "s"], ["r"], ReshapeOptions())
    branches = [function(Op.ADD), Sub(tensors, [reshaping], ["a", "b"], ["r"])]
    nodes = [Node(Op.IF, ["c", "x", "y"], ["z"], IfOptions(1, 2)), binary(Op.ADD, "z", "x", "w")]
    main = Sub({"c": FLAG, "x": X, "y": X, "z": X, "w": X}, nodes, ["c", "x", "y"], ["w"])
    interpreter = check_invokes(model_of(main, *branches), feeds(True, False, True))
    reasons = {row.reason for row in interpreter.delegation() if row.subgraph == 0}
    assert reasons == {"a rank depends on data"}


def test_the_reason_names_the_operator_in_the_body() -> None:
    model, _ = MODELS["if in a while"]
    delegate = ExecutionProviderDelegate(CPU, max_versions={Op.MUL: 0})
    interpreter = Interpreter(model_content=model, providers=[delegate])
    interpreter.allocate_tensors()
    rows = {(row.subgraph, row.operator): row for row in interpreter.delegation()}
    assert "MUL_0 of subgraph 3: CPUExecutionProvider takes MUL" in rows[0, "WHILE"].reason
    assert rows[2, "EQUAL"].runs_on == rows[4, "ADD"].runs_on == "ort"
    assert rows[2, "IF"].runs_on == rows[3, "MUL"].runs_on == "numpy"


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_gives_the_same(name: str) -> None:
    model, invokes = MODELS[name]
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for given in invokes:
        named = {v.name: x for v, x in zip(session.get_inputs(), given, strict=True)}
        for got, want in zip(session.run(None, named), invoked(interpreter, given), strict=True):
            assert_close(got, want, 0, 1e-6, name)


@pytest.mark.parametrize("index", [0, 1, 2, 3, -1, 99])
def test_case_takes_the_last_branch_for_an_index_that_none_has(index: int) -> None:
    options = StablehloCaseOptions(branch_subgraph_indices=(1, 2, 3))
    main = Sub(
        {"c": COUNT, "x": X, "y": X, "z": X},
        [Node(Op.STABLEHLO_CASE, ["c", "x", "y"], ["z"], options)],
        ["c", "x", "y"],
        ["z"],
    )
    model = model_of(main, function(Op.ADD), function(Op.MUL), function(Op.SUB))
    check_invokes(model, feeds(np.int32(index)), {"ort"}, kernels="default")


def test_a_call_is_inlined() -> None:
    """TFLite has no kernel for CALL."""
    call = CallOptions(subgraph=1)
    main = Sub(
        {"x": X, "y": X, "z": X, "w": X},
        [Node(Op.CALL, ["x", "y"], ["z"], call), Node(Op.CALL, ["z", "y"], ["w"], call)],
        ["x", "y"],
        ["w"],
    )
    interpreter = Interpreter(model_content=model_of(main, function(Op.ADD)))
    interpreter.allocate_tensors()
    (result,) = invoked(interpreter, [floats(1, 2, 3), floats(4, 5, 6)])
    np.testing.assert_array_equal(result, floats(9, 12, 15))
    assert [row.operator for row in interpreter.delegation()] == ["ADD", "ADD"]


# What LiteRT gives here depends on memory that another tensor uses too.


@pytest.mark.parametrize("providers", [None, []])
def test_a_loop_can_swap_its_state(providers: list[Any] | None) -> None:
    state = {"i": COUNT, "n": COUNT, "x": X, "y": X}
    names = list(state)
    main = Sub(
        state | {"oi": COUNT, "on": COUNT, "ox": X, "oy": X},
        [Node(Op.WHILE, names, ["oi", "on", "ox", "oy"], WhileOptions(1, 2))],
        names,
        ["ox", "oy"],
    )
    condition = Sub(state | {"t": FLAG}, [Node(Op.LESS, ["i", "n"], ["t"])], names, ["t"])
    swap = Sub(
        state | {"one": ONE, "j": COUNT},
        [binary(Op.ADD, "i", "one", "j")],
        names,
        ["j", "n", "y", "x"],
    )
    interpreter = Interpreter(model_content=model_of(main, condition, swap), providers=providers)
    interpreter.allocate_tensors()
    x, y = floats(1, 2, 3), floats(4, 5, 6)
    for count in (0, 1, 2, 3):
        got = invoked(interpreter, [np.int32(0), np.int32(count), x, y])
        np.testing.assert_array_equal(got, [y, x] if count % 2 else [x, y])


@pytest.mark.parametrize("providers", [None, []])
def test_a_branch_can_give_a_tensor_twice(providers: list[Any] | None) -> None:
    twice = Sub({"a": X, "b": X, "r": X}, [binary(Op.ADD, "a", "b", "r")], ["a", "b"], ["r", "r"])
    other = Sub({"a": X, "b": X}, [], ["a", "b"], ["a", "a"])
    model = choice(twice, other, results=("z", "w"))
    interpreter = Interpreter(model_content=model, providers=providers)
    interpreter.allocate_tensors()
    for flag, want in ((True, floats(5, 7, 9)), (False, floats(1, 2, 3))):
        for got in invoked(interpreter, feeds(flag)[0]):
            np.testing.assert_array_equal(got, want)


# Refused -----------------------------------------------------------------------------------------

RECURSIVE = Sub(
    {"a": X, "b": X, "c": T.constant(np.bool_(True)), "r": X},
    [Node(Op.IF, ["c", "a", "b"], ["r"], IfOptions(1, 2))],
    ["a", "b"],
    ["r"],
)
REFUSED = {
    "recursion": (choice(RECURSIVE, function(Op.MUL)), "subgraph 1 calls itself"),
    "arity": (
        choice(function(Op.ADD), Sub({"a": X, "r": X}, [], ["a"], ["a"])),
        "IF_0: subgraph 2 maps 1 tensors to 1, expected 2 to 1",
    ),
    "selector": (choice(function(Op.ADD), function(Op.MUL), flag=COUNT), "IF_0 needs a BOOL first"),
    "several selectors": (
        choice(function(Op.ADD), function(Op.MUL), flag=T((2,), TensorType.BOOL)),
        "told where to go by shape [2]",
    ),
    "type": (
        choice(function(Op.ADD), Sub({"a": X, "b": X, "k": ONE}, [], ["a", "b"], ["k"])),
        "subgraph 2 makes INT32, expected FLOAT32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_body_that_does_not_fit_is_refused(name: str) -> None:
    model, message = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        Interpreter(model_content=model).allocate_tensors()
    assert message in str(caught.value)
