"""Branches and loops: If and Loop around the operators of the called subgraphs.

What a body reads from outside and does not change it captures. Variables that a body sets are
results of the branch or part of the loop's state, as the operator's further inputs say. CALL_ONCE
is not translated: for what runs once a session is not worth its while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.bodies import (
    Forms,
    declare,
    element_type,
    inlined,
    results,
    shared_domain,
)
from tflite_ort.opmap.forms import Domain, Layout
from tflite_ort.opmap.graph import Graph
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


@translator(Op.IF, versions=(1, 1), inputs=("condition", "values*"))
def if_(op: OperatorView[IfOptions], g: Graph) -> None:
    """If."""
    _choose(op, [g.read(op["condition"])], g)


@translator(Op.STABLEHLO_CASE, versions=(1, 1), inputs=("index", "values*"))
def stablehlo_case(op: OperatorView[StablehloCaseOptions], g: Graph) -> None:
    """An If per branch but the last, inside one another: index == 0, index == 1, ..."""
    index = g.read(op["index"])
    numbers = [g.constant(number, np.int32) for number in range(len(op.bodies) - 1)]
    _choose(op, [g.op("Equal", index, number) for number in numbers], g)


def _choose(op: OperatorView[Any], tests: Sequence[ir.Value], g: Graph) -> None:
    """The first body whose test holds, else the last one."""
    given = op.present_inputs()[1:]
    results_of = _results(op)
    bodies = [[body.tensors[body.outputs[k]] for k in results_of] for body in op.bodies]
    targets = list(results_of.values())
    _check_strings(targets, g)
    domains = [shared_domain(*row) for row in zip(targets, *bodies, strict=True)]
    forms = [_forms(g, given, body) for body in op.bodies]
    if not targets:
        return

    def branch(number: int) -> Sequence[ir.Value]:
        inner = inlined(g, op.bodies[number], forms[number])
        return results(g, inner, bodies[number], domains)

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


def _forms(g: Graph, given: Sequence[TensorView], body: Specialized) -> list[Forms]:
    """In which forms a body has what it is given; made outside of it."""
    pairs = zip(given, body.inputs, strict=True)
    return [g.forms_as(source, body.tensors[index]) for source, index in pairs]


def _results(op: OperatorView[Any]) -> dict[int, TensorView]:
    """What `op` makes, by the place among the outputs of its bodies: its outputs, then those of
    its variables that are set."""
    targets = [*op.outputs, *op.present_inputs()[-len(op.bodies[-1].variables) or None :]]
    if not op.bodies[-1].variables:
        targets = list(op.outputs)
    made = len(op.outputs)
    return {k: t for k, t in enumerate(targets) if k < made or t.is_variable}


@translator(Op.WHILE, versions=(1, 1), inputs=("values*",))
def while_(op: OperatorView[WhileOptions], g: Graph) -> None:
    """Loop: the condition before it and, on the new values, at the end of its body."""
    condition, body = op.bodies
    state, targets = op.present_inputs(), _results(op)
    changed = body.changed()
    if condition.changed():
        raise Untranslatable("its condition sets a variable")
    moving = [
        k
        for k, (taken, made) in enumerate(zip(body.inputs, body.outputs, strict=True))
        if taken != made or taken in changed
    ]
    tensors = {k: body.tensors[body.inputs[k]] for k in moving}
    made = {k: body.tensors[body.outputs[k]] for k in moving}
    tested = {k: condition.tensors[condition.inputs[k]] for k in moving}
    _check_strings(tensors.values(), g)
    domains = {
        k: shared_domain(state[k], targets[k], tensors[k], made[k], tested[k]) for k in moving
    }
    outside = _forms(g, state, body)
    outside_test = _forms(g, state, condition)
    first = _test(g, condition, outside_test)

    def iteration(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        given, given_test = list(outside), list(outside_test)
        for counter in arguments[:2]:  # ONNX Runtime needs their shapes
            counter.shape = ir.Shape([])
        for k, value in zip(moving, arguments[2:], strict=True):
            declare(value, tensors[k])
            given[k] = {g.form(tensors[k], Layout.LAST, domains[k]): value}
        inner = inlined(g, body, given)
        values = results(g, inner, list(made.values()), list(domains.values()))
        for k, value in zip(moving, values, strict=True):
            given_test[k] = {g.form(tested[k], Layout.LAST, domains[k]): value}
        return [_test(g, condition, given_test), *values]

    types = [element_type(tensors[k], domains[k]) for k in moving]
    loop = g.body([ir.DataType.INT64, ir.DataType.BOOL, *types], iteration)
    initial = [g.read(state[k], layout=Layout.LAST, domain=domains[k]) for k in moving]
    finals = g.op_multi("Loop", None, first, *initial, outputs=len(moving), body=loop)
    for k, value in zip(moving, finals, strict=True):
        g.write(targets[k], value, domain=domains[k])
    for k in targets.keys() - set(moving):
        g.take(targets[k], g.forms_as(state[k], targets[k]))


def _test(g: Graph, condition: Specialized, given: Sequence[Forms]) -> ir.Value:
    """The condition as a bool without dimensions, made where `g` is now."""
    inner = inlined(g, condition, given)
    (value,) = results(g, inner, [condition.tensors[condition.outputs[0]]], [Domain.REAL])
    return g.op("Reshape", value, g.constant([], np.int64))


def _check_strings(tensors: Iterable[TensorView], g: Graph) -> None:
    if g.target.fallback and any(tensor.type is TensorType.STRING for tensor in tensors):
        raise Untranslatable("strings of any bytes are left to the kernels")
