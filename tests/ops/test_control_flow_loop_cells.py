"""Loops whose body is a recurrent cell, as Keras and TensorFlow 1 write it, against LiteRT: a node
of ONNX where they are one, and the same numbers where they only look like one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    GatherOptions,
    MulOptions,
    Op,
    ReshapeOptions,
    SplitOptions,
    SubOptions,
    TensorType,
    WhileOptions,
)

Array = npt.NDArray[Any]

COUNT, FLAG = T((), TensorType.INT32), T((), TensorType.BOOL)
RELU = ActivationFunctionType.RELU
TANH = ActivationFunctionType.TANH


@dataclass
class Body:
    """A loop's body over x [B, K], and states of [B, N]; weights are drawn."""

    rng: np.random.Generator
    batch: int = 2
    inputs: int = 4
    units: int = 3
    tensors: dict[str, T] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def made(self, op: Op, *inputs: str, options: Any = None, width: int | None = None) -> str:
        name = f"{op.name} {len(self.nodes)}"
        self.tensors[name] = T((self.batch, width or self.units))
        self.nodes.append(Node(op, list(inputs), [name], options))
        return name

    def constant(self, values: npt.ArrayLike) -> str:
        name = f"constant {len(self.tensors)}"
        self.tensors[name] = T.constant(np.asarray(values, np.float32))
        return name

    def add(self, a: str, b: str, fused: Any = ActivationFunctionType.NONE) -> str:
        return self.made(Op.ADD, a, b, options=AddOptions(fused_activation_function=fused))

    def mul(self, a: str, b: str) -> str:
        return self.made(Op.MUL, a, b, options=MulOptions())

    def rest(self, a: str) -> str:
        """1 - a."""
        return self.made(Op.SUB, self.constant(1.0), a, options=SubOptions())

    def product(self, source: str, parts: int = 1, columns: int = 0, biased: bool = True) -> str:
        """A FULLY_CONNECTED of `source` with `parts` times as many units as a state."""
        columns = columns or (self.inputs if source == "x" else self.units)
        width = parts * self.units
        weights = self.constant(self.rng.normal(scale=0.5, size=(width, columns)))
        bias = self.constant(self.rng.normal(size=width)) if biased else None
        name = f"product {len(self.nodes)}"
        self.tensors[name] = T((self.batch, width))
        inputs = [source, weights, bias]
        self.nodes.append(Node(Op.FULLY_CONNECTED, inputs, [name], FullyConnectedOptions()))
        return name

    def joined(self, *sources: str) -> str:
        width = self.inputs + self.units
        return self.made(
            Op.CONCATENATION, *sources, options=ConcatenationOptions(axis=1), width=width
        )

    def split(self, source: str, parts: int) -> list[str]:
        axis, names = f"axis {len(self.nodes)}", [f"{source}/{k}" for k in range(parts)]
        self.tensors |= {axis: T.constant(np.int32(1))}
        self.tensors |= dict.fromkeys(names, T((self.batch, self.units)))
        options = SplitOptions(num_splits=parts)
        self.nodes.append(Node(Op.SPLIT, [axis, source], names, options))
        return names

    def gates(self, parts: int) -> list[str]:
        """Sums of products of x and h."""
        of_x = self.split(self.product("x", parts), parts)
        of_h = self.split(self.product("h", parts, biased=False), parts)
        return [self.add(a, b) for a, b in zip(of_x, of_h, strict=True)]

    def model(self, states: dict[str, str], steps: int, listed: str, known: bool = True) -> bytes:
        """The loop over `steps` rows of xs, which ends with the last states and a list of `listed`.

        Args:
            states: by name of a state, its next value.
            known: the loop is over all rows; otherwise the last input says over how many.
        """
        xs = T((steps, self.batch, self.inputs))
        row, table = T((1, self.batch, self.units)), T((steps, self.batch, self.units))
        state = {"i": COUNT, "list": table, "xs": xs}
        state |= dict.fromkeys(states, T((self.batch, self.units)))
        bound = {"n": T.constant(np.int32(steps)), "t": FLAG}
        last = [] if known else ["n"]
        if not known:
            state["n"] = bound["n"] = COUNT
        made = {f"o{name}": t for name, t in state.items()}
        main = Sub(
            state | made | {"i": T.constant(np.int32(0))},
            [Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))],
            list(state)[1:],
            ["olist", *(f"o{name}" for name in states)],
        )
        test = [Node(Op.LESS, ["i", "n"], ["t"])]
        integers = [T.constant(np.array(k, np.int32)) for k in (1, [1], [0, 0], row.shape)]
        tensors = state | dict(zip(("one", "once", "zeros", "row"), integers, strict=True))
        tensors |= {"j": COUNT, "at": T((1,), TensorType.INT32), "place": T((3,), TensorType.INT32)}
        tensors |= {"x": T((self.batch, self.inputs)), "line": row, "new": table}
        nodes = [
            Node(Op.ADD, ["i", "one"], ["j"], AddOptions()),
            Node(Op.GATHER, ["xs", "i"], ["x"], GatherOptions()),
            *self.nodes,
            Node(Op.RESHAPE, ["i", "once"], ["at"], ReshapeOptions()),
            Node(Op.CONCATENATION, ["at", "zeros"], ["place"], ConcatenationOptions(axis=0)),
            Node(Op.RESHAPE, [listed, "row"], ["line"], ReshapeOptions()),
            Node(Op.DYNAMIC_UPDATE_SLICE, ["list", "line", "place"], ["new"]),
        ]
        after = ["j", "new", "xs", *states.values(), *last]
        body = Sub(tensors | self.tensors, nodes, list(state), after)
        return model_of(main, Sub(state | bound, test, list(state), ["t"]), body)


