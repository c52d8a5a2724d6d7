"""Selection by a condition: SELECT, SELECT_V2."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView


@kernel(Op.SELECT, versions=(1, 4), inputs=("condition", "x", "y"))
def select(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """x where the condition holds, else y; a condition of rank 1 picks along dimension 0."""
    condition, x, y = inputs
    single = condition.size == x.size == y.size == 1
    if not single and condition.shape != x.shape:
        if condition.ndim > 1 or condition.shape not in ((), x.shape[:1]):
            raise KernelError(f"condition {condition.shape} does not fit {x.shape}")
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
    if not single and x.shape != y.shape:
        raise KernelError(f"x {x.shape} and y {y.shape} differ")
    return _selected(op, condition, x, y)


@kernel(Op.SELECT_V2, versions=(1, 2), inputs=("condition", "x", "y"))
def select_v2(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """x where the condition holds, else y; all three broadcast."""
    condition, x, y = inputs
    return _selected(op, condition, x, y)


def _selected(op: OperatorView[Any], condition: Any, x: Any, y: Any) -> Outputs:
    if condition.dtype != np.bool_ or x.dtype != y.dtype:
        raise KernelError(f"selection by {condition.dtype} from {x.dtype} and {y.dtype}")
    result = np.where(condition, x, y)
    # Single elements keep the rank that the model declares.
    if condition.size == x.size == y.size == 1:
        result = result.reshape(op.output.shape)
    return (result,)
