"""What is known of a WHILE before it runs: its trip count, and its induction variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.loops.induction_variables import (
    InductionVariable,
    followed,
    induction_of,
    of_constant,
    within,
)
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import OperatorView, Specialized, TensorView

MOST_ITERATIONS = 1 << 20


@record(eq=False)
class Counted:
    """A WHILE whose trip count is known before it runs.

    Args:
        trip_count: the number of iterations; an unknown size where an input tells.
        counters: the induction variables among its loop-carried values, by place.
        inductions: the counters and the integers that the body computes from them, by index in
            the body.
        most: the trip count, or the largest one for which this holds.
    """

    trip_count: int
    counters: Mapping[int, InductionVariable]
    inductions: Mapping[int, InductionVariable]
    most: int


def counted(
    given: Sequence[TensorView], condition: Specialized, body: Specialized
) -> Counted | None:
    """The trip count of a WHILE on the inputs `given`; None if it depends on data."""
    counters = _counters(given, body)
    tested = {condition.inputs[place]: induction for place, induction in counters.items()}
    tests = followed(condition, tested)
    count = _iterations(condition, condition.outputs[0], tests)
    if count is None or count > MOST_ITERATIONS:
        return None
    inductions = followed(
        body, {body.inputs[place]: induction for place, induction in counters.items()}
    )
    reached = [*tests.values(), *counters.values()]
    last = [induction.at(count) for induction in reached]
    last += [induction.at(max(count - 1, 0)) for induction in inductions.values()]
    return Counted(count, counters, inductions, count) if all(map(within, last)) else None


@record(eq=False)
class Bounded:
    """A WHILE that runs as long as counters with step 1 are less than bounds that do not change.

    Args:
        bounds: the initial value of a counter, and its bound: a constant, or an input of the
            condition.
        counters: the induction variables among the loop-carried values, by place.
        size: the size of a tensor that the trip count is, where it is one, such as an open time.
    """

    bounds: Sequence[tuple[int, TensorView]]
    counters: Mapping[int, InductionVariable]
    size: int | None = None


def bounded(
    given: Sequence[TensorView], condition: Specialized, body: Specialized
) -> Bounded | None:
    """The bounds of the counters of a WHILE on the inputs `given`; None if its condition tests
    anything else."""
    counters = _counters(given, body)
    tests = followed(
        condition, {condition.inputs[p]: induction for p, induction in counters.items()}
    )
    rows = zip(condition.inputs, body.inputs, body.outputs, strict=True)
    fixed = {index for index, argument, result in rows if argument == result}
    bounds = _bounds(condition, condition.outputs[0], tests, fixed)
    return Bounded(bounds, counters, _size(bounds, given, condition)) if bounds else None


def _size(
    bounds: Sequence[tuple[int, TensorView]], given: Sequence[TensorView], condition: Specialized
) -> int | None:
    """The unknown size that all bounds are, of counters that begin with 0."""
    found: list[int] = []
    for first, bound in bounds:
        places = [place for place, index in enumerate(condition.inputs) if index == bound.index]
        sizes = given[places[0]].sizes if places and bound.data is None else None
        if first or sizes is None or sizes.size != 1 or is_known(sizes.item()):
            return None
        found.append(sizes.item())
    return found[0] if all(size is found[0] for size in found) else None


def _bounds(
    condition: Specialized, index: int, inductions: Mapping[int, InductionVariable], fixed: set[int]
) -> list[tuple[int, TensorView]]:
    """The bounds that the bool `index` of `condition` tests; empty if it tests anything else."""
    tests = _conjuncts(condition, index)
    bounds = [_bound(op, inductions, fixed) for _, op in tests if op is not None]
    known = [bound for bound in bounds if bound is not None]
    return known if len(known) == len(tests) else []


def _bound(
    op: OperatorView[Any], inductions: Mapping[int, InductionVariable], fixed: set[int]
) -> tuple[int, TensorView] | None:
    """The first value of a counter and its bound, if the operator compares these."""
    if op.op not in (Op.LESS, Op.GREATER) or len(op.present_inputs()) != 2:
        return None
    less, bound = op.present_inputs()[:: 1 if op.op is Op.LESS else -1]
    induction = inductions.get(less.index)
    single = not bound.dynamic and bound.type is TensorType.INT32 and prod(bound.shape) == 1
    if induction is None or induction.first.size != 1 or induction.step.item() != 1 or not single:
        return None
    is_known = bound.index in fixed or bound.is_constant
    return (induction.first.item(), bound) if is_known else None


def _counters(given: Sequence[TensorView], body: Specialized) -> dict[int, InductionVariable]:
    """The induction variables among the loop-carried values, by place.

    Those that start as constants get the step of the first iteration, if every one then adds it.
    """
    constants = {place: of_constant(tensor) for place, tensor in enumerate(given)}
    starts = {place: induction for place, induction in constants.items() if induction is not None}
    after = _results(body, starts)
    found = {
        place: InductionVariable(start.first, after[place].first - start.first)
        for place, start in starts.items()
        if place in after and after[place].first.shape == start.first.shape
    }
    while True:
        results = _results(body, found)
        kept = {
            place: induction
            for place, induction in found.items()
            if place in results
            and np.array_equal(results[place].first, induction.at(1))
            and np.array_equal(results[place].step, induction.step)
        }
        if len(kept) == len(found):
            return kept
        found = kept


def _results(
    body: Specialized, state: Mapping[int, InductionVariable]
) -> dict[int, InductionVariable]:
    """The outputs of the body for the induction variables `state`, by place, where they are
    induction variables too."""
    inductions = followed(
        body, {body.inputs[place]: induction for place, induction in state.items()}
    )
    results = (
        (place, induction_of(body, index, inductions)) for place, index in enumerate(body.outputs)
    )
    return {place: induction for place, induction in results if induction is not None}


# Each comparison as sign * (a - b) + offset < 0.
_COMPARISONS = {
    Op.LESS: (1, 0),
    Op.LESS_EQUAL: (1, -1),
    Op.GREATER: (-1, 0),
    Op.GREATER_EQUAL: (-1, -1),
}
_ENDLESS = MOST_ITERATIONS + 1


def _iterations(
    condition: Specialized, index: int, inductions: Mapping[int, InductionVariable]
) -> int | None:
    """The number of iterations until the bool `index` of `condition` is false; None where that
    depends on data."""
    counts = [
        _until(condition, place, op, inductions) for place, op in _conjuncts(condition, index)
    ]
    known = [count for count in counts if count is not None]
    return min(known) if known and len(known) == len(counts) else None


def _conjuncts(condition: Specialized, index: int) -> list[tuple[int, OperatorView[Any] | None]]:
    """The bools that are all true where the bool `index` of `condition` is: one that LOGICAL_AND
    makes is looked through. With the operator that makes it; each once, however often it is asked.
    """
    makers = {output.index: op for op in condition.operators for output in op.outputs}
    found, waiting, met = [], [index], {index}
    while waiting:
        place = waiting.pop()
        op = makers.get(place)
        if op is None or op.op is not Op.LOGICAL_AND or condition.tensors[place].data is not None:
            found.append((place, op))
            continue
        more = {operand.index for operand in op.present_inputs()} - met
        waiting += more
        met |= more
    return found


def _until(
    condition: Specialized,
    index: int,
    op: OperatorView[Any] | None,
    inductions: Mapping[int, InductionVariable],
) -> int | None:
    """The number of iterations until the bool `index`, which `op` makes, is false; None where that
    depends on data."""
    tensor = condition.tensors[index]
    if tensor.data is not None:
        return _ENDLESS if tensor.data.all() else 0
    if op is None or op.op not in {*_COMPARISONS, Op.NOT_EQUAL, Op.EQUAL}:
        return None
    sides = [induction_of(condition, t.index, inductions) for t in op.present_inputs()]
    if len(sides) != 2:
        return None
    a, b = sides
    if a is None or b is None or a.first.size != 1 or b.first.size != 1:
        return None
    distance, step = ((x - y).item() for x, y in ((a.first, b.first), (a.step, b.step)))
    return _until_false(op.op, distance, step)


def _until_false(comparison: Op, distance: int, step: int) -> int:
    """The number of iterations until a comparison of a and b is false.

    Args:
        distance: a - b in the first iteration.
        step: what every iteration adds to it.
    """
    if comparison is Op.EQUAL:
        return 0 if distance else 1 if step else _ENDLESS
    if comparison is Op.NOT_EQUAL:
        meets = distance == 0 or (step != 0 and distance % step == 0 and -distance // step > 0)
        return _ENDLESS if not meets else 0 if distance == 0 else -distance // step
    sign, offset = _COMPARISONS[comparison]
    distance, step = sign * distance + offset, sign * step
    if distance >= 0:
        return 0
    return -(distance // step) if step > 0 else _ENDLESS