def rnn(b: Body, activation: Op) -> dict[str, str]:
    (gate,) = b.gates(1)
    return {"h": b.made(activation, gate)}


def rnn_of_both(b: Body, _: Op) -> dict[str, str]:
    """One product of input and state side by side, and a fused activation."""
    product = b.product(b.joined("x", "h"), columns=b.inputs + b.units)
    return {"h": b.add(product, b.constant(np.zeros(b.units)), RELU)}


def gru_after(b: Body, activation: Op) -> dict[str, str]:
    """Keras: the reset gate acts on the product of the state."""
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = (b.made(Op.LOGISTIC, b.add(x[k], h[k])) for k in (0, 1))
    c = b.made(activation, b.add(x[2], b.mul(r, h[2])))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def gru_fused(b: Body, _: Op) -> dict[str, str]:
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = (b.made(Op.LOGISTIC, b.add(h[k], x[k])) for k in (0, 1))
    c = b.add(b.mul(h[2], r), x[2], RELU)
    return {"h": b.add(b.mul(c, b.rest(z)), b.mul("h", z))}


def gru_before(b: Body, activation: Op) -> dict[str, str]:
    """TensorFlow 1: gates of input and state side by side, the reset gate acts on the state."""
    sides, width = b.joined("x", "h"), b.inputs + b.units
    product = b.product(sides, 2, width)
    r, u = b.split(b.made(Op.LOGISTIC, product, width=2 * b.units), 2)
    c = b.made(activation, b.product(b.joined("x", b.mul(r, "h")), columns=width))
    return {"h": b.add(b.mul(u, "h"), b.mul(b.rest(u), c))}


def gru_exchanged(b: Body, activation: Op) -> dict[str, str]:
    """The gate says how much is new."""
    z, r = (b.made(Op.LOGISTIC, gate) for gate in b.gates(2))
    c = b.made(activation, b.add(b.product("x"), b.product(b.mul("h", r))))
    return {"h": b.add(b.mul(b.rest(z), "h"), b.mul(z, c))}


def lstm(b: Body, activation: Op) -> dict[str, str]:
    gates = b.gates(4)
    gates[1] = b.add(gates[1], b.constant(1.0))  # a bias of the forget gate
    i, f, o = (b.made(Op.LOGISTIC, gates[k]) for k in (0, 1, 3))
    c = b.add(b.mul(f, "c"), b.mul(i, b.made(activation, gates[2])))
    return {"h": b.mul(o, b.made(activation, c)), "c": c}


