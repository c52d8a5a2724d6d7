"""WHILE with a trip count that is computed before it runs: a Loop without a condition.

A counter that only the condition reads is not carried through the Loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.graph.bodies import Forms, results, translate_inside
from tflite_ort.opmap.loops.loop_carried import (
    LoopCarried,
    forms_inside,
    loop_carried,
    loop_node,
    pass_through,
)
from tflite_ort.opmap.loops.stacked_iterations import needed
from tflite_ort.schema import OperatorView, Specialized, TensorView, WhileOptions
from tflite_ort.schema.loops.induction_variables import InductionVariable
from tflite_ort.schema.loops.trip_count import Bounded

View = OperatorView[Any]


def bounded_loop(op: OperatorView[WhileOptions], g: Graph, limit: Bounded) -> None:
    """WHILE as a Loop without a condition.

    Args:
        limit: what gives the trip count.
    """
    body, values = op.bodies[1], loop_carried(op)
    outside = forms_inside(g, op.present_inputs(), body)
    kept, operators = _kept(body, values, limit)
    trip_count = _trip_count(op, g, limit)

    def build_body(condition: ir.Value, arguments: Sequence[Forms]) -> Sequence[ir.Value]:
        inner, inputs = g.of_subgraph(), list(outside)
        for value, forms in zip(kept, arguments, strict=True):
            inputs[value.place] = forms
        for index, forms in zip(body.inputs, inputs, strict=True):
            inner.take(body.tensors[index], forms)
        for inside in operators:
            translate_inside(g, inside, inner)
        domains = [value.domain for value in kept]
        after = results(g, inner, [value.result for value in kept], domains)
        return [g.op("Identity", condition), *after]

    if kept:
        finals = loop_node(g, kept, trip_count, None, build_body)
        for value, final in zip(kept, finals, strict=True):
            g.write(value.final, final, domain=value.domain)
    for value in values:
        if value not in kept:
            counter = limit.counters[value.place]
            g.write(value.final, _final(g, counter, trip_count, value.final))
    pass_through(op, g, {value.place for value in values})


def _kept(
    body: Specialized, values: Sequence[LoopCarried], limit: Bounded
) -> tuple[list[LoopCarried], list[View]]:
    """The loop-carried values that the Loop has to carry, and the operators that compute them.

    A counter is left out unless one of these operators, or a kept value, reads it.
    """
    kept = [value for value in values if value.place not in limit.counters]
    while True:
        operators = needed(body.operators, [value.result for value in kept], ())
        read = {tensor.index for op in operators for tensor in op.present_inputs()}
        read |= {value.result.index for value in kept}
        more = [value for value in values if value not in kept and value.argument.index in read]
        if not more:
            return kept, operators
        kept += more


def _trip_count(op: OperatorView[WhileOptions], g: Graph, limit: Bounded) -> ir.Value:
    """The trip count as an int64 scalar; a negative one means that no iteration runs."""
    condition, counts = op.bodies[0], list[ir.Value]()
    for first, bound in limit.bounds:
        if bound.data is not None:  # its index is one of the condition's, not of the graph's
            counts.append(g.ints(bound.data.item() - first))
            continue
        source = op.present_inputs()[condition.inputs.index(bound.index)]
        count = g.whole(source)
        if bound.rank:
            count = g.reshape(count, ())
        if first:
            count = g.op("Sub", count, g.ints(first))
        counts.append(count)
    return g.smaller(*counts)


def _final(
    g: Graph, counter: InductionVariable, trip_count: ir.Value, tensor: TensorView
) -> ir.Value:
    """The value of `counter` after the loop, in the type of `tensor`."""
    count = g.larger(trip_count, g.ints(0))
    growth = g.op("Mul", count, g.constant(counter.step))
    final = g.op("Add", growth, g.constant(counter.first))
    return g.cast(final, tensor.dtype)
