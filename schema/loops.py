"""What a WHILE is known to do before it runs: how often, and with which values of its counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.enums import ActivationFunctionType, TensorType
from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.view import OperatorView, Specialized, TensorView

Numbers = npt.NDArray[np.int64]

_NO_ACTIVATION = ActivationFunctionType.NONE
_INTEGERS = (TensorType.INT32, TensorType.INT64)
_LIMITS = np.iinfo(np.int32)
# Lists of indices are short; what is longer is data.
_ELEMENTS = 16
_MOST_ITERATIONS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Integers that grow by as much in each iteration: iteration t has first + t * step.

    Args:
        first, step: of the shape that the tensor has.
    """

    first: Numbers
    step: Numbers

    def at(self, iteration: int) -> Numbers:
        return self.first + iteration * self.step

    def all(self, count: int) -> Numbers:
        """[count, *shape], the values of the first iterations."""
        times = np.arange(count).reshape(-1, *[1] * self.first.ndim)
        return self.first + times * self.step

    @property
    def fits(self) -> bool:
        """Whether the numbers are small enough to be computed with here."""
        small = self.first.size <= _ELEMENTS
        return small and within(self.first) and within(self.step)


def within(numbers: Numbers) -> bool:
    """Whether all `numbers` are of 32 bits: no addition of the model's has overflown."""
    return bool(np.all((_LIMITS.min <= numbers) & (numbers <= _LIMITS.max)))


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


def _counters(given: Sequence[TensorView], body: Specialized) -> dict[int, Course]:
    """By place, the values of the state that start as constants and then grow evenly: found by
    looking at the first iteration, and kept if every iteration does the same."""
    starts = {
        place: Course(tensor.data.astype(np.int64), np.zeros(tensor.shape, np.int64))
        for place, tensor in enumerate(given)
        if tensor.data is not None and tensor.type in _INTEGERS and tensor.data.size <= _ELEMENTS
    }
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
    results = ((place, _course(body, index, courses)) for place, index in enumerate(body.outputs))
    return {place: course for place, course in results if course is not None}


def followed(body: Specialized, courses: Mapping[int, Course]) -> dict[int, Course]:
    """`courses` by tensor, and those of all that the operators of `body` compute of them alone."""
    known = {index: course for index, course in courses.items() if course.fits}
    for op in body.operators:
        rule = _RULES.get(op.op)
        inputs = [_course(body, tensor.index, known) for tensor in op.present_inputs()]
        activation = getattr(op.options, "fused_activation_function", _NO_ACTIVATION)
        if rule is None or activation is not _NO_ACTIVATION or op.output.type not in _INTEGERS:
            continue
        present = [course for course in inputs if course is not None]
        if inputs and len(present) == len(inputs):
            course = rule(op, present)
            if course is not None and course.fits:
                known[op.output.index] = course
    return known


def _course(body: Specialized, index: int, courses: Mapping[int, Course]) -> Course | None:
    """Of a tensor: a constant takes no steps."""
    tensor = body.tensors[index]
    if tensor.data is None or tensor.type not in _INTEGERS or tensor.data.size > _ELEMENTS:
        return courses.get(index)
    return Course(tensor.data.astype(np.int64), np.zeros(tensor.shape, np.int64))


Rule = Callable[[OperatorView[Any], Sequence[Course]], Course | None]


def _linear(function: Callable[[Numbers, Numbers], Numbers]) -> Rule:
    def rule(op: OperatorView[Any], inputs: Sequence[Course]) -> Course | None:
        a, b = inputs
        return Course(function(a.first, b.first), function(a.step, b.step))

    return rule


def _product(op: OperatorView[Any], inputs: Sequence[Course]) -> Course | None:
    a, b = inputs
    if not a.step.any():
        return Course(a.first * b.first, a.first * b.step)
    return Course(a.first * b.first, a.step * b.first) if not b.step.any() else None


def _reshaped(op: OperatorView[Any], inputs: Sequence[Course]) -> Course | None:
    source, shape = inputs[0], op.output.shape
    if op.output.dynamic or source.first.size != np.prod(shape, dtype=int):
        return None
    return Course(source.first.reshape(shape), source.step.reshape(shape))


def _joined(function: Callable[..., Numbers]) -> Rule:
    def rule(op: OperatorView[Any], inputs: Sequence[Course]) -> Course | None:
        axis = op.options.axis
        firsts, steps = [each.first for each in inputs], [each.step for each in inputs]
        return Course(function(firsts, axis=axis), function(steps, axis=axis))

    return rule


def _same(op: OperatorView[Any], inputs: Sequence[Course]) -> Course | None:
    return inputs[0]


_RULES: Mapping[Op, Rule] = {
    Op.ADD: _linear(np.add),
    Op.SUB: _linear(np.subtract),
    Op.MUL: _product,
    Op.RESHAPE: _reshaped,
    Op.EXPAND_DIMS: _reshaped,
    Op.SQUEEZE: _reshaped,
    Op.CONCATENATION: _joined(np.concatenate),
    Op.PACK: _joined(np.stack),
    Op.CAST: _same,
}

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
    sides = [_course(condition, each.index, courses) for each in op.present_inputs()]
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
