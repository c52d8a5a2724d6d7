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

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, inlined, results, shared_domain
from tflite_ort.opmap.loops.bounded_loop import bounded_loop
from tflite_ort.opmap.loops.counted_loop import counted_loop
from tflite_ort.opmap.loops.loop_carried import forms_inside, given_back, hand_on, loop_node, moving
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
    made, targets = list(given_back(op)), list(given_back(op).values())
    bodies = [[body.tensors[body.outputs[k]] for k in made] for body in op.bodies]
    _check_strings(targets, g)
    domains = [shared_domain(*row) for row in zip(targets, *bodies, strict=True)]
    forms = [forms_inside(g, given, body) for body in op.bodies]
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


@translator(Op.WHILE, versions=(1, 1), inputs=("values*",))
def while_(op: OperatorView[WhileOptions], g: Graph) -> None:
    """What a known number of iterations does, see `counted_loop`; else a Loop, with a number of
    iterations if one is computed before it."""
    condition, body = op.bodies
    if condition.changed():
        raise Untranslatable("its condition sets a variable")
    _check_strings([each.taken for each in moving(op)], g)
    loop = counted(op.present_inputs(), condition, body)
    if loop is not None and counted_loop(op, g, loop):
        return
    limit = bounded(op.present_inputs(), condition, body)
    if limit is not None and not body.changed():
        bounded_loop(op, g, limit)
    else:
        _loop(op, g)


def _loop(op: OperatorView[WhileOptions], g: Graph) -> None:
    """Loop: the condition before it and, on the new values, at the end of its body."""
    condition, body = op.bodies
    state, states = op.present_inputs(), moving(op)
    outside, outside_test = forms_inside(g, state, body), forms_inside(g, state, condition)

    def turn(_: ir.Value, taken: Sequence[Forms]) -> Sequence[ir.Value]:
        given, given_test = list(outside), list(outside_test)
        for each, forms in zip(states, taken, strict=True):
            given[each.place] = forms
        inner = inlined(g, body, given)
        domains = [each.domain for each in states]
        values = results(g, inner, [each.made for each in states], domains)
        for each, value in zip(states, values, strict=True):
            given_test[each.place] = {g.form(each.tested, Layout.LAST, each.domain): value}
        return [_test(g, condition, given_test), *values]

    finals = loop_node(g, states, None, _test(g, condition, outside_test), turn)
    for each, value in zip(states, finals, strict=True):
        g.write(each.after, value, domain=each.domain)
    hand_on(op, g, {each.place for each in states})


def _test(g: Graph, condition: Specialized, given: Sequence[Forms]) -> ir.Value:
    """The condition as a bool without dimensions, made where `g` is now."""
    inner = inlined(g, condition, given)
    tensor = condition.tensors[condition.outputs[0]]
    (value,) = results(g, inner, [tensor], [Domain.REAL])
    if tensor.rank == 0 and tensor.index not in condition.inputs:
        return value
    return g.op("Reshape", value, g.constant([], np.int64))


def _check_strings(tensors: Iterable[TensorView], g: Graph) -> None:
    if g.target.fallback and any(tensor.type is TensorType.STRING for tensor in tensors):
        raise Untranslatable("strings of any bytes are left to the kernels")
