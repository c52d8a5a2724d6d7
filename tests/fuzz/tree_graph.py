"""Mutations of graphs: wiring, operators, versions, pieces of other models."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.fuzz.tree import (
    Unfit,
    graph_number,
    operator_at,
    pick,
    set_at,
    used,
    with_graph,
    with_operator,
)
from tflite_ort.schema import Buffer, Model, Op, Operator, OperatorCode, SubGraph, Tensor
from tflite_ort.versioning.known import known_versions

Indices = tuple[int | None, ...]


def _drawn_index(draw: random.Random, graph: SubGraph) -> int | None:
    if draw.random() < 0.1:
        return draw.choice((None, len(graph.tensors), 2**31 - 1, -2, 0))
    return draw.randrange(max(1, len(graph.tensors)))


def _other_indices(draw: random.Random, graph: SubGraph, old: Indices) -> Indices:
    kind = draw.randrange(6)
    if kind == 0 and len(old) > 1:
        return tuple(draw.sample(old, len(old)))
    if kind == 1 and old:
        return old[:-1]
    if kind == 2:
        return (*old, _drawn_index(draw, graph))
    if kind == 3 and len(old) > 1:
        return set_at(old, draw.randrange(len(old)), draw.choice(old))
    if kind == 4 and draw.random() < 0.2:
        return ()
    return set_at(old, draw.randrange(len(old)), _drawn_index(draw, graph)) if old else (0,)


def inputs_of_operator(draw: random.Random, model: Model) -> Model:
    """What an operator reads."""
    graph, number, operator = operator_at(draw, model)
    inputs = _other_indices(draw, model.subgraphs[graph], operator.inputs)
    return with_operator(model, graph, number, inputs=inputs)


def outputs_of_operator(draw: random.Random, model: Model) -> Model:
    """What an operator writes."""
    graph, number, operator = operator_at(draw, model)
    outputs = _other_indices(draw, model.subgraphs[graph], operator.outputs)
    return with_operator(model, graph, number, outputs=outputs)


def ends_of_graph(draw: random.Random, model: Model) -> Model:
    """The inputs or outputs of a subgraph."""
    graph = graph_number(draw, model)
    subgraph = model.subgraphs[graph]
    side = draw.choice(("inputs", "outputs"))
    old: Indices = getattr(subgraph, side)
    new = tuple(-1 if each is None else each for each in _other_indices(draw, subgraph, old))
    return with_graph(model, graph, **{side: new})


def order_of_operators(draw: random.Random, model: Model) -> Model:
    """Operators exchanged, removed or there twice."""
    graph = graph_number(draw, model)
    operators = list(model.subgraphs[graph].operators)
    at, kind = pick(draw, range(len(operators))), draw.randrange(3)
    if kind == 0:
        draw.shuffle(operators)
    elif kind == 1:
        del operators[at]
    else:
        operators.insert(draw.randrange(len(operators) + 1), operators[at])
    return with_graph(model, graph, operators=tuple(operators))


def version(draw: random.Random, model: Model) -> Model:
    """The version of an operator."""
    at = pick(draw, range(len(model.operator_codes)))
    code = model.operator_codes[at]
    known = sorted(known_versions(code.builtin_code)) or [1]
    number = draw.choice(known) if draw.random() < 0.8 else draw.choice((0, -1, max(known) + 1, 99))
    codes = set_at(model.operator_codes, at, replace(code, version=number))
    return replace(model, operator_codes=codes)


def other_operator(draw: random.Random, model: Model) -> Model:
    """Another operator over the same tensors, with or without the old one's options."""
    graph, number, operator = operator_at(draw, model)
    op = draw.choice(list(Op))
    code = OperatorCode(op, None, draw.choice(sorted(known_versions(op)) or [1]))
    model = replace(model, operator_codes=(*model.operator_codes, code))
    at = len(model.operator_codes) - 1
    options = operator.options if draw.random() < 0.3 else None
    return with_operator(model, graph, number, opcode_index=at, options=options)


def same_arity(draw: random.Random, model: Model, donor: Model) -> Model:
    """An operator of another model over the tensors of one that takes as many."""
    graph, number, operator = operator_at(draw, model)
    _, _, other = operator_at(draw, donor)
    if len(other.inputs) != len(operator.inputs) or other.opcode_index >= len(donor.operator_codes):
        raise Unfit
    code = donor.operator_codes[other.opcode_index]
    model = replace(model, operator_codes=(*model.operator_codes, code))
    at = len(model.operator_codes) - 1
    return with_operator(model, graph, number, opcode_index=at, options=other.options)


