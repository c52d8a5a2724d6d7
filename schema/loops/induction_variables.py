"""Induction variables of WHILE: integers with a constant step, and integers computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import ActivationFunctionType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.values.view import OperatorView, Specialized, TensorView

Numbers = npt.NDArray[np.int64]

_NO_ACTIVATION = ActivationFunctionType.NONE
_INTEGERS = (TensorType.INT32, TensorType.INT64)
_LIMITS = np.iinfo(np.int32)
# Lists of indices are short; what is longer is data.
_ELEMENTS = 16


@record(eq=False)
class InductionVariable:
    """Integers with a constant step: in iteration t they are first + t * step.

    Args:
        first, step: int64 arrays of the shape of the tensor.
    """

    first: Numbers
    step: Numbers

    def at(self, iteration: int) -> Numbers:
        """The values in `iteration`, counted from 0."""
        return self.first + iteration * self.step

    def all(self, count: int) -> Numbers:
        """The values in the first `count` iterations: [count, *shape]."""
        times = np.arange(count).reshape(-1, *[1] * self.first.ndim)
        return self.first + times * self.step

    @property
    def fits(self) -> bool:
        """Whether there are few numbers and all fit in 32 bits, so that int64 cannot overflow."""
        small = self.first.size <= _ELEMENTS
        return small and within(self.first) and within(self.step)


def within(numbers: Numbers) -> bool:
    """Whether all `numbers` fit in 32 bits, so that no addition of the model overflowed."""
    return bool(np.all((_LIMITS.min <= numbers) & (numbers <= _LIMITS.max)))


def followed(
    body: Specialized, inductions: Mapping[int, InductionVariable]
) -> dict[int, InductionVariable]:
    """`inductions`, and those of all tensors that `body` computes from these and from constants.

    All are by index in `body`.
    """
    known = {index: induction for index, induction in inductions.items() if induction.fits}
    for op in body.operators:
        rule = _RULES.get(op.op)
        inputs = [induction_of(body, tensor.index, known) for tensor in op.present_inputs()]
        activation = getattr(op.options, "fused_activation_function", _NO_ACTIVATION)
        if rule is None or activation is not _NO_ACTIVATION or op.output.type not in _INTEGERS:
            continue
        present = [induction for induction in inputs if induction is not None]
        if inputs and len(present) == len(inputs):
            induction = rule(op, present)
            if induction is not None and induction.fits:
                known[op.output.index] = induction
    return known


def induction_of(
    body: Specialized, index: int, inductions: Mapping[int, InductionVariable]
) -> InductionVariable | None:
    """The induction variable of a tensor; that of a constant has step 0."""
    return inductions.get(index) or of_constant(body.tensors[index])


def of_constant(tensor: TensorView) -> InductionVariable | None:
    """The induction variable, with step 0, of a few constant integers; None for other tensors."""
    if tensor.data is None or tensor.type not in _INTEGERS or tensor.data.size > _ELEMENTS:
        return None
    return InductionVariable(tensor.data.astype(np.int64), np.zeros(tensor.shape, np.int64))


Rule = Callable[[OperatorView[Any], Sequence[InductionVariable]], InductionVariable | None]


def _linear(function: Callable[[Numbers, Numbers], Numbers]) -> Rule:
    def rule(
        op: OperatorView[Any], inputs: Sequence[InductionVariable]
    ) -> InductionVariable | None:
        a, b = inputs
        return InductionVariable(function(a.first, b.first), function(a.step, b.step))

    return rule


def _product(
    op: OperatorView[Any], inputs: Sequence[InductionVariable]
) -> InductionVariable | None:
    a, b = inputs
    if not a.step.any():
        return InductionVariable(a.first * b.first, a.first * b.step)
    return InductionVariable(a.first * b.first, a.step * b.first) if not b.step.any() else None


def _reshaped(
    op: OperatorView[Any], inputs: Sequence[InductionVariable]
) -> InductionVariable | None:
    source, shape = inputs[0], op.output.shape
    if op.output.dynamic or source.first.size != np.prod(shape, dtype=int):
        return None
    return InductionVariable(source.first.reshape(shape), source.step.reshape(shape))


def _joined(function: Callable[..., Numbers]) -> Rule:
    def rule(
        op: OperatorView[Any], inputs: Sequence[InductionVariable]
    ) -> InductionVariable | None:
        axis = op.options.axis
        firsts, steps = [i.first for i in inputs], [i.step for i in inputs]
        return InductionVariable(function(firsts, axis=axis), function(steps, axis=axis))

    return rule


def _same(op: OperatorView[Any], inputs: Sequence[InductionVariable]) -> InductionVariable | None:
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