def hard_sigmoid(b: Body, source: str) -> str:
    """As Keras writes it."""
    six = b.add(source, b.constant(3.0), ActivationFunctionType.RELU6)
    return b.mul(six, b.constant(1 / 6))


def hard_gru(b: Body, activation: Op) -> dict[str, str]:
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = (hard_sigmoid(b, b.add(x[k], h[k])) for k in (0, 1))
    c = b.made(activation, b.add(x[2], b.mul(r, h[2])))
    return {"h": b.add(b.mul(b.rest(z), "h"), b.mul(z, c))}


def hard_lstm(b: Body, activation: Op) -> dict[str, str]:
    gates = b.gates(4)
    i, f, o = (hard_sigmoid(b, gates[k]) for k in (0, 1, 3))
    c = b.add(b.mul(f, "c"), b.mul(b.made(activation, gates[2]), i))
    return {"h": b.mul(o, b.made(activation, c)), "c": c}


def clip(b: Body, source: str, form: str) -> str:
    """To [0, 1], as converters write it."""
    steps = {
        "relu last": [(Op.MINIMUM, 1.0), (Op.RELU, None)],
        "relu first": [(Op.RELU, None), (Op.MINIMUM, 1.0)],
        "maximum last": [(Op.MINIMUM, 1.0), (Op.MAXIMUM, 0.0)],
        "maximum first": [(Op.MAXIMUM, 0.0), (Op.MINIMUM, 1.0)],
        "one operator": [(Op.RELU_0_TO_1, None)],
    }
    for op, bound in steps[form]:
        source = b.made(op, source, *([] if bound is None else [b.constant(bound)]))
    return source


def clipped_gru(b: Body, activation: Op, form: str = "relu last", slope: float = 0.2) -> Any:
    """The hard sigmoid of Keras 2."""
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    scaled = [b.mul(b.add(x[k], h[k]), b.constant(slope)) for k in (0, 1)]
    z, r = (clip(b, b.add(each, b.constant(0.5)), form) for each in scaled)
    c = b.made(activation, b.add(x[2], b.mul(r, h[2])))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def linear_after(b: Body, _: Op) -> dict[str, str]:
    """Without an activation of what is new."""
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = (hard_sigmoid(b, b.add(x[k], h[k])) for k in (0, 1))
    c = b.add(x[2], b.mul(r, h[2]))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def linear_before(b: Body, _: Op) -> dict[str, str]:
    z, r = (b.made(Op.LOGISTIC, gate) for gate in b.gates(2))
    c = b.add(b.product("x"), b.product(b.mul(r, "h")))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def wider_clip(b: Body, activation: Op) -> dict[str, str]:
    """As a hard sigmoid, but up to 2."""
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = (b.made(Op.RELU, b.add(x[k], h[k])) for k in (0, 1))
    z, r = (b.made(Op.MINIMUM, each, b.constant(2.0)) for each in (z, r))
    c = b.made(activation, b.add(x[2], b.mul(r, h[2])))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def of_two_kinds(b: Body, activation: Op) -> dict[str, str]:
    """As a GRU, but its gates have different activations."""
    x, h = b.split(b.product("x", 3), 3), b.split(b.product("h", 3), 3)
    z, r = hard_sigmoid(b, b.add(x[0], h[0])), b.made(Op.LOGISTIC, b.add(x[1], h[1]))
    c = b.made(activation, b.add(x[2], b.mul(r, h[2])))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(z), c))}


def two_gates(b: Body, activation: Op) -> dict[str, str]:
    """As a GRU, but what is kept and what is new have gates of their own."""
    z, y = (b.made(Op.LOGISTIC, gate) for gate in b.gates(2))
    c = b.made(activation, b.product("x"))
    return {"h": b.add(b.mul(z, "h"), b.mul(b.rest(y), c))}


