"""Pairs of LSTMs of codes that run side by side, over sequences of one shape: the two directions of
a layer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from tflite_ort.opmap.cells.lstm_integer_pair import run_pair
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.rules.operators.groups import Group, GroupsAround
from tflite_ort.opmap.rules.operators.pattern import Emit, View
from tflite_ort.schema import Op, Untranslatable
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.sizes import is_known

# A sequence is held against so many before it that have no partner: the time that this takes grows
# with the number of operators.
_NEAR = 8


def paired(around: GroupsAround) -> Iterator[Group]:
    """The pairs among the operators."""
    operators = around.operators
    left: deque[int] = deque(maxlen=_NEAR)
    for place, op in enumerate(operators):
        if not _is_sequence(op):
            continue
        for other in left:
            members = _members(operators, other, place)
            if members is not None:
                left.remove(other)
                if around.own(members):
                    yield Group(members, _emit(operators[other], op), members[-1])
                break
        else:
            left.append(place)


def _emit(first: View, second: View) -> Emit:
    def emit(g: Graph, _: View) -> None:
        try:
            run_pair(g, (first, second))
        except MALFORMED_OPERATOR as error:  # which of the two has it, their translator says
            raise Untranslatable(said_of_file(error)) from error

    return emit


def _is_sequence(op: View) -> bool:
    """Whether `op` is an LSTM of codes over a known number of steps."""
    if op.op is not Op.UNIDIRECTIONAL_SEQUENCE_LSTM or not op["input"].is_quantized:
        return False
    shape = op["input"].shape
    steps = shape[0 if op.options.time_major else 1]
    return is_known(*shape) and steps > 1 and 0 not in shape


def _members(operators: Sequence[View], first: int, second: int) -> tuple[View, View] | None:
    """Two operators, the last of which stands where both can run; None where there is no place.

    That is the first one, if the second has all that it reads by then. It is the second one, if
    nothing reads before it what the first one makes.
    """
    a, b = operators[first], operators[second]
    same = a["input"].shape == b["input"].shape and a.output.shape == b.output.shape
    if not same or a.options.time_major != b.options.time_major:
        return None
    between = operators[first + 1 : second]
    made = {tensor.index for op in (a, *between) for tensor in (*op.outputs, *op.variables())}
    kept = {index for op in between for index in _reads(op)}
    if made.isdisjoint(_reads(b)) and kept.isdisjoint(tensor.index for tensor in b.variables()):
        return b, a
    made = {tensor.index for tensor in (*a.outputs, *a.variables())}
    return (a, b) if made.isdisjoint({*kept, *_reads(b)}) else None


def _reads(op: View) -> Iterator[int]:
    return (tensor.index for tensor in op.present_inputs())
