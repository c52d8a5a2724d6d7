"""The state of a loop: what its iterations hand on, and where it stands outside and inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, declare, element_type, shared_domain
from tflite_ort.schema import OperatorView, Specialized, TensorView, WhileOptions


@dataclass(frozen=True, slots=True)
class Moving:
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


def moving(op: OperatorView[WhileOptions]) -> list[Moving]:
    """What an iteration of `op` changes."""
    condition, body = op.bodies
    changed, after = body.changed(), given_back(op)
    rows = zip(op.present_inputs(), body.inputs, body.outputs, condition.inputs, strict=True)
    return [
        Moving(
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


def given_back(op: OperatorView[Any]) -> dict[int, TensorView]:
    """What `op` makes, by the place among the outputs of its bodies: its outputs, then those of
    its variables that are set."""
    variables = op.present_inputs()[len(op.present_inputs()) - len(op.bodies[-1].variables) :]
    every = enumerate([*op.outputs, *variables])
    return {k: tensor for k, tensor in every if k < len(op.outputs) or tensor.is_variable}


def forms_inside(g: Graph, given: Sequence[TensorView], body: Specialized) -> list[Forms]:
    """In which forms a body has what it is given; made outside of it."""
    pairs = zip(given, body.inputs, strict=True)
    return [g.forms_as(source, body.tensors[index]) for source, index in pairs]


def hand_on(op: OperatorView[Any], g: Graph, moved: set[int]) -> None:
    """Let what `op` gives back be what it is given, but at the places that are `moved`."""
    for place, tensor in given_back(op).items():
        if place not in moved:
            g.take(tensor, g.forms_as(op.present_inputs()[place], tensor))


def loop_node(
    g: Graph,
    states: Sequence[Moving],
    most: ir.Value | None,
    first: ir.Value | None,
    turn: Callable[[ir.Value, Sequence[Forms]], Sequence[ir.Value]],
) -> Sequence[ir.Value]:
    """A Loop, and the values that it leaves of `states`.

    Args:
        most: the number of iterations, if there is one.
        first: whether there is a first iteration, if that is asked.
        turn: from whether it was to go on, and the states as the body takes them, to whether it is
            to go on, and their new values.
    """

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        for counter in arguments[:2]:  # ONNX Runtime needs their shapes
            counter.shape = ir.Shape([])
        taken: list[Forms] = []
        for each, value in zip(states, arguments[2:], strict=True):
            declare(value, each.taken)
            taken.append({g.form(each.taken, Layout.LAST, each.domain): value})
        return turn(arguments[1], taken)

    types = [element_type(each.taken, each.domain) for each in states]
    body = g.body([ir.DataType.INT64, ir.DataType.BOOL, *types], build)
    initial = [g.read(each.before, layout=Layout.LAST, domain=each.domain) for each in states]
    return g.op_multi("Loop", most, first, *initial, outputs=len(states), body=body)