def peeping(b: Body, activation: Op) -> dict[str, str]:
    """As an LSTM, but its output gate looks at the state of the cell."""
    i, f, g, o = b.gates(4)
    i, f = (b.made(Op.LOGISTIC, gate) for gate in (i, f))
    c = b.add(b.mul(f, "c"), b.mul(i, b.made(activation, g)))
    return {"h": b.mul(b.made(Op.LOGISTIC, b.add(o, c)), b.made(activation, c)), "c": c}


def twice(b: Body, activation: Op) -> dict[str, str]:
    """The state is an addend, not only in products."""
    (gate,) = b.gates(1)
    return {"h": b.made(activation, b.add(gate, "h"))}


def fused_tanh(b: Body, _: Op) -> dict[str, str]:
    """As an RNN, but TFLite's ADD does not look at the TANH fused to it."""
    return {"h": b.add(b.product("x"), b.product("h"), TANH)}


CELLS = {
    "RNN": [rnn, rnn_of_both],
    "GRU": [
        *(gru_after, gru_before, gru_exchanged, gru_fused, hard_gru, clipped_gru),
        *(linear_after, linear_before),
    ],
    "LSTM": [lstm, hard_lstm],
}
OTHERS = [two_gates, of_two_kinds, peeping, twice, fused_tanh, wider_clip]
FORMS = ("relu last", "relu first", "maximum last", "maximum first", "one operator")


def feeds(b: Body, states: int, steps: int) -> list[list[Array]]:
    shapes = [(steps, b.batch, b.units), (steps, b.batch, b.inputs)]
    shapes += [(b.batch, b.units)] * states
    return [[b.rng.normal(size=s).astype(np.float32) for s in shapes] for _ in range(2)]


def check(model: bytes, invokes: list[list[Array]]) -> set[str]:
    """Against LiteRT, interpreted and exported; the operators of the exported model."""
    interpreter = check_invokes(model, invokes, {"ort"}, kernels="default")
    exported = export_onnx(model)
    onnx.checker.check_model(exported, full_check=True)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    for given_ in invokes:
        named = {v.name: x for v, x in zip(session.get_inputs(), given_, strict=True)}
        for got, want in zip(session.run(None, named), invoked(interpreter, given_), strict=True):
            assert_close(got, want, 0, 1e-5, "exported")
    return {node.op_type for node in exported.graph.node}


@pytest.mark.parametrize("activation", [Op.TANH, Op.RELU, Op.LOGISTIC], ids=lambda op: op.name)
@pytest.mark.parametrize("make", [make for row in CELLS.values() for make in row])
def test_a_cell_is_a_node(make: Any, activation: Op) -> None:
    kind = next(kind for kind, row in CELLS.items() if make in row)
    body = Body(np.random.default_rng(0))
    states = make(body, activation)
    kinds = check(body.model(states, 7, states["h"]), feeds(body, len(states), 7))
    assert kind in kinds
    assert not {"Loop", "Scan"} & kinds


@pytest.mark.parametrize("slope", [0.2, 1.0, -0.5])
@pytest.mark.parametrize("form", FORMS)
def test_any_clip_to_1_is_a_hard_sigmoid(form: str, slope: float) -> None:
    body = Body(np.random.default_rng(0))
    states = clipped_gru(body, Op.TANH, form, slope)
    kinds = check(body.model(states, 7, states["h"]), feeds(body, len(states), 7))
    assert "GRU" in kinds
    assert not {"Loop", "Scan"} & kinds


@pytest.mark.parametrize("make", [*(make for row in CELLS.values() for make in row), *OTHERS])
def test_a_cell_over_as_many_rows_as_an_input_says(make: Any) -> None:
    kind = next((kind for kind, row in CELLS.items() if make in row), "Scan")
    body = Body(np.random.default_rng(0))
    states = make(body, Op.TANH)
    model = body.model(states, 7, states["h"], known=False)
    given_, _ = feeds(body, len(states), 7)
    invokes = [[*given_, np.array(n, np.int32)] for n in (7, 1, 0, 4, -1)]
    assert "If" in check(model, invokes)
    (branches,) = [n for n in export_onnx(model).graph.node if n.op_type == "If"]
    (then,) = [each.g for each in branches.attribute if each.name == "then_branch"]
    kinds = {node.op_type for node in then.node}
    assert kind in kinds
    assert "Loop" not in kinds


