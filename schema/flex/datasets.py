"""TensorFlow's datasets, as loops: what reduces one reads element by element what it is made from.

The subgraph that takes the place of a ReduceDataset has a WHILE for each source of elements. What
is done with each element, up to the reduction, is done in its body: a map is a CALL, what picks
elements is an IF.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.model import Model, Operator, SubGraph
from tflite_ort.schema.file.options import CallOptions, ConcatenationOptions, ShapeOptions
from tflite_ort.schema.flex.blocks import Block, Parts, Slots
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import Node

_T = TensorType
_REDUCE = "ReduceDataset"
_MOST_STAGES = 32

# Takes an element, in the block where it is made.
Push = Callable[[Block, Slots], None]


def as_loops(model: Model) -> Model:
    """`model` with loops in the place of its datasets, unless something is wrong with a node, or is
    not known: that is told when its subgraph is made ready."""
    if not any(code.custom_code == PREFIX + _REDUCE for code in model.operator_codes):
        return model
    parts = Parts(model)
    try:
        graphs = [_with_loops(parts, number) for number in range(len(model.subgraphs))]
    except ModelError:
        return model
    return parts.drafts.whole([*graphs, *parts.added])


def _with_loops(parts: Parts, number: int) -> SubGraph:
    """A subgraph whose reductions are calls."""
    graph = parts.model.subgraphs[number]
    operators = [
        _call(parts, number, operator) if parts.name(operator) == _REDUCE else operator
        for operator in graph.operators
    ]
    if operators == list(graph.operators):
        return graph
    return replace(graph, operators=_without_datasets(parts, graph.outputs, operators))


def _without_datasets(
    parts: Parts, outputs: Sequence[int], operators: Sequence[Operator]
) -> tuple[Operator, ...]:
    """The operators but for those that make datasets which nothing reads."""
    read, kept = set[int | None](outputs), list[Operator]()
    for operator in reversed(operators):
        if parts.name(operator) not in _STAGES or not read.isdisjoint(operator.outputs):
            kept.append(operator)
            read.update(operator.inputs)
    return tuple(reversed(kept))


def _call(parts: Parts, number: int, operator: Operator) -> Operator:
    """The CALL of a subgraph that reduces a dataset, in the place of a ReduceDataset."""
    chain = _Chain.of(parts, number, operator)
    graph = parts.model.subgraphs[number]
    inputs = list(dict.fromkeys(chain.inputs()))
    block = Block(parts)
    given = {index: block.input(graph.tensors[index].type) for index in inputs}
    stages = chain.in_slots(given)
    last = stages.pop()
    states = last.named("initial_state")
    function = parts.function(last.node, "f")
    results = [block.copied(slot) for slot in states]

    def reduced(inner: Block, element: Slots) -> None:
        made = inner.call(function, [*results, *element, *last.named("other_arguments")])
        for slot, result in zip(results, made, strict=True):
            inner.tensors_of[slot] = inner.tensors_of[result]

    _run(block, stages, [], reduced)
    called = parts.add(block.graph(results))
    return replace(
        operator,
        opcode_index=parts.code(Op.CALL),
        inputs=tuple(inputs),
        options=CallOptions(subgraph=called),
        custom_options=None,
    )


# The operators of a dataset ----------------------------------------------------------------------


@record
class _Stage:
    """An operator of a dataset, and where its inputs other than the dataset are: indices of
    tensors, or slots."""

    node: Node
    inputs: tuple[int, ...]

    def named(self, name: str) -> Slots:
        """The inputs that one of TensorFlow's stands for."""
        first = 0 if self.node.operator.inputs[0].name != "input_dataset" else 1
        return self.node.inputs([-1] * first + [*self.inputs], name)


