"""WHILE with a trip count that is computed before it runs: a Loop without a condition.

The Loop does not carry a counter that only the condition reads. If a loop of known trip count would
need no Loop, an If chooses: nodes without a Loop while the trip count stays within all lists, and a
Loop for larger ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.bodies import Forms, distinct, results, translate_inside
from tflite_ort.opmap.loops.counted_loop import Run
from tflite_ort.opmap.loops.loop_carried import (
    LoopCarried,
    forms_inside,
    loop_carried,
    loop_node,
    pass_through,
)
from tflite_ort.opmap.loops.stacked_iterations import needed
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Specialized, TensorView, Untranslatable, WhileOptions
from tflite_ort.schema.loops.induction_variables import InductionVariable
from tflite_ort.schema.loops.loop_rows import of_unknown_count
from tflite_ort.schema.loops.trip_count import Bounded

View = OperatorView[Any]
Finals = Mapping[int, ir.Value]
# Both branches hold the constants of the body. A body with more bytes gets a Loop alone.
_MOST_TWICE = 1 << 22


@record
class _Bounded:
    """A WHILE under translation.

    Args:
        values: the loop-carried values.
        outside: the forms of the inputs of the body.
        trip_count: an int64 scalar.
    """

    op: OperatorView[WhileOptions]
    g: Graph
    limit: Bounded
    values: Sequence[LoopCarried]
    outside: Sequence[Forms]
    trip_count: ir.Value

    @property
    def body(self) -> Specialized:
        return self.op.bodies[1]


def bounded_loop(op: OperatorView[WhileOptions], g: Graph, limit: Bounded) -> None:
    """WHILE as a Loop without a condition, or as an If.

    Args:
        limit: what gives the trip count.
    """
    values = loop_carried(op)
    outside = forms_inside(g, op.present_inputs(), op.bodies[1])
    trip_count = _trip_count(op, g, limit)
    for value in values:  # outside of the bodies
        g.read(value.initial, domain=value.domain)
    loop = _Bounded(op, g, limit, values, outside, trip_count)
    finals = _chosen(loop) or _repeated(loop)
    for value in values:
        if value.place in finals:
            g.write(value.final, finals[value.place], domain=value.domain)
        else:
            counter = limit.counters[value.place]
            g.write(value.final, _final(g, counter, trip_count, value.final))
    pass_through(op, g, {value.place for value in values})


def _chosen(loop: _Bounded) -> Finals:
    """By place, the final values, counters aside: an If of `Run` and a Loop. Empty if `Run` cannot
    compute them."""
    g, counted = loop.g, of_unknown_count(loop.limit, loop.body)
    places = [value.place for value in loop.values if value.place not in loop.limit.counters]
    if counted is None or not places or not _is_worth_it(loop.body):
        return {}
    times = loop.trip_count.const_value
    if times is not None and times.array.item() > counted.most:
        return {}  # ONNX Runtime would fold the numbers of all iterations
    run = Run.of(loop.op, g, counted, loop.trip_count)
    if not run.is_plain:
        return {}

    def at_once(_: object) -> Sequence[ir.Value]:
        if not run.finish():
            raise Untranslatable("its iterations change shapes")
        return distinct(g, [run.finals[place] for place in places])

    def one_by_one(_: object) -> Sequence[ir.Value]:
        finals = _repeated(loop)
        return [finals[place] for place in places]

    def unchanged(_: object) -> Sequence[ir.Value]:
        values = {value.place: value for value in loop.values}
        first = (g.read(values[p].initial, domain=values[p].domain) for p in places)
        return distinct(g, list(first))

    try:
        then = g.body((), at_once)
    except Untranslatable:
        return {}
    test = g.op("Greater", loop.trip_count, g.ints(0))
    if loop.limit.size is None:
        inside = g.op("LessOrEqual", loop.trip_count, g.ints(counted.most))
        test, otherwise = g.op("And", test, inside), g.body((), one_by_one)
    else:  # what is computed is not much larger than a list that is as long
        otherwise = g.body((), unchanged)
    made = g.op_multi("If", test, outputs=len(places), then_branch=then, else_branch=otherwise)
    return dict(zip(places, made, strict=True))


def _is_worth_it(body: Specialized) -> bool:
    """Whether `body` is small enough to stand in two branches, and calls no other."""
    constants = {
        tensor.index: tensor.data.nbytes
        for op in body.operators
        for tensor in op.present_inputs()
        if tensor.data is not None
    }
    return sum(constants.values()) <= _MOST_TWICE and not any(op.bodies for op in body.operators)


def _repeated(loop: _Bounded) -> Finals:
    """The final values that a Loop carries, by position."""
    g, body = loop.g, loop.body
    kept, operators = _needed_values(body, loop.values, loop.limit)
    if not kept:
        return {}

    def build_body(condition: ir.Value, arguments: Sequence[Forms]) -> Sequence[ir.Value]:
        inner, inputs = g.of_subgraph(), list(loop.outside)
        for value, forms in zip(kept, arguments, strict=True):
            inputs[value.place] = forms
        for index, forms in zip(body.inputs, inputs, strict=True):
            inner.take(body.tensors[index], forms)
        for inside in operators:
            translate_inside(g, inside, inner)
        domains = [value.domain for value in kept]
        after = results(g, inner, [value.result for value in kept], domains)
        return [g.op("Identity", condition), *after]

    finals = loop_node(g, kept, loop.trip_count, None, build_body)
    return {value.place: final for value, final in zip(kept, finals, strict=True)}


def _needed_values(
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
    condition, known, counts = op.bodies[0], list[int](), list[ir.Value]()
    bounds = {(first, bound.index): bound for first, bound in limit.bounds}
    for (first, _), bound in bounds.items():
        source = bound
        if bound.data is None:  # else its index is one of the condition's, not of the graph's
            source = op.present_inputs()[condition.inputs.index(bound.index)]
        if source.data is not None:
            known.append(source.data.item() - first)
            continue
        count = g.whole(source)
        if bound.rank:
            count = g.reshape(count, ())
        if first:
            count = g.op("Sub", count, g.ints(first))
        counts.append(count)
    return g.smaller(*(g.ints(each) for each in sorted(known)[:1]), *counts)


def _final(
    g: Graph, counter: InductionVariable, trip_count: ir.Value, tensor: TensorView
) -> ir.Value:
    """The value of `counter` after the loop, in the type of `tensor`."""
    count = g.larger(trip_count, g.ints(0))
    growth = g.op("Mul", count, g.constant(counter.step))
    final = g.op("Add", growth, g.constant(counter.first))
    return g.cast(final, tensor.dtype)