@pytest.mark.parametrize("make", OTHERS)
def test_what_only_looks_like_a_cell_is_none(make: Any) -> None:
    body = Body(np.random.default_rng(0))
    states = make(body, Op.TANH)
    kinds = check(body.model(states, 9, states["h"]), feeds(body, len(states), 9))
    assert not {"RNN", "GRU", "LSTM", "Loop"} & kinds


def test_the_state_of_a_cell_may_be_wanted_too() -> None:
    """An LSTM of ONNX does not give it for all iterations."""
    body = Body(np.random.default_rng(0))
    states = lstm(body, Op.TANH)
    assert "LSTM" not in check(body.model(states, 5, states["c"]), feeds(body, 2, 5))


def test_a_cell_on_a_cell() -> None:
    """The second one takes what the first one gives, and the state that it takes."""
    body = Body(np.random.default_rng(0), inputs=3)
    first = rnn(body, Op.TANH)["h"]
    sums = body.add(body.product(first), body.product("k"))
    sums = body.add(sums, body.product("h"))
    states = {"h": first, "k": body.made(Op.TANH, sums)}
    kinds = check(body.model(states, 6, states["k"]), feeds(body, 2, 6))
    assert "RNN" in kinds
    assert not {"Loop", "Scan"} & kinds


def test_rows_that_are_repeated_are_no_cell() -> None:
    """x [1, K] meets a state of more rows."""
    body = Body(np.random.default_rng(0), batch=1)
    states = rnn(body, Op.TANH)
    model = body.model(states, 4, states["h"])
    assert "RNN" in check(model, feeds(body, 1, 4))


@given(
    make=st.sampled_from([*(make for row in CELLS.values() for make in row), *OTHERS]),
    activation=st.sampled_from([Op.TANH, Op.RELU, Op.LOGISTIC]),
    # Of enough units for one of them not to be near 0, where sums are less exact.
    sizes=st.tuples(*(st.integers(*ends) for ends in ((1, 4), (1, 5), (4, 7), (1, 6)))),
    seed=st.integers(0, 2**32 - 1),
)
def test_drawn_cells(make: Any, activation: Op, sizes: tuple[int, ...], seed: int) -> None:
    batch, inputs, units, steps = sizes
    body = Body(np.random.default_rng(seed), batch, inputs, units)
    states = make(body, activation)
    check_invokes(
        body.model(states, steps, states["h"]), feeds(body, len(states), steps), kernels="default"
    )


def test_weights_of_8_bits_are_those_of_a_cell_unless_activations_are_rounded() -> None:
    body = Body(np.random.default_rng(0))
    for name in ("x", "h"):
        width = body.inputs if name == "x" else body.units
        codes = body.rng.integers(-127, 128, (body.units, width)).astype(np.int8)
        body.tensors[f"codes of {name}"] = T.constant(codes, scale=0.01)
        body.tensors[f"{name} part"] = T((body.batch, body.units))
        inputs = [name, f"codes of {name}", None]
        options = FullyConnectedOptions()
        body.nodes.append(Node(Op.FULLY_CONNECTED, inputs, [f"{name} part"], options))
    states = {"h": body.made(Op.TANH, body.add("x part", "h part"))}
    model = body.model(states, 5, states["h"])
    for hybrid in ("float", "dynamic"):
        kinds = {node.op_type for node in export_onnx(model, hybrid=hybrid).graph.node}
        assert ("RNN" in kinds) == (hybrid == "float")


def test_a_sum_of_sums_is_looked_at_once() -> None:
    """2**60 additions, if each were followed to its beginning."""
    body = Body(np.random.default_rng(0))
    total = body.add(body.product("x"), body.product("h"))
    for _ in range(60):
        total = body.add(total, total)
    states = {"h": body.made(Op.TANH, total)}
    assert "RNN" in check(body.model(states, 3, states["h"]), feeds(body, 1, 3))
