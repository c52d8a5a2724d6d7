"""Integers in the body of a loop that grow by as much in each iteration, and what they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.enums import ActivationFunctionType, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.values.view import OperatorView, Specialized, TensorView

Numbers = npt.NDArray[np.int64]

_NO_ACTIVATION = ActivationFunctionType.NONE
_INTEGERS = (TensorType.INT32, TensorType.INT64)
_LIMITS = np.iinfo(np.int32)
# Lists of indices are short; what is longer is data.
_ELEMENTS = 16


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


def followed(body: Specialized, courses: Mapping[int, Course]) -> dict[int, Course]:
    """`courses` by tensor, and those of all that the operators of `body` compute of them alone."""
    known = {index: course for index, course in courses.items() if course.fits}
    for op in body.operators:
        rule = _RULES.get(op.op)
        inputs = [course_of(body, tensor.index, known) for tensor in op.present_inputs()]
        activation = getattr(op.options, "fused_activation_function", _NO_ACTIVATION)
        if rule is None or activation is not _NO_ACTIVATION or op.output.type not in _INTEGERS:
            continue
        present = [course for course in inputs if course is not None]
        if inputs and len(present) == len(inputs):
            course = rule(op, present)
            if course is not None and course.fits:
                known[op.output.index] = course
    return known


def course_of(body: Specialized, index: int, courses: Mapping[int, Course]) -> Course | None:
    """That of a tensor; a constant takes no steps."""
    return courses.get(index) or of_constant(body.tensors[index])


def of_constant(tensor: TensorView) -> Course | None:
    """The course of a few constant integers."""
    if tensor.data is None or tensor.type not in _INTEGERS or tensor.data.size > _ELEMENTS:
        return None
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