@record
class _Chain:
    """The operators from the source of a dataset to the last one, in a subgraph."""

    stages: tuple[_Stage, ...]

    @classmethod
    def of(cls, parts: Parts, number: int, last: Operator) -> _Chain:
        """The chain of datasets up to `last`.

        Raises:
            ModelError: what makes the dataset is not among the subgraph's operators.
        """
        made = {o: op for op in parts.model.subgraphs[number].operators for o in op.outputs}
        stages, operator = list[_Stage](), last
        while len(stages) < _MOST_STAGES:
            node = parts.node(operator)
            inputs = [-1 if index is None else index for index in operator.inputs]
            is_source = node.operator.name == "TensorSliceDataset"
            if -1 in inputs or len(inputs) != sum(map(node.count, node.operator.inputs)):
                raise ModelError("inputs of another number")
            stages.append(_Stage(node, tuple(inputs if is_source else inputs[1:])))
            if is_source:
                return cls(tuple(reversed(stages)))
            before = made.get(inputs[0])
            if before is None or parts.name(before) not in _STAGES:
                raise ModelError("a dataset that is not made here")
            operator = before
        raise ModelError(f"more than {_MOST_STAGES} operators of a dataset")

    def inputs(self) -> Slots:
        """The tensors that the operators read."""
        return [index for stage in self.stages for index in stage.inputs]

    def in_slots(self, given: dict[int, int]) -> list[_Stage]:
        """The operators on slots."""
        return [
            replace(stage, inputs=tuple(given[index] for index in stage.inputs))
            for stage in self.stages
        ]


# Operators ---------------------------------------------------------------------------------------


def _run(block: Block, stages: Sequence[_Stage], ends: Slots, push: Push) -> None:
    """Push the elements of a dataset, until one of the slots `ends` is true."""
    *before, last = stages
    _STAGES[last.node.operator.name](block, before, last, ends, push)


def _applied(block: Block, stage: _Stage, attribute: str, element: Slots) -> Slots:
    """New slots for what the function of an operator gives for an element."""
    function = block.parts.function(stage.node, attribute)
    return block.call(function, [*element, *stage.inputs])


def _inner_stages(block: Block, stage: _Stage, element: Slots) -> list[_Stage]:
    """The operators, on new slots, of the dataset that the function of one makes of an element."""
    parts = block.parts
    function = parts.function(stage.node, "f")
    graph = parts.model.subgraphs[function]
    made = [each for each in graph.operators if each.outputs == graph.outputs]
    if len(made) != 1 or parts.name(made[0]) not in _STAGES:
        raise ModelError("a function that makes no dataset")
    chain = _Chain.of(parts, function, made[0])
    needed = tuple(dict.fromkeys(chain.inputs()))
    operators = _without_datasets(parts, needed, graph.operators)
    body = parts.add(replace(graph, outputs=needed, operators=operators))
    values = block.call(body, [*element, *stage.inputs])
    return chain.in_slots(dict(zip(needed, values, strict=True)))


def _goes_on(block: Block, test: int, ends: Slots) -> int:
    """Whether a tensor is true, and none of the slots."""
    for slot in ends:
        ended = block.op(Op.LOGICAL_NOT, [block.tensors_of[slot]], _T.BOOL)
        test = block.op(Op.LOGICAL_AND, [test, ended], _T.BOOL)
    return test


def _false(block: Block) -> int:
    return block.slot(_T.BOOL, block.constant(False, _T.BOOL))


def _slices(block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push) -> None:
    """A WHILE over the first dimension."""
    first = block.tensors_of[stage.inputs[0]]
    shape = block.op(Op.SHAPE, [first], _T.INT32, ShapeOptions(out_type=_T.INT32))
    zero = block.constant(0, _T.INT32)
    size = block.op(Op.GATHER, [shape, zero], _T.INT32)
    count, place = block.slot(_T.INT32, size), block.slot(_T.INT32, zero)

    def asked(inner: Block) -> int:
        test = [inner.tensors_of[slot] for slot in (place, count)]
        return _goes_on(inner, inner.op(Op.LESS, test, _T.BOOL), ends)

    def body(inner: Block) -> None:
        at = inner.tensors_of[place]
        element = [inner.row(slot, at) for slot in stage.inputs]
        inner.put(place, Op.ADD, [at, inner.constant(1, _T.INT32)])
        push(inner, element)

    block.repeat(asked, body)


def _mapped(block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push) -> None:
    """A CALL for each element."""

    def pushed(inner: Block, element: Slots) -> None:
        push(inner, _applied(inner, stage, "f", element))

    _run(block, before, ends, pushed)


def _filtered(
    block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push
) -> None:
    """An IF around what is done with an element. Where the first that is left out ends the
    dataset, a slot says so."""
    takes_while = stage.node.operator.name == "TakeWhileDataset"
    ended = [_false(block)] if takes_while else []

    def pushed(inner: Block, element: Slots) -> None:
        (test,) = _applied(inner, stage, "predicate", element)
        inner.choose(inner.tensors_of[test], lambda each: push(each, element))
        if takes_while:
            inner.put(ended[0], Op.LOGICAL_NOT, [inner.tensors_of[test]])

    _run(block, before, [*ends, *ended], pushed)


