"""Operators that stand for a subgraph, replaced by the operators of that subgraph."""

from __future__ import annotations

from typing import NewType

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flow import inlined_subgraph
from tflite_ort.schema.file.model import (
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Tensor,
)
from tflite_ort.schema.file.options import ReshapeOptions, ShapeOptions
from tflite_ort.schema.values.resolve import CODES

# A model without such operators, made by `flat`. Shapes and plans are made of such a model only.
FlatModel = NewType("FlatModel", Model)

# What copies a tensor of any type: a RESHAPE to its own shape.
_COPY = (OperatorCode(builtin_code=Op.SHAPE), OperatorCode(builtin_code=Op.RESHAPE))


def inlined(model: Model, subgraph: int = 0, meter: Meter | None = None) -> Model:
    """`model` with the calls and composites of one subgraph replaced by what they call.

    The subgraph's own tensors keep their indices; those of the called ones come after them.

    Args:
        meter: counts the operators that come in.

    Raises:
        BudgetExceeded: there are more of them than their budget.
    """
    graph = model.subgraphs[subgraph]
    if not any(inlined_subgraph(model, operator) is not None for operator in graph.operators):
        return model
    added = tuple(code for code in _COPY if code not in model.operator_codes)
    model = replace(model, operator_codes=(*model.operator_codes, *added))
    flat = _flattened(model, graph, meter or Meter(model.budgets))
    graphs = list(model.subgraphs)
    graphs[subgraph] = flat
    return replace(model, subgraphs=tuple(graphs))


def flat(model: Model) -> FlatModel:
    """`model` with the calls and composites of all its subgraphs replaced by what they call.

    Raises:
        BudgetExceeded, ModelError: as `inlined`.
    """
    meter = Meter(model.budgets)
    for subgraph in range(len(model.subgraphs)):
        model = inlined(model, subgraph, meter)
    return FlatModel(model)


def _flattened(model: Model, graph: SubGraph, meter: Meter) -> SubGraph:
    tensors, operators = list(graph.tensors), []
    for operator in graph.operators:
        called = inlined_subgraph(model, operator)
        if called is None:
            operators.append(operator)
            continue
        body = _flattened(model, model.subgraphs[called], meter)
        meter.spend("called_operators", 1 + len(body.operators), f"the call of subgraph {called}")
        operators += _substituted(model, body, operator, tensors)
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def _substituted(
    model: Model, body: SubGraph, caller: Operator, tensors: list[Tensor]
) -> list[Operator]:
    """The operators of `body` over the caller's tensors, to which those of `body` are added. What
    `body` gives back and does not compute, or gives twice, is copied."""
    given = tuple(zip(body.inputs, caller.inputs, strict=True))
    results = tuple(zip(body.outputs, caller.outputs, strict=True))
    for index, outer in (*given, *results):
        if outer is not None:
            _check_codes(body.tensors[index], tensors[outer])
    made = {index for operator in body.operators for index in operator.outputs}
    place: dict[int, int | None] = dict(given)
    copied = []
    for index, outer in results:
        if index in place or index not in made:
            copied.append((index, outer))
        else:
            place[index] = outer
    for index, tensor in enumerate(body.tensors):
        if index not in place:
            place[index] = len(tensors)
            tensors.append(tensor)
    operators = [
        replace(
            operator,
            inputs=tuple(None if i is None else place[i] for i in operator.inputs),
            outputs=_present(place, operator.outputs),
            intermediates=_present(place, operator.intermediates),
        )
        for operator in body.operators
    ]
    for index, outer in copied:
        operators += _copy(model, place[index], outer, tensors)
    return operators


def _copy(model: Model, source: int | None, target: int, tensors: list[Tensor]) -> list[Operator]:
    """The operators that copy one tensor of the caller to another."""
    shape = len(tensors)
    rank = 0 if source is None else len(tensors[source].shape)
    tensors.append(Tensor(shape=(rank,), type=TensorType.INT32, has_rank=True))
    rows = (
        ((source,), shape, ShapeOptions(out_type=TensorType.INT32)),
        ((source, shape), target, ReshapeOptions()),
    )
    return [
        Operator(
            opcode_index=model.operator_codes.index(code),
            inputs=inputs,
            outputs=(output,),
            options=options,
        )
        for code, (inputs, output, options) in zip(_COPY, rows, strict=True)
    ]


def _check_codes(inner: Tensor, outer: Tensor) -> None:
    """Codes mean the same on both sides of a call.

    Raises:
        ModelError: they have two scales, or zero points. TFLite hands the bytes on.
    """
    if inner.type in CODES and _is_other(inner.quantization, outer.quantization):
        raise ModelError(
            f"{outer.name!r} has another scale than {inner.name!r} of the subgraph that is called"
        )


def _is_other(one: QuantizationParameters | None, other: QuantizationParameters | None) -> bool:
    if one is None or other is None or one.scale is None or other.scale is None:
        return False
    zero, zeros = (0 if each.zero_point is None else each.zero_point for each in (one, other))
    return not (np.array_equal(one.scale, other.scale) and np.array_equal(zero, zeros))


def _present(place: dict[int, int | None], indices: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(new for new in map(place.__getitem__, indices) if new is not None)
