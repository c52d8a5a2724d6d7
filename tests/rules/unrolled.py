"""Models in which the steps of a recurrent cell stand one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    GatherOptions,
    MulOptions,
    Op,
    PackOptions,
    ReshapeOptions,
    ReverseV2Options,
    SliceOptions,
    SplitOptions,
    StridedSliceOptions,
    SubOptions,
    TensorType,
    UnpackOptions,
)

Array = npt.NDArray[Any]
RELU = ActivationFunctionType.RELU
RELU6 = ActivationFunctionType.RELU6
PLAIN = ActivationFunctionType.NONE


@dataclass
class Unrolled:
    """A graph with an input x, [B, T, K] or [T, B, K], and a cell of N units; weights are drawn.

    Args:
        codes: the weights of products are of 8 bits.
    """

    steps: int = 4
    batch: int = 1
    inputs: int = 5
    units: int = 3
    time_major: bool = False
    seed: int = 0
    codes: bool = False
    tensors: dict[str, T] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        axes = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        self.tensors["x"] = T((*axes, self.inputs))

    @property
    def axis(self) -> int:
        """That of the steps in x."""
        return 0 if self.time_major else 1

    # Operators -----------------------------------------------------------------------------------

    def made(
        self, op: Op, inputs: Sequence[str | None], *shapes: Sequence[int], options: Any = None
    ) -> list[str]:
        names = [f"{op.name} {len(self.tensors) + k}" for k in range(len(shapes))]
        self.tensors |= {name: T(tuple(shape)) for name, shape in zip(names, shapes, strict=True)}
        self.nodes.append(Node(op, list(inputs), names, options))
        return names

    def constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        name = f"constant {len(self.tensors)}"
        self.tensors[name] = T.constant(np.asarray(values, dtype))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """The constant of this name, which all steps share."""
        if name not in self.weights:
            self.weights[name] = self.constant(self.rng.normal(scale=0.5, size=shape))
        return self.weights[name]

    def one(self, op: Op, *inputs: str, options: Any = None) -> str:
        """An operator on single elements."""
        shapes = [self.tensors[each].shape for each in inputs]
        return self.made(op, inputs, np.broadcast_shapes(*shapes), options=options)[0]

    def add(self, a: str, b: str, fused: ActivationFunctionType = PLAIN) -> str:
        return self.one(Op.ADD, a, b, options=AddOptions(fused_activation_function=fused))

    def mul(self, a: str, b: str) -> str:
        return self.one(Op.MUL, a, b, options=MulOptions())

    def sub(self, a: str, b: str) -> str:
        return self.one(Op.SUB, a, b, options=SubOptions())

    def reshaped(self, source: str, *shape: int) -> str:
        target = self.constant(shape, np.int32)
        return self.made(Op.RESHAPE, [source, target], shape, options=ReshapeOptions())[0]

    def product(self, source: str, name: str, units: int, *, biased: bool = True) -> str:
        """FULLY_CONNECTED with weights of this name."""
        *rows, width = self.tensors[source].shape
        filter = self.weight(name, units, width)
        if self.codes:
            drawn = self.rng.integers(-127, 128, (units, width)).astype(np.int8)
            whole = self.tensors[filter]
            if whole.type is not TensorType.INT8:
                self.tensors[filter] = T.constant(drawn, scale=0.01)
        bias = self.weight(f"{name} bias", units) if biased else None
        options = FullyConnectedOptions(keep_num_dims=len(rows) > 1)
        return self.made(
            Op.FULLY_CONNECTED, [source, filter, bias], (*rows, units), options=options
        )[0]

    def split(self, source: str, parts: int) -> list[str]:
        *rows, width = self.tensors[source].shape
        axis = self.constant(len(rows), np.int32)
        options = SplitOptions(num_splits=parts)
        return self.made(
            Op.SPLIT, [axis, source], *[(*rows, width // parts)] * parts, options=options
        )

    def joined(self, names: Sequence[str], axis: int) -> str:
        shape = list(self.tensors[names[0]].shape)
        shape[axis] = sum(self.tensors[name].shape[axis] for name in names)
        return self.made(Op.CONCATENATION, names, shape, options=ConcatenationOptions(axis=axis))[0]

    def packed(self, names: Sequence[str], axis: int) -> str:
        shape = list(self.tensors[names[0]].shape)
        shape.insert(axis, len(names))
        options = PackOptions(values_count=len(names), axis=axis)
        return self.made(Op.PACK, names, shape, options=options)[0]

    def reversed(self, source: str, axis: int) -> str:
        axes = self.constant([axis], np.int32)
        shape = self.tensors[source].shape
        return self.made(Op.REVERSE_V2, [source, axes], shape, options=ReverseV2Options())[0]

    # Steps of a sequence -------------------------------------------------------------------------

    def rows(self, how: str, source: str = "x") -> list[str]:
        """The steps of `source`, [B, K] each, cut out by one kind of operator."""
        shape = self.tensors[source].shape
        one = shape[:2][1 - self.axis], shape[2]
        if how == "unpack":
            options = UnpackOptions(num=self.steps, axis=self.axis)
            return self.made(Op.UNPACK, [source], *[one] * self.steps, options=options)
        if how == "split":
            axis = self.constant(self.axis, np.int32)
            parts = [tuple(1 if i == self.axis else n for i, n in enumerate(shape))] * self.steps
            options = SplitOptions(num_splits=self.steps)
            cut = self.made(Op.SPLIT, [axis, source], *parts, options=options)
            return [self.reshaped(each, *one) for each in cut]
        return [self._row(how, source, step, one) for step in range(self.steps)]

    def _row(self, how: str, source: str, step: int, one: tuple[int, int]) -> str:
        shape = self.tensors[source].shape
        begin = [step if i == self.axis else 0 for i in range(3)]
        sizes = [1 if i == self.axis else n for i, n in enumerate(shape)]
        if how == "gather":
            place = self.constant(step, np.int32)
            options = GatherOptions(axis=self.axis)
            return self.made(Op.GATHER, [source, place], one, options=options)[0]
        if how == "slice":
            lists = [self.constant(each, np.int32) for each in (begin, sizes)]
            cut = self.made(Op.SLICE, [source, *lists], sizes, options=SliceOptions())[0]
            return self.reshaped(cut, *one)
        ends = [first + size for first, size in zip(begin, sizes, strict=True)]
        lists = [self.constant(each, np.int32) for each in (begin, ends, [1, 1, 1])]
        options = StridedSliceOptions(shrink_axis_mask=1 << self.axis)
        return self.made(Op.STRIDED_SLICE, [source, *lists], one, options=options)[0]

    def products(self, gates: int, how: str) -> list[str]:
        """The products of all steps with the weights of the input, computed at once and cut."""
        return self.rows(how, self.product("x", "W", gates * self.units))

    # States --------------------------------------------------------------------------------------

    def initial(self, how: str, name: str = "h") -> str:
        """[B, N] before the first step."""
        shape = self.batch, self.units
        if how == "input":
            self.tensors[name] = T(shape)
            return name
        return self.constant(np.zeros(shape) if how == "zeros" else self.rng.normal(size=shape))

    def model(self, *outputs: str) -> bytes:
        return graph_model(self.tensors, self.nodes, outputs)

    def feeds(self) -> list[Array]:
        """Random inputs of the model, in its order."""
        made = {name for node in self.nodes for name in node.outputs}
        given = [t for name, t in self.tensors.items() if name not in made and not t.is_constant]
        return [self.rng.normal(size=t.shape).astype(np.float32) for t in given]


# A step: the graph, the input of this step, whether that is a product already, and the states.
Step = Callable[[Unrolled, str, bool, Sequence[str]], list[str]]


def _given(net: Unrolled, x: str, done: bool, gates: int) -> str:
    return x if done else net.product(x, "W", gates * net.units)


def gru_after(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """As Keras writes it: z h + (1 - z) tanh(x W + r (h R + b))."""
    (h,) = states
    of_x = net.split(_given(net, x, done, 3), 3)
    of_h = net.split(net.product(h, "R", 3 * net.units), 3)
    z, r = (net.one(Op.LOGISTIC, net.add(of_x[k], of_h[k])) for k in range(2))
    c = net.one(Op.TANH, net.add(of_x[2], net.mul(r, of_h[2])))
    return [net.add(net.mul(z, h), net.mul(net.sub(net.constant(1.0), z), c))]


def gru_before(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """z h + (1 - z) tanh(x W + (r h) R)."""
    (h,) = states
    of_x = net.split(_given(net, x, done, 3), 3)
    of_h = net.split(net.product(h, "R", 2 * net.units, biased=False), 2)
    z, r = (net.one(Op.LOGISTIC, net.add(of_x[k], of_h[k])) for k in range(2))
    own = net.product(net.mul(r, h), "Rc", net.units, biased=False)
    c = net.one(Op.TANH, net.add(of_x[2], own))
    return [net.add(net.mul(z, h), net.mul(net.sub(net.constant(1.0), z), c))]


def gru_torch(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """As litert-torch writes it: (h - c) z + c."""
    (h,) = states
    of_x = net.split(_given(net, x, done, 3), 3)
    of_h = net.split(net.product(h, "R", 3 * net.units), 3)
    r, z = (net.one(Op.LOGISTIC, net.add(of_h[k], of_x[k])) for k in range(2))
    c = net.one(Op.TANH, net.add(of_x[2], net.mul(of_h[2], r)))
    return [net.add(net.mul(net.sub(h, c), z), c)]


def gru_hard(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """As `gru_after`, with hard sigmoids."""
    (h,) = states
    of_x = net.split(_given(net, x, done, 3), 3)
    of_h = net.split(net.product(h, "R", 3 * net.units), 3)
    three, sixth = net.constant(3.0), net.constant(1 / 6)
    sums = [net.add(net.add(of_x[k], of_h[k]), three, RELU6) for k in range(2)]
    z, r = (net.mul(each, sixth) for each in sums)
    c = net.one(Op.TANH, net.add(of_x[2], net.mul(r, of_h[2])))
    return [net.add(net.mul(z, h), net.mul(net.sub(net.constant(1.0), z), c))]


def lstm(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """f c + i g and o tanh(c), of one sum for all gates."""
    h, c = states
    total = net.add(_given(net, x, done, 4), net.product(h, "R", 4 * net.units, biased=False))
    return lstm_of(net, net.split(total, 4), c)


def lstm_joined(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    """As TensorFlow 1 writes it: one product of x and h side by side."""
    assert not done
    h, c = states
    return lstm_of(net, net.split(net.product(net.joined([x, h], 1), "W", 4 * net.units), 4), c)


def lstm_of(net: Unrolled, gates: Sequence[str], c: str) -> list[str]:
    i, f, o = (net.one(Op.LOGISTIC, gates[k]) for k in (0, 1, 3))
    c = net.add(net.mul(f, c), net.mul(i, net.one(Op.TANH, gates[2])))
    return [net.mul(o, net.one(Op.TANH, c)), c]


def rnn(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    own = net.product(states[0], "R", net.units, biased=False)
    return [net.one(Op.TANH, net.add(_given(net, x, done, 1), own))]


def rnn_relu(net: Unrolled, x: str, done: bool, states: Sequence[str]) -> list[str]:
    own = net.product(states[0], "R", net.units, biased=False)
    return [net.add(own, _given(net, x, done, 1), RELU)]


STEPS: dict[Step, str] = {
    gru_after: "GRU",
    gru_before: "GRU",
    gru_torch: "GRU",
    gru_hard: "GRU",
    lstm: "LSTM",
    lstm_joined: "LSTM",
    rnn: "RNN",
    rnn_relu: "RNN",
}
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def run(
    net: Unrolled,
    step: Step,
    how: str = "unpack",
    initial: str = "zeros",
    *,
    at_once: bool = False,
    rows: Sequence[str] | None = None,
) -> list[list[str]]:
    """All steps; returns the states after each.

    Args:
        how: the inputs are cut out.
        at_once: the products with the inputs are computed before they are cut.
        rows: the inputs of the steps instead of these.
    """
    if rows is None:
        rows = net.products(GATES[STEPS[step]], how) if at_once else net.rows(how)
    states = [net.initial(initial, "h")]
    if STEPS[step] == "LSTM":
        states.append(net.initial(initial, "c"))
    history = []
    for x in rows:
        states = step(net, x, at_once, states)
        history.append(states)
    return history
