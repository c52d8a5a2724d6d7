"""What a WHILE is known to do before it runs: how often, and with which values of its counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import TensorType
from tflite_ort.schema.loops.induction_variables import (
    Course,
    course_of,
    followed,
    of_constant,
    within,
)
from tflite_ort.schema.values.view import Specialized, TensorView

_MOST_ITERATIONS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A loop that runs as often whatever its data.

    Args:
        count: the number of iterations.
        counters: the course of each counter by its place in the state.
        courses: the counters and what the body computes of them, by tensor of the body.
    """

    count: int
    counters: Mapping[int, Course]
    courses: Mapping[int, Course]


def counted(
    given: Sequence[TensorView], condition: Specialized, body: Specialized
) -> Counted | None:
    """What is known of a WHILE that starts with `given`; None if its data may end it."""
    counters = _counters(given, body)
    tested = {condition.inputs[place]: course for place, course in counters.items()}
    tests = followed(condition, tested)
    count = _iterations(condition, condition.outputs[0], tests)
    if count is None or count > _MOST_ITERATIONS:
        return None
    courses = followed(body, {body.inputs[place]: course for place, course in counters.items()})
    reached = [*tests.values(), *counters.values()]
    last = [course.at(count) for course in reached]
    last += [course.at(max(count - 1, 0)) for course in courses.values()]
    return Counted(count, counters, courses) if all(map(within, last)) else None


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """A loop that runs while counters, which grow by 1, are less than numbers that stay.

    Args:
        bounds: what the counters start with, and what they are compared with: a constant, or a
            tensor of the condition that is given to it.
        counters: the course of each counter by its place in the state.
    """

    bounds: Sequence[tuple[int, TensorView]]
    counters: Mapping[int, Course]


def bounded(
    given: Sequence[TensorView], condition: Specialized, body: Specialized
) -> Bounded | None:
    """The numbers that tell how often a WHILE runs that starts with `given`; None if there is more
    to it."""
    counters = _counters(given, body)
    tests = followed(condition, {condition.inputs[p]: course for p, course in counters.items()})
    state = zip(condition.inputs, body.inputs, body.outputs, strict=True)
    fixed = {index for index, taken, made in state if taken == made}
    bounds = _bounds(condition, condition.outputs[0], tests, fixed)
    return Bounded(bounds, counters) if bounds else None


def _bounds(
    condition: Specialized, index: int, courses: Mapping[int, Course], fixed: set[int]
) -> list[tuple[int, TensorView]]:
    """What a truth value of `condition` compares counters with; empty if it does something else."""
    op = next((op for op in condition.operators if op.output.index == index), None)
    if op is not None and op.op is Op.LOGICAL_AND:
        a, b = (_bounds(condition, t.index, courses, fixed) for t in op.present_inputs())
        return a + b if a and b else []
    if op is None or op.op not in (Op.LESS, Op.GREATER):
        return []
    less, bound = op.present_inputs()[:: 1 if op.op is Op.LESS else -1]
    course = courses.get(less.index)
    single = not bound.dynamic and bound.type is TensorType.INT32 and prod(bound.shape) == 1
    if course is None or course.first.size != 1 or course.step.item() != 1 or not single:
        return []
    return [(course.first.item(), bound)] if bound.index in fixed or bound.is_constant else []


def _counters(given: Sequence[TensorView], body: Specialized) -> dict[int, Course]:
    """By place, the values of the state that start as constants and then grow evenly: found by
    looking at the first iteration, and kept if every iteration does the same."""
    constants = {place: of_constant(tensor) for place, tensor in enumerate(given)}
    starts = {place: course for place, course in constants.items() if course is not None}
    after = _made(body, starts)
    found = {
        place: Course(start.first, after[place].first - start.first)
        for place, start in starts.items()
        if place in after and after[place].first.shape == start.first.shape
    }
    while True:
        made = _made(body, found)
        kept = {
            place: course
            for place, course in found.items()
            if place in made
            and np.array_equal(made[place].first, course.at(1))
            and np.array_equal(made[place].step, course.step)
        }
        if len(kept) == len(found):
            return kept
        found = kept


def _made(body: Specialized, state: Mapping[int, Course]) -> dict[int, Course]:
    """By place, what an iteration makes of `state`, as far as that is known."""
    courses = followed(body, {body.inputs[place]: course for place, course in state.items()})
    results = ((place, course_of(body, index, courses)) for place, index in enumerate(body.outputs))
    return {place: course for place, course in results if course is not None}


# A comparison as "distance < 0", where the distance is turned and moved.
_COMPARISONS = {
    Op.LESS: (1, 0),
    Op.LESS_EQUAL: (1, -1),
    Op.GREATER: (-1, 0),
    Op.GREATER_EQUAL: (-1, -1),
}
_ENDLESS = _MOST_ITERATIONS + 1


def _iterations(condition: Specialized, index: int, courses: Mapping[int, Course]) -> int | None:
    """How many iterations find a truth value of `condition` true, from the first one on; None
    where that depends on data."""
    tensor = condition.tensors[index]
    if tensor.data is not None:
        return _ENDLESS if tensor.data.all() else 0
    op = next((op for op in condition.operators if op.output.index == index), None)
    if op is None:
        return None
    if op.op is Op.LOGICAL_AND:
        both = [_iterations(condition, each.index, courses) for each in op.present_inputs()]
        known = [count for count in both if count is not None]
        return min(known) if len(known) == len(both) else None
    if op.op not in {*_COMPARISONS, Op.NOT_EQUAL, Op.EQUAL}:
        return None
    sides = [course_of(condition, each.index, courses) for each in op.present_inputs()]
    a, b = sides
    if a is None or b is None or a.first.size != 1 or b.first.size != 1:
        return None
    distance, step = ((x - y).item() for x, y in ((a.first, b.first), (a.step, b.step)))
    return _until_false(op.op, distance, step)


def _until_false(comparison: Op, distance: int, step: int) -> int:
    if comparison is Op.EQUAL:
        return 0 if distance else 1 if step else _ENDLESS
    if comparison is Op.NOT_EQUAL:
        meets = distance == 0 or (step != 0 and distance % step == 0 and -distance // step > 0)
        return _ENDLESS if not meets else 0 if distance == 0 else -distance // step
    sign, moved = _COMPARISONS[comparison]
    distance, step = sign * distance + moved, sign * step
    if distance >= 0:
        return 0
    return -(distance // step) if step > 0 else _ENDLESS
