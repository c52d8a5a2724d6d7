"""The state of a loop: what its iterations hand on, and where it stands outside and inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.opmap.bodies import Forms, shared_domain
from tflite_ort.opmap.forms import Domain
from tflite_ort.opmap.graph import Graph
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
