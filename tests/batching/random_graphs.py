"""Graphs of random operators over tensors of random shapes, many of which lead with 1.

Floats are small whole numbers, so that sums of them come out the same in any order. What no longer
has whole numbers is not `exact`: no operator that jumps (a comparison, an index) reads it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import (
    Op,
    TensorType,
)

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
FLOAT, INT, BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
LARGEST, MOST_ELEMENTS = 2.0**20, 2000


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    Args:
        largest: the largest magnitude of its elements.
        exact: they are whole numbers.
        limit: of indices: they are from 0 to less than it.
    """

    name: str
    shape: Shape
    type: TensorType = FLOAT
    largest: float = 4.0
    exact: bool = True
    limit: int = 0
    is_constant: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)


class RandomGraph:
    """A graph that grows operator by operator."""

    def __init__(self, seed: int) -> None:
        self.draw, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.tensors: dict[str, T] = {}
        self.nodes: list[Node] = []
        self.values: list[Value] = []
        self.inputs = [self._input() for _ in range(self.draw.randint(1, 3))]
        length, tries = self.draw.randint(5, 30), 0
        while len(self.nodes) < length and tries < 500:
            tries += 1
            self.draw.choice(STEPS)(self)

    def model(self) -> bytes:
        """The bytes; its outputs are what nothing reads, and some of the others."""
        used = {name for node in self.nodes for name in node.inputs}
        made = {name for node in self.nodes for name in node.outputs}
        outputs = [
            value.name
            for value in self.values
            if value.name in made and (value.name not in used or self.draw.random() < 0.1)
        ]
        if self.draw.random() < 0.1:
            outputs.append(self.inputs[0].name)
        return graph_model(self.tensors, self.nodes, outputs)

    def sample(self, rng: np.random.Generator) -> list[Array]:
        """Values of the inputs, in the order in which the model has them."""
        return [
            rng.integers(0, value.limit, value.shape).astype(np.int32)
            if value.type is INT
            else rng.integers(-4, 5, value.shape).astype(np.float32)
            for value in self.inputs
        ]

    # Tensors ---------------------------------------------------------------------------------

    def shape(self, rank: int | None = None) -> Shape:
        count = self.draw.choice((0, 1, 2, 2, 3, 3, 4, 4)) if rank is None else rank
        sizes = [self.draw.choice((1, 2, 3, 4, 5, 6)) for _ in range(count)]
        if sizes and self.draw.random() < 0.6:
            sizes[0] = 1
        return tuple(sizes)

    def _input(self) -> Value:
        shape = self.shape()
        if self.draw.random() < 0.2:
            limit = self.draw.randint(1, 4)
            return self._declare(Value("", shape, INT, limit, limit=limit))
        return self._declare(Value("", shape))

    def _declare(self, value: Value, data: Array | None = None) -> Value:
        name = f"t{len(self.tensors)}"
        named = Value(**{**_fields(value), "name": name, "is_constant": data is not None})
        given = None if data is None else T.constant(data)
        self.tensors[name] = given or T(value.shape, value.type)
        if data is None:
            self.values.append(named)
        return named

    def constant(self, shape: Shape) -> Value:
        data = self.rng.integers(-4, 5, shape).astype(np.float32)
        return self._declare(Value("", shape), data)

    def ints(self, values: Any) -> str:
        data = np.asarray(values, np.int32)
        return self._declare(Value("", data.shape, INT), data).name

    def pick(
        self, fits: Callable[[Value], bool] = lambda value: True, type: TensorType = FLOAT
    ) -> Value | None:
        """One of the latest tensors of this type that fit."""
        fitting = [v for v in self.values if v.type is type and fits(v)]
        return self.draw.choice(fitting[-6:]) if fitting else None

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value | str],
        shapes: Sequence[Shape],
        options: Any = None,
        *,
        largest: float | None = None,
        exact: bool = True,
        type: TensorType | None = None,
        limit: int = 0,
        version: int = 1,
    ) -> None:
        """Add an operator, unless its results are too many or too large."""
        values = [each for each in inputs if isinstance(each, Value)]
        if largest is None:
            largest = max(value.largest for value in values)
        if largest > LARGEST or any(math.prod(shape) > MOST_ELEMENTS for shape in shapes):
            return
        is_exact = exact and all(value.exact for value in values)
        type = values[0].type if type is None else type
        outs = [self._declare(Value("", shape, type, largest, is_exact, limit)) for shape in shapes]
        names = [each if isinstance(each, str) else each.name for each in inputs]
        self.nodes.append(Node(op, names, [out.name for out in outs], options, version))


def _fields(value: Value) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


Step = Callable[[RandomGraph], None]
STEPS: list[Step] = []


def step(times: int = 1) -> Callable[[Step], Step]:
    def register(function: Step) -> Step:
        STEPS.extend([function] * times)
        return function

    return register
