"""Subgraphs under construction, for what becomes control flow of TFLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.element_types import NUMPY_DTYPE, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.model import Model, Operator, OperatorCode, SubGraph, Tensor
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.options import CallOptions, IfOptions, WhileOptions
from tflite_ort.schema.file.tables import Table
from tflite_ort.schema.flex.rewriting import Drafts
from tflite_ort.schema.values.flex import Node, node_from

Slots = list[int]
Change = Callable[["Block"], None]

# How deep subgraphs of a model are nested here, and how many there are.
_DEEPEST, _MOST_BLOCKS = 16, 256


class Parts:
    """A model to which subgraphs are added."""

    def __init__(self, model: Model) -> None:
        self.model, self.drafts = model, Drafts.of(model)
        self.added: list[SubGraph] = []
        self.types: list[TensorType] = []  # by slot
        self.blocks = 0
        self._numbers = {graph.name: number for number, graph in enumerate(model.subgraphs)}

    def name(self, operator: Operator) -> str:
        """TensorFlow's name of an operator; empty for others."""
        name = self.drafts.codes[operator.opcode_index].custom_code or ""
        return name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""

    def node(self, operator: Operator) -> Node:
        """The node of an operator."""
        name = PREFIX + self.name(operator)
        return node_from(name, name, operator.custom_options)

    def code(self, op: Op) -> int:
        """The index of the code of an operator."""
        return self.drafts.code(OperatorCode(builtin_code=op, version=1))

    def add(self, graph: SubGraph) -> int:
        """The number of a new subgraph."""
        self.added.append(graph)
        return len(self.model.subgraphs) + len(self.added) - 1

    def function(self, node: Node, attribute: str) -> int:
        """The subgraph that an attribute names."""
        name = node[attribute].name
        if name not in self._numbers:
            raise ModelError(f"the model has no function {name!r}")
        return self._numbers[name]

    def graph(self, number: int) -> SubGraph:
        """A subgraph, also a new one."""
        return [*self.model.subgraphs, *self.added][number]


class Block:
    """A subgraph whose values stand in slots, each a tensor: what runs inside of it is given all
    slots, and gives them back.

    Attributes:
        tensors_of: the tensor of each slot.
    """

    def __init__(self, parts: Parts, slots: Sequence[int] = (), depth: int = 0) -> None:
        parts.blocks += 1
        if depth > _DEEPEST or parts.blocks > _MOST_BLOCKS:
            raise ModelError("subgraphs nested too deep, or too many")
        self.parts, self._depth = parts, depth
        self._tensors: list[Tensor] = []
        self._operators: list[Operator] = []
        self._inputs: list[int] = []
        self.tensors_of: dict[int, int] = {}
        for slot in slots:
            self._given(slot)

    def _given(self, slot: int) -> None:
        tensor = self._tensor(self.parts.types[slot])
        self.tensors_of[slot] = tensor
        self._inputs.append(tensor)

    def _tensor(self, type: TensorType) -> int:
        self._tensors.append(Tensor(type=type))
        return len(self._tensors) - 1

    def slot(self, type: TensorType, tensor: int) -> int:
        """A new slot."""
        self.parts.types.append(type)
        slot = len(self.parts.types) - 1
        self.tensors_of[slot] = tensor
        return slot

    def input(self, type: TensorType) -> int:
        """The slot of one input more."""
        self.parts.types.append(type)
        slot = len(self.parts.types) - 1
        self._given(slot)
        return slot

    def copied(self, slot: int) -> int:
        """A new slot with what another one has."""
        return self.slot(self.parts.types[slot], self.tensors_of[slot])

    def constant(self, values: npt.ArrayLike, type: TensorType) -> int:
        """A tensor of these values."""
        array = np.asarray(values, NUMPY_DTYPE[type])
        buffer = self.parts.drafts.buffer(array.tobytes())
        self._tensors.append(Tensor(shape=array.shape, type=type, buffer=buffer, has_rank=True))
        return len(self._tensors) - 1

    def op(
        self, op: Op, inputs: Sequence[int], type: TensorType, options: Table | None = None
    ) -> int:
        """The tensor that an operator makes of tensors."""
        return self._emit(op, inputs, [type], options)[0]

    def _emit(
        self, op: Op, inputs: Sequence[int], types: Sequence[TensorType], options: Table | None
    ) -> Slots:
        outputs = [self._tensor(type) for type in types]
        self._operators.append(
            Operator(
                opcode_index=self.parts.code(op),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                options=options if options is not None else options_of(op, None),
            )
        )
        return outputs

    def put(self, slot: int, op: Op, inputs: Sequence[int], options: Table | None = None) -> None:
        """Put what an operator makes of tensors into a slot."""
        self.tensors_of[slot] = self.op(op, inputs, self.parts.types[slot], options)

    def row(self, slot: int, place: int) -> int:
        """A new slot with a row of another one, at the place that a tensor tells."""
        type = self.parts.types[slot]
        return self.slot(type, self.op(Op.GATHER, [self.tensors_of[slot], place], type))

    def call(self, function: int, slots: Sequence[int]) -> Slots:
        """New slots for the results of a subgraph."""
        graph = self.parts.graph(function)
        types = [graph.tensors[index].type for index in graph.outputs]
        given = [graph.tensors[index].type for index in graph.inputs]
        if given != [self.parts.types[slot] for slot in slots]:
            raise ModelError(f"function {graph.name!r} takes other inputs")
        inputs = [self.tensors_of[slot] for slot in slots]
        made = self._emit(Op.CALL, inputs, types, CallOptions(subgraph=function))
        return [self.slot(*pair) for pair in zip(types, made, strict=True)]

    def _inside(self, slots: Sequence[int]) -> Block:
        return Block(self.parts, slots, self._depth + 1)

    def _all(self, first: Sequence[int], op: Op, options: Table) -> None:
        slots = list(self.tensors_of)
        inputs = [*first, *self.tensors_of.values()]
        made = self._emit(op, inputs, [self.parts.types[slot] for slot in slots], options)
        self.tensors_of = dict(zip(slots, made, strict=True))

    def repeat(self, condition: Callable[[Block], int], body: Callable[[Block], None]) -> None:
        """WHILE the tensor that `condition` gives is true."""
        slots = list(self.tensors_of)
        asked, repeated = self._inside(slots), self._inside(slots)
        test = self.parts.add(asked.whole([condition(asked)]))
        body(repeated)
        made = self.parts.add(repeated.graph(slots))
        self._all([], Op.WHILE, WhileOptions(cond_subgraph_index=test, body_subgraph_index=made))

    def choose(self, test: int, then: Change, otherwise: Change | None = None) -> None:
        """IF a tensor is true."""
        slots, made = list(self.tensors_of), list[int]()
        for change in (then, otherwise):
            inner = self._inside(slots)
            if change is not None:
                change(inner)
            made.append(self.parts.add(inner.graph(slots)))
        options = IfOptions(then_subgraph_index=made[0], else_subgraph_index=made[1])
        self._all([test], Op.IF, options)

    def graph(self, slots: Sequence[int]) -> SubGraph:
        """The subgraph, which gives these slots."""
        return self.whole([self.tensors_of[slot] for slot in slots])

    def whole(self, outputs: Sequence[int]) -> SubGraph:
        """The subgraph, which gives these tensors."""
        return SubGraph(
            tensors=tuple(self._tensors),
            inputs=tuple(self._inputs),
            outputs=tuple(outputs),
            operators=tuple(self._operators),
            name="dataset",
        )
