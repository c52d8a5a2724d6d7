"""Comparisons, LOGICAL_NOT, and selection by a condition.

Rows of a table: equal, not_equal, less, less_equal, greater, greater_equal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.elementwise import Plain
from tflite_ort.fallback_kernels.idioms.operands import offset, refusal, scale
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.arithmetic.fixed_point import rescale

Array = npt.NDArray[Any]

_T = TensorType
_BYTES = frozenset({_T.UINT8, _T.INT8})
_NUMBERS = frozenset({_T.FLOAT32, _T.FLOAT16, _T.INT32, _T.INT64})
_EQUALITY = frozenset({Op.EQUAL, Op.NOT_EQUAL})  # these rescale 16-bit codes too


# Comparisons -------------------------------------------------------------------------------------


def compared(
    compare: Plain,
    types: frozenset[TensorType],
    op: OperatorView[Any],
    inputs: Inputs,
    state: State,
) -> Outputs:
    """`compare`, which broadcasts; codes are rounded to units of 1/256 first."""
    a, b = op["input1"], op["input2"]
    first, second = inputs
    if a.type is not b.type:
        raise refusal(op)
    if a.type in _BYTES or (a.type is _T.INT16 and a.is_quantized and op.op in _EQUALITY):
        first, second = _units(op, a, first), _units(op, b, second)
    elif a.type not in types:
        raise refusal(op)
    return (np.asarray(compare(first, second), np.bool_),)


def _units(op: OperatorView[Any], tensor: TensorView, codes: Array) -> Array:
    """Codes in units of 1/256. TFLite has no multiplier of 1 and more: there it ends the process,
    or shifts bits out."""
    unit, centred = float(scale(op, tensor)), codes.astype(np.int32) - offset(op, tensor)
    if unit <= 0:
        raise KernelError(f"the scale of {tensor.name!r} is {unit}, expected above 0")
    return np.rint(centred * (256 * unit)) if unit >= 1 else rescale(centred << 8, unit)


_ORDERED = _NUMBERS | {_T.INT16}

for operator, last, compare, types in (
    (Op.EQUAL, 5, np.equal, _ORDERED | {_T.BOOL, _T.STRING}),
    # LiteRT's result for int16 without a scale is undefined.
    (Op.NOT_EQUAL, 4, np.not_equal, _NUMBERS | {_T.BOOL, _T.STRING}),
    (Op.LESS, 3, np.less, _ORDERED | {_T.BFLOAT16}),
    (Op.LESS_EQUAL, 2, np.less_equal, _ORDERED),
    (Op.GREATER, 2, np.greater, _ORDERED | {_T.BFLOAT16}),
    (Op.GREATER_EQUAL, 3, np.greater_equal, _ORDERED),
):
    kernel(operator, versions=(1, last))(partial(compared, compare, types))


# Logical ------------------------------------------------------------------------------------------


@kernel(Op.LOGICAL_NOT, versions=(1, 1))
def logical_not(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """not x."""
    return (np.logical_not(inputs[0]),)


# Selection ---------------------------------------------------------------------------------------


@kernel(Op.SELECT, versions=(1, 4))
def select(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """x where the condition is true, else y; a condition of rank 1 chooses along dimension 0."""
    condition, x, y = inputs
    single = condition.size == x.size == y.size == 1
    if not single and condition.shape != x.shape:
        if condition.ndim > 1 or condition.shape not in ((), x.shape[:1]):
            raise KernelError(f"condition {condition.shape} does not fit {x.shape}")
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
    if not single and x.shape != y.shape:
        raise KernelError(f"x {x.shape} and y {y.shape} differ")
    return _selected(op, condition, x, y)


@kernel(Op.SELECT_V2, versions=(1, 2))
def select_v2(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """x where the condition is true, else y; all three broadcast."""
    condition, x, y = inputs
    return _selected(op, condition, x, y)


def _selected(op: OperatorView[Any], condition: Any, x: Any, y: Any) -> Outputs:
    if x.dtype != y.dtype:
        raise KernelError(f"selection from {x.dtype} and {y.dtype}")
    result = np.where(condition, x, y)
    # A single element gets the rank that the model declares.
    if condition.size == x.size == y.size == 1:
        result = result.reshape(op.output.shape)
    return (result,)
