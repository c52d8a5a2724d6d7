"""Drawn programs of branches in loops against LiteRT: whole, in parts, and in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, invoked, model_of
from tflite_ort import ExecutionProviderDelegate, Interpreter
from tflite_ort.schema import (
    AddOptions,
    IfOptions,
    MulOptions,
    Op,
    SubOptions,
    TensorType,
    WhileOptions,
)

FLAG, COUNT = T((), TensorType.BOOL), T((), TensorType.INT32)
TYPES = [T((3,)), T((3,), TensorType.INT8, scale=0.5, zero_point=-3)]
OPTIONS: dict[Op, Any] = {Op.ADD: AddOptions(), Op.MUL: MulOptions(), Op.SUB: SubOptions()}
DEEPEST = 2


class Program:
    """Subgraphs as they are drawn; every one of them has a counter ``i``."""

    def __init__(self, rng: np.random.Generator, t: T) -> None:
        self.rng, self.t = rng, t
        self.called: list[Sub | None] = []

    def reserve(self) -> int:
        """The number of a subgraph that is drawn later; the main one is 0."""
        self.called.append(None)
        return len(self.called)

    def extend(self, sub: dict[str, T], nodes: list[Node], values: list[str], depth: int) -> None:
        """A few more operators over `values`, which take their results."""
        for _ in range(int(self.rng.integers(4))):
            a, b = self.rng.choice(values, 2).tolist()
            result = f"t{len(sub)}"
            sub[result] = self.t
            if depth < DEEPEST and self.rng.random() < 0.2:
                nodes += self.choice(sub, a, b, result, depth)
            else:
                op = list(OPTIONS)[int(self.rng.integers(len(OPTIONS)))]
                nodes.append(Node(op, [a, b], [result], OPTIONS[op]))
            values.append(result)

    def choice(self, sub: dict[str, T], a: str, b: str, result: str, depth: int) -> list[Node]:
        """result = (one if i == number else another)(a, b)."""
        number, flag = f"n{len(sub)}", f"f{len(sub)}"
        sub |= {number: T.constant(np.int32(self.rng.integers(3))), flag: FLAG}
        branches = self.reserve(), self.reserve()
        for branch in branches:
            tensors, nodes, values = {"i": COUNT, "a": self.t, "b": self.t}, [], ["a", "b"]
            self.extend(tensors, nodes, values, depth + 1)
            given = str(self.rng.choice(values))
            self.called[branch - 1] = Sub(tensors, nodes, ["i", "a", "b"], [given])
        return [
            Node(Op.EQUAL, ["i", number], [flag]),
            Node(Op.IF, [flag, "i", a, b], [result], IfOptions(*branches)),
        ]

    def loop(self) -> tuple[int, int]:
        """while i < n: i, x, y = i + 1, something, something."""
        condition, body = self.reserve(), self.reserve()
        state = {"i": COUNT, "n": COUNT, "x": self.t, "y": self.t}
        less = Node(Op.LESS, ["i", "n"], ["t"])
        self.called[condition - 1] = Sub(state | {"t": FLAG}, [less], list(state), ["t"])
        tensors = state | {"one": T.constant(np.int32(1)), "j": COUNT}
        nodes, values = [Node(Op.ADD, ["i", "one"], ["j"], AddOptions())], ["x", "y"]
        self.extend(tensors, nodes, values, 1)
        made = self.rng.permutation(values[2:]).tolist()  # LiteRT cannot exchange x and y
        x, y = (made.pop() if made and self.rng.random() < 0.8 else name for name in "xy")
        self.called[body - 1] = Sub(tensors, nodes, list(state), ["j", "n", x, y])
        return condition, body

    def model(self) -> bytes:
        tensors = {"i": COUNT, "n": COUNT, "x": self.t, "y": self.t}
        nodes, values = list[Node](), ["x", "y"]
        self.extend(tensors, nodes, values, 0)
        a, b = self.rng.choice(values, 2).tolist()
        tensors |= {"oi": COUNT, "on": COUNT, "ox": self.t, "oy": self.t, "z": self.t}
        options = WhileOptions(*self.loop())
        nodes.append(Node(Op.WHILE, ["i", "n", a, b], ["oi", "on", "ox", "oy"], options))
        nodes.append(Node(Op.ADD, ["ox", "oy"], ["z"], AddOptions()))
        main = Sub(tensors, nodes, ["i", "n", "x", "y"], ["z", "ox", "oi"])
        return model_of(main, *[sub for sub in self.called if sub is not None])


@given(seed=st.integers(0, 2**32 - 1))
def test_a_program_gives_what_litert_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = TYPES[int(rng.integers(len(TYPES)))]
    model = Program(rng, t).model()
    limits = {op: 0 for op in (Op.MUL, Op.SUB, Op.IF) if rng.random() < 0.3}
    some = ExecutionProviderDelegate("CPUExecutionProvider", max_versions=limits)
    theirs = litert_interpreter(model, "reference")
    theirs.allocate_tensors()
    # A code that is one off can be a few off after some iterations.
    quanta = {"whole": 6, "in parts": 6, "in numpy": 0}
    for (name, most), providers in zip(quanta.items(), (None, [some], []), strict=True):
        mine = Interpreter(model_content=model, providers=providers, num_threads=1)
        mine.allocate_tensors()
        for count in (0, 2, 3):
            feeds = [np.array(0, np.int32), np.array(count, np.int32)]
            feeds += [t.random(rng, -1, 1) for _ in range(2)]
            for want, got in zip(invoked(theirs, feeds), invoked(mine, feeds), strict=True):
                assert_close(got, want, most, 1e-4, name)