def _taken(block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push) -> None:
    """Ends with the element of a count; a negative count takes all."""
    left = block.copied(stage.inputs[0])
    ended = _false(block)

    def count(inner: Block) -> None:
        test = [inner.tensors_of[left], inner.constant(0, _T.INT64)]
        inner.put(ended, Op.EQUAL, test)

    def pushed(inner: Block, element: Slots) -> None:
        inner.put(left, Op.SUB, [inner.tensors_of[left], inner.constant(1, _T.INT64)])
        count(inner)
        push(inner, element)

    count(block)
    _run(block, before, [*ends, ended], pushed)


def _repeated(
    block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push
) -> None:
    """A WHILE until a count is 0, or the dataset was empty; a negative count never is."""
    left = block.copied(stage.inputs[0])
    empty = _false(block)

    def asked(inner: Block) -> int:
        test = [inner.tensors_of[left], inner.constant(0, _T.INT64)]
        return _goes_on(inner, inner.op(Op.NOT_EQUAL, test, _T.BOOL), [*ends, empty])

    def pushed(inner: Block, element: Slots) -> None:
        inner.tensors_of[empty] = inner.constant(False, _T.BOOL)
        push(inner, element)

    def body(inner: Block) -> None:
        inner.put(left, Op.SUB, [inner.tensors_of[left], inner.constant(1, _T.INT64)])
        inner.tensors_of[empty] = inner.constant(True, _T.BOOL)
        _run(inner, before, ends, pushed)

    block.repeat(asked, body)


def _flattened(
    block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push
) -> None:
    """The elements of the dataset that a function makes of each element."""

    def pushed(inner: Block, element: Slots) -> None:
        _run(inner, _inner_stages(inner, stage, element), ends, push)

    _run(block, before, ends, pushed)


def _batched(
    block: Block, before: Sequence[_Stage], stage: _Stage, ends: Slots, push: Push
) -> None:
    """Slots that grow by an element each, up to a count; what is left comes last."""
    node, (size, drops) = stage.node, stage.inputs
    types = [node.type_of(name) for name in node["output_types"]]
    shapes = [shape[1:] if shape else None for shape in node["output_shapes"]]
    if any(shape is None or min(shape, default=0) < 0 for shape in shapes):
        raise ModelError("batches of elements of unknown shape")
    pairs = [(type, (0, *(shape or ()))) for type, shape in zip(types, shapes, strict=True)]

    def empty(inner: Block) -> list[int]:
        return [inner.constant(np.zeros(shape, np.int8), type) for type, shape in pairs]

    held = [block.slot(type, each) for type, each in zip(types, empty(block), strict=True)]
    count = block.slot(_T.INT64, block.constant(0, _T.INT64))

    def full(inner: Block) -> None:
        batch = [inner.copied(slot) for slot in held]
        inner.tensors_of.update(zip(held, empty(inner), strict=True))
        inner.tensors_of[count] = inner.constant(0, _T.INT64)
        push(inner, batch)

    def pushed(inner: Block, element: Slots) -> None:
        for slot, more in zip(held, element, strict=True):
            first = inner.constant(0, _T.INT32)
            row = inner.copied(more)
            inner.put(row, Op.EXPAND_DIMS, [inner.tensors_of[more], first])
            rows = [inner.tensors_of[each] for each in (slot, row)]
            inner.put(slot, Op.CONCATENATION, rows, ConcatenationOptions(axis=0))
        inner.put(count, Op.ADD, [inner.tensors_of[count], inner.constant(1, _T.INT64)])
        test = [inner.tensors_of[slot] for slot in (count, size)]
        inner.choose(inner.op(Op.EQUAL, test, _T.BOOL), full)

    _run(block, before, ends, pushed)
    some = [block.tensors_of[count], block.constant(0, _T.INT64)]
    rest = block.op(Op.GREATER, some, _T.BOOL)
    block.choose(_goes_on(block, rest, [*ends, drops]), full)


_STAGES = {
    "TensorSliceDataset": _slices,
    "MapDataset": _mapped,
    "FilterDataset": _filtered,
    "TakeWhileDataset": _filtered,
    "TakeDataset": _taken,
    "RepeatDataset": _repeated,
    "FlatMapDataset": _flattened,
    "BatchDatasetV2": _batched,
}


@rewriting(*_STAGES, _REDUCE)
def left(site: Site) -> bool:
    """A dataset that is no loop, see `as_loops`, stays one, and is refused."""
    return False
