"""The loop-carried values of a WHILE, and the Loop node that carries them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.bodies import Forms, declare, element_type, shared_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Specialized, TensorView, Untranslatable, WhileOptions


@record
class LoopCarried:
    """A loop-carried value: an input of WHILE that its body changes.

    Args:
        place: its position among the inputs of WHILE.
        initial: the input of WHILE, a tensor of the caller.
        final: the output of WHILE; `initial` again where the caller has no tensor for it.
        argument, result: the input and the output of the body.
        condition_argument: the input of the condition.
    """

    place: int
    initial: TensorView
    final: TensorView
    argument: TensorView
    result: TensorView
    condition_argument: TensorView

    @property
    def domain(self) -> Domain:
        """The domain in which all five tensors hold the value."""
        return shared_domain(
            self.initial, self.final, self.argument, self.result, self.condition_argument
        )


def loop_carried(op: OperatorView[WhileOptions]) -> list[LoopCarried]:
    """The values that the body of WHILE changes, in the order of its inputs."""
    condition, body = op.bodies
    changed, finals = body.changed(), results_by_place(op)
    rows = zip(op.present_inputs(), body.inputs, body.outputs, condition.inputs, strict=True)
    return [
        LoopCarried(
            place,
            initial,
            finals.get(place, initial),
            body.tensors[argument],
            body.tensors[result],
            condition.tensors[tested],
        )
        for place, (initial, argument, result, tested) in enumerate(rows)
        if argument != result or argument in changed
    ]


def results_by_place(op: OperatorView[Any]) -> dict[int, TensorView]:
    """The tensors that IF or WHILE sets, by the position among the outputs of its bodies.

    First come the outputs of `op`, then the variables that a body sets.
    """
    variables = op.present_inputs()[len(op.present_inputs()) - len(op.bodies[-1].variables) :]
    every = enumerate([*op.outputs, *variables])
    return {k: tensor for k, tensor in every if k < len(op.outputs) or tensor.is_variable}


def forms_inside(g: Graph, values: Sequence[TensorView], body: Specialized) -> list[Forms]:
    """The forms that each input of `body` has; their nodes stand outside of the body.

    Args:
        values: the tensors of the caller that `body` takes.
    """
    pairs = zip(values, body.inputs, strict=True)
    return [g.forms_as(source, body.tensors[index]) for source, index in pairs]


def pass_through(op: OperatorView[Any], g: Graph, changed: set[int]) -> None:
    """Give the results of WHILE the forms of its inputs, except at the places in `changed`."""
    for place, tensor in results_by_place(op).items():
        if place not in changed:
            g.take(tensor, g.forms_as(op.present_inputs()[place], tensor))


def check_loops(g: Graph) -> None:
    """Leave what would be a Loop or a Scan to another delegate, where the target asks for that.

    Raises:
        Untranslatable: it asks for that.
    """
    if g.target.fallback and g.target.no_loops:
        raise Untranslatable(g.target.no_loops)


def loop_node(
    g: Graph,
    carried: Sequence[LoopCarried],
    trip_count: ir.Value | None,
    condition: ir.Value | None,
    build_body: Callable[[ir.Value, Sequence[Forms]], Sequence[ir.Value]],
) -> Sequence[ir.Value]:
    """Add a Loop for WHILE; returns the final value of each of `carried`.

    Args:
        trip_count: int64 scalar, the largest number of iterations; None for no limit.
        condition: bool scalar, whether the first iteration runs; None for true.
        build_body: takes the condition and the loop-carried values as the body has them, and
            returns the next condition and the next values.
    """
    check_loops(g)

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        for scalar in arguments[:2]:  # ONNX Runtime needs their shapes
            scalar.shape = ()
        return build_body(arguments[1], _forms_of_arguments(g, carried, arguments[2:]))

    types = [element_type(each.argument, each.domain) for each in carried]
    body = g.body([ir.DataType.INT64, ir.DataType.BOOL, *types], build)
    initial = [g.read(each.initial, layout=Layout.LAST, domain=each.domain) for each in carried]
    return g.op_multi("Loop", trip_count, condition, *initial, outputs=len(carried), body=body)


def _forms_of_arguments(
    g: Graph, carried: Sequence[LoopCarried], values: Sequence[ir.Value]
) -> list[Forms]:
    """The loop-carried values as the body has them, from its arguments `values`."""
    forms: list[Forms] = []
    for each, value in zip(carried, values, strict=True):
        declare(value, each.argument)
        forms.append({g.form(each.argument, Layout.LAST, each.domain): value})
    return forms
