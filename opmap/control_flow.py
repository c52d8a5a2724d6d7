"""IF, STABLEHLO_CASE and WHILE: If and Loop around the operators of the called subgraphs.

A body captures the outer values that it only reads. Variables that a body sets are further
results of a branch, or further loop-carried values; the operator lists them as further inputs.
CALL_ONCE has no translation: a kernel runs it once, and a session would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, inlined, results, shared_domain
from tflite_ort.opmap.loops.bounded_loop import bounded_loop
from tflite_ort.opmap.loops.counted_loop import counted_loop
from tflite_ort.opmap.loops.loop_carried import (
    forms_inside,
    loop_carried,
    loop_node,
    pass_through,
    results_by_place,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    IfOptions,
    Op,
    OperatorView,
    Specialized,
    StablehloCaseOptions,
    TensorType,
    TensorView,
    Untranslatable,
    WhileOptions,
)
from tflite_ort.schema.loops.trip_count import bounded, counted


@translator(Op.IF, versions=(1, 1))
def if_(op: OperatorView[IfOptions], g: Graph) -> None:
    """IF as If."""
    _choose(op, [g.read(op["condition"])], g)


@translator(Op.STABLEHLO_CASE, versions=(1, 1))
def stablehlo_case(op: OperatorView[StablehloCaseOptions], g: Graph) -> None:
    """Nested If nodes, one for each branch but the last: index == 0, index == 1, ..."""
    index = g.read(op["index"])
    numbers = [g.constant(number, np.int32) for number in range(len(op.bodies) - 1)]
    _choose(op, [g.op("Equal", index, number) for number in numbers], g)


def _choose(op: OperatorView[Any], tests: Sequence[ir.Value], g: Graph) -> None:
    """Run the first body whose test is true, or the last body if none is."""
    places, targets = list(results_by_place(op)), list(results_by_place(op).values())
    bodies = [[body.tensors[body.outputs[place]] for place in places] for body in op.bodies]
    _check_strings(targets, g)
    domains = [shared_domain(*row) for row in zip(targets, *bodies, strict=True)]
    forms = [forms_inside(g, op.present_inputs()[1:], body) for body in op.bodies]
    if not targets:
        return

    def branch(number: int) -> Sequence[ir.Value]:
        return results(g, inlined(g, op.bodies[number], forms[number]), bodies[number], domains)

    def chosen(number: int) -> Sequence[ir.Value]:
        if number == len(tests):
            return branch(number)
        then = g.body((), lambda _: branch(number))
        otherwise = g.body((), lambda _: chosen(number + 1))
        return g.op_multi(
            "If", tests[number], outputs=len(targets), then_branch=then, else_branch=otherwise
        )

    for target, value, domain in zip(targets, chosen(0), domains, strict=True):
        g.write(target, value, domain=domain)


@translator(Op.WHILE, versions=(1, 1))
def while_(op: OperatorView[WhileOptions], g: Graph) -> None:
    """WHILE without a Loop where the trip count is known, see `counted_loop`; otherwise a Loop.

    The Loop has a trip count where one can be computed before it runs, see `bounded_loop`.
    """
    condition, body = op.bodies
    if condition.changed():
        raise Untranslatable("its condition sets a variable")
    _check_strings([value.argument for value in loop_carried(op)], g)
    loop = counted(op.present_inputs(), condition, body)
    if loop is not None and counted_loop(op, g, loop):
        return
    limit = bounded(op.present_inputs(), condition, body)
    if limit is not None and not body.changed():
        bounded_loop(op, g, limit)
    else:
        _loop(op, g)


def _loop(op: OperatorView[WhileOptions], g: Graph) -> None:
    """WHILE as a Loop: the condition is computed before it, and at the end of its body."""
    condition, body = op.bodies
    inputs, carried = op.present_inputs(), loop_carried(op)
    outside, outside_test = forms_inside(g, inputs, body), forms_inside(g, inputs, condition)

    def build_body(_: ir.Value, arguments: Sequence[Forms]) -> Sequence[ir.Value]:
        body_inputs, test_inputs = list(outside), list(outside_test)
        for value, forms in zip(carried, arguments, strict=True):
            body_inputs[value.place] = forms
        inner = inlined(g, body, body_inputs)
        domains = [value.domain for value in carried]
        after = results(g, inner, [value.result for value in carried], domains)
        for value, result in zip(carried, after, strict=True):
            form = g.form(value.condition_argument, Layout.LAST, value.domain)
            test_inputs[value.place] = {form: result}
        return [_test(g, condition, test_inputs), *after]

    finals = loop_node(g, carried, None, _test(g, condition, outside_test), build_body)
    for value, final in zip(carried, finals, strict=True):
        g.write(value.final, final, domain=value.domain)
    pass_through(op, g, {value.place for value in carried})


def _test(g: Graph, condition: Specialized, inputs: Sequence[Forms]) -> ir.Value:
    """The condition of WHILE as a bool scalar, in the body that `g` builds now."""
    inner = inlined(g, condition, inputs)
    tensor = condition.tensors[condition.outputs[0]]
    (value,) = results(g, inner, [tensor], [Domain.REAL])
    if tensor.rank == 0 and tensor.index not in condition.inputs:
        return value
    return g.reshape(value, ())


def _check_strings(tensors: Iterable[TensorView], g: Graph) -> None:
    if g.target.fallback and any(tensor.type is TensorType.STRING for tensor in tensors):
        raise Untranslatable("strings of any bytes are left to the kernels")