def graft(draw: random.Random, model: Model, donor: Model) -> Model:
    """The main graph of another model after, or beside, the main graph of this one."""
    if not model.subgraphs or not donor.subgraphs:
        raise Unfit
    scion, stock = donor.subgraphs[0], model.subgraphs[0]
    if len(donor.subgraphs) > 1 or len(scion.tensors) + len(stock.tensors) > 200:
        raise Unfit
    offset, moved = len(stock.tensors), _moved(model, donor)
    made = list(used(stock)) + list(stock.inputs)
    joined = {each: _joint(draw, model, scion, each, made) for each in scion.inputs}

    def index(old: int) -> int:
        new = joined.get(old)
        return old + offset if new is None else new

    codes = len(model.operator_codes)
    operators = tuple(_shifted(op, codes, index) for op in scion.operators)
    fed = tuple(each + offset for each in scion.inputs if joined[each] is None)
    results = tuple(index(each) for each in scion.outputs)
    outputs = results if draw.random() < 0.5 else (*stock.outputs, *results)
    model = replace(
        model,
        operator_codes=(*model.operator_codes, *donor.operator_codes),
        buffers=(*model.buffers, *donor.buffers),
    )
    return with_graph(
        model,
        0,
        tensors=(*stock.tensors, *moved),
        operators=(*stock.operators, *operators),
        inputs=(*stock.inputs, *fed),
        outputs=outputs,
    )


def _moved(model: Model, donor: Model) -> list[Tensor]:
    """The donor's tensors with their buffers behind the model's own."""
    behind = len(model.buffers)
    return [replace(t, buffer=t.buffer + behind) for t in donor.subgraphs[0].tensors]


def _joint(
    draw: random.Random, model: Model, scion: SubGraph, tensor: int, made: list[int]
) -> int | None:
    """A tensor of the stock that takes the place of an input; None: it stays one."""
    if not 0 <= tensor < len(scion.tensors) or draw.random() < 0.2:
        return None
    wanted, stock = scion.tensors[tensor], model.subgraphs[0].tensors
    fitting = [i for i in made if 0 <= i < len(stock) and stock[i].type == wanted.type]
    alike = [i for i in fitting if stock[i].shape == wanted.shape]
    return draw.choice(alike or fitting) if fitting else None


def _shifted(operator: Operator, codes: int, index: object) -> Operator:
    assert callable(index)
    return replace(
        operator,
        opcode_index=operator.opcode_index + codes,
        inputs=tuple(None if each is None else index(each) for each in operator.inputs),
        outputs=tuple(index(each) for each in operator.outputs),
        intermediates=tuple(index(each) for each in operator.intermediates),
    )


def graft_tensor(draw: random.Random, model: Model, donor: Model) -> Model:
    """A tensor of another model, with its data, in the place of one."""
    if not donor.subgraphs or not donor.subgraphs[0].tensors:
        raise Unfit
    graph = graph_number(draw, model)
    tensors = model.subgraphs[graph].tensors
    at, new = pick(draw, range(len(tensors))), draw.choice(donor.subgraphs[0].tensors)
    inside = 0 < new.buffer < len(donor.buffers)
    buffers = (*model.buffers, donor.buffers[new.buffer] if inside else Buffer())
    new = replace(new, buffer=len(buffers) - 1 if inside else 0)
    return with_graph(replace(model, buffers=buffers), graph, tensors=set_at(tensors, at, new))


def graft_options(draw: random.Random, model: Model, donor: Model) -> Model:
    """The options of an operator of another model."""
    graph, number, _ = operator_at(draw, model)
    _, _, other = operator_at(draw, donor)
    return with_operator(model, graph, number, options=other.options)


def add_subgraph(draw: random.Random, model: Model, donor: Model) -> Model:
    """A subgraph more: one of this model, one of another that has no constants; or one less."""
    if draw.random() < 0.2:
        return replace(model, subgraphs=model.subgraphs[:-1])
    if draw.random() < 0.5:
        return replace(model, subgraphs=(*model.subgraphs, pick(draw, model.subgraphs)))
    codes = len(model.operator_codes)
    graph = pick(draw, donor.subgraphs)
    operators = tuple(_shifted(op, codes, lambda index: index) for op in graph.operators)
    behind = len(model.buffers)
    tensors = tuple(replace(t, buffer=t.buffer + behind) for t in graph.tensors)
    return replace(
        model,
        operator_codes=(*model.operator_codes, *donor.operator_codes),
        buffers=(*model.buffers, *donor.buffers),
        subgraphs=(*model.subgraphs, replace(graph, operators=operators, tensors=tensors)),
    )
