"""Operators one after the other that move elements: where they take them in the end."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tflite_ort.base.records import record
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.pattern import View
from tflite_ort.opmap.rules.operators.views import Strided
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

MOVES = frozenset({*RESHAPES, Op.TRANSPOSE})


@record
class Move:
    """Where a chain takes the elements of a tensor.

    Args:
        operators: of the chain, in their order.
        view: the result, as elements of the tensor.
        transposes: how many TRANSPOSE there are.
    """

    x: TensorView
    operators: Sequence[View]
    view: Strided
    transposes: int

    @property
    def runs(self) -> Sequence[tuple[int, int]]:
        """Sizes and strides of what the result runs through, in its order."""
        return [run for runs in self.view.dimensions for run in runs]

    @property
    def returns(self) -> bool:
        """Whether all elements stand where they stood."""
        count = (prod(self.x.shape),)
        return self.view.reshaped(count) == Strided.whole(count)


def is_plain(op: View) -> bool:
    """Whether an operator moves a tensor of known sizes in a known way."""
    x, output = op.inputs[0], op.outputs[0]
    sizes = () if x is None else (*x.shape, *output.shape)
    if x is None or not sizes or not is_known(*sizes) or 0 in sizes:
        return False
    if x.is_constant or x.is_variable or output.is_variable or x.type is TensorType.STRING:
        return False
    if not all(each.is_constant for each in op.present_inputs()[1:]):
        return False  # it may be refused at run time
    return op.op in RESHAPES or order_of(op) is not None


def order_of(op: View) -> Sequence[int] | None:
    """The axes of a TRANSPOSE, counted from the front; None where they are none that are known."""
    x, perm = op["input"], op["perm"].data
    if perm is None or perm.size != x.rank:
        return None
    order = [int(axis) + x.rank * (axis < 0) for axis in perm.ravel()]
    return order if sorted(order) == list(range(x.rank)) else None


def moves_before(op: View, producers: Producers) -> Sequence[View]:
    """`op`, and the operators before it that move elements too, in their order."""
    found = [op]
    while (source := found[-1].inputs[0]) is not None:
        maker = producers.maker(source)
        if maker is None or maker.op not in MOVES or not is_plain(maker):
            break
        found.append(maker)
    return found[::-1]


def taken(operators: Sequence[View]) -> Move | None:
    """Where operators take a tensor; None where a RESHAPE cuts what no longer stands together."""
    x = operators[0].inputs[0]
    assert x is not None
    view: Strided | None = Strided.whole(x.shape)
    for op in operators:
        order = order_of(op) if op.op is Op.TRANSPOSE else None
        view = None if view is None else view.reshaped(op.present_inputs()[0].shape)
        view = view if view is None or order is None else view.transposed(order)
        view = None if view is None else view.reshaped(op.output.shape)
    count = sum(op.op is Op.TRANSPOSE for op in operators)
    starts = operators[0].op is Op.TRANSPOSE
    return None if view is None or not starts else Move(x, operators, view, count)
