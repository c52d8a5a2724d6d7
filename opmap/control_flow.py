"""Branches and loops: If and Loop around the operators of the called subgraphs.

What a body reads from outside and does not change it captures. Variables that a body sets are
results of the branch or part of the loop's state, as the operator's further inputs say. CALL_ONCE
is not translated: for what runs once a session is not worth its while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    made, targets = list(_results(op)), list(_results(op).values())
    bodies = [[body.tensors[body.outputs[k]] for k in made] for body in op.bodies]
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
    variables = op.present_inputs()[len(op.present_inputs()) - len(op.bodies[-1].variables) :]
    every = enumerate([*op.outputs, *variables])
    return {k: tensor for k, tensor in every if k < len(op.outputs) or tensor.is_variable}


@dataclass(frozen=True, slots=True)
class _Moving:
    """A value of a loop's state that an iteration changes.

    Args:
        before, after: the loop, in its caller; the same where that does not keep it.
        taken, made: by the body.
        tested: by the condition.
    """

    place: int
    before: TensorView
    after: TensorView
    taken: TensorView
    made: TensorView
    tested: TensorView

    @property
    def domain(self) -> Domain:
        return shared_domain(self.before, self.after, self.taken, self.made, self.tested)


def _moving(op: OperatorView[WhileOptions]) -> list[_Moving]:
    condition, body = op.bodies
    changed, after = body.changed(), _results(op)
    rows = zip(op.present_inputs(), body.inputs, body.outputs, condition.inputs, strict=True)
    return [
        _Moving(
            place,
            before,
            after.get(place, before),
            body.tensors[taken],
            body.tensors[made],
            condition.tensors[tested],
        )
        for place, (before, taken, made, tested) in enumerate(rows)
        if taken != made or taken in changed
    ]


@translator(Op.WHILE, versions=(1, 1), inputs=("values*",))
def while_(op: OperatorView[WhileOptions], g: Graph) -> None:
    """Loop: the condition before it and, on the new values, at the end of its body."""
    condition, body = op.bodies
    if condition.changed():
        raise Untranslatable("its condition sets a variable")
    state, moving = op.present_inputs(), _moving(op)
    _check_strings([each.taken for each in moving], g)
    outside, outside_test = _forms(g, state, body), _forms(g, state, condition)
    first = _test(g, condition, outside_test)

    def iteration(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        given, given_test = list(outside), list(outside_test)
        for counter in arguments[:2]:  # ONNX Runtime needs their shapes
            counter.shape = ir.Shape([])
        for each, value in zip(moving, arguments[2:], strict=True):
            declare(value, each.taken)
            given[each.place] = {g.form(each.taken, Layout.LAST, each.domain): value}
        inner = inlined(g, body, given)
        domains = [each.domain for each in moving]
        values = results(g, inner, [each.made for each in moving], domains)
        for each, value in zip(moving, values, strict=True):
            given_test[each.place] = {g.form(each.tested, Layout.LAST, each.domain): value}
        return [_test(g, condition, given_test), *values]

    types = [element_type(each.taken, each.domain) for each in moving]
    loop = g.body([ir.DataType.INT64, ir.DataType.BOOL, *types], iteration)
    initial = [g.read(each.before, layout=Layout.LAST, domain=each.domain) for each in moving]
    finals = g.op_multi("Loop", None, first, *initial, outputs=len(moving), body=loop)
    for each, value in zip(moving, finals, strict=True):
        g.write(each.after, value, domain=each.domain)
    for place, tensor in _results(op).items():
        if place not in [each.place for each in moving]:
            g.take(tensor, g.forms_as(state[place], tensor))


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
