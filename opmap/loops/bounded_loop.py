"""Loops whose number of iterations is computed before them: no condition, and no counters that
nothing else reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.bodies import Forms, results, translate_inside
from tflite_ort.opmap.loops.loop_carried import Moving, forms_inside, hand_on, loop_node, moving
from tflite_ort.opmap.loops.stacked_iterations import needed
from tflite_ort.schema import OperatorView, Specialized, TensorView, WhileOptions
from tflite_ort.schema.loops.induction_variables import Course
from tflite_ort.schema.loops.trip_count import Bounded

View = OperatorView[Any]


def bounded_loop(op: OperatorView[WhileOptions], g: Graph, limit: Bounded) -> None:
    """Loop without a condition."""
    body, states = op.bodies[1], moving(op)
    outside = forms_inside(g, op.present_inputs(), body)
    kept, operators = _kept(body, states, limit)
    most = _iterations(op, g, limit)

    def turn(goes_on: ir.Value, taken: Sequence[Forms]) -> Sequence[ir.Value]:
        inner, given = g.of_subgraph(), list(outside)
        for each, forms in zip(kept, taken, strict=True):
            given[each.place] = forms
        for index, forms in zip(body.inputs, given, strict=True):
            inner.take(body.tensors[index], forms)
        for inside in operators:
            translate_inside(g, inside, inner)
        domains = [each.domain for each in kept]
        made = results(g, inner, [each.made for each in kept], domains)
        return [g.op("Identity", goes_on), *made]

    if kept:
        finals = loop_node(g, kept, most, None, turn)
        for each, value in zip(kept, finals, strict=True):
            g.write(each.after, value, domain=each.domain)
    for each in states:
        if each not in kept:
            g.write(each.after, _last(g, limit.counters[each.place], most, each.after))
    hand_on(op, g, {each.place for each in states})


def _kept(
    body: Specialized, states: Sequence[Moving], limit: Bounded
) -> tuple[list[Moving], list[View]]:
    """The states that have to be handed from iteration to iteration, and what that takes: not
    counters, unless something else reads them."""
    kept = [each for each in states if each.place not in limit.counters]
    while True:
        operators = needed(body.operators, [each.made for each in kept], ())
        read = {tensor.index for op in operators for tensor in op.present_inputs()}
        read |= {each.made.index for each in kept}
        more = [each for each in states if each not in kept and each.taken.index in read]
        if not more:
            return kept, operators
        kept += more


def _iterations(op: OperatorView[WhileOptions], g: Graph, limit: Bounded) -> ir.Value:
    """How often it runs as int64, below 0 for not at all."""
    condition, counts = op.bodies[0], list[ir.Value]()
    for first, bound in limit.bounds:
        source = bound
        if not bound.is_constant:
            source = op.present_inputs()[condition.inputs.index(bound.index)]
        count = g.op("Cast", g.read(source), to=ir.DataType.INT64)
        if bound.rank:
            count = g.op("Reshape", count, g.constant([], np.int64))
        if first:
            count = g.op("Sub", count, g.constant(first, np.int64))
        counts.append(count)
    return counts[0] if len(counts) == 1 else g.op("Min", *counts)


def _last(g: Graph, course: Course, most: ir.Value, tensor: TensorView) -> ir.Value:
    """What a counter ends with."""
    count = g.op("Max", most, g.constant(0, np.int64))
    grown = g.op("Mul", count, g.constant(course.step))
    last = g.op("Add", grown, g.constant(course.first))
    return g.op("Cast", last, to=ir.DataType.from_numpy(tensor.dtype))
