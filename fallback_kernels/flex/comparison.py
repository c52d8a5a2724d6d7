"""TensorFlow's comparisons, logic and bits, on every type that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def _amount(x: Array, y: Array) -> Array:
    """By how many bits to shift: no fewer than none, and no more than leave one."""
    return np.clip(y, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype)


def _shifted_left(x: Array, y: Array) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    shifted = np.left_shift(x.view(unsigned), _amount(x, y).view(unsigned))
    return np.asarray(shifted).view(x.dtype)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LeftShift": _shifted_left,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "NotEqual": np.not_equal,
    "RightShift": lambda x, y: np.right_shift(x, _amount(x, y)),
}


def _bits(x: Array) -> Array:
    """The bits of each integer along a new last axis."""
    each = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(each, axis=-1)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Invert": np.invert,
    "IsFinite": np.isfinite,
    "IsNan": np.isnan,
    "LogicalNot": np.logical_not,
    "PopulationCount": lambda x: _bits(x).sum(axis=-1, dtype=np.uint8),
}


@flex_kernel(*_BINARY)
def binary(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `_BINARY`; both operands broadcast."""
    result = _BINARY[op.name.removeprefix("Flex")](*inputs)
    return (np.asarray(result).astype(op.output.dtype, copy=False),)


@flex_kernel(*_UNARY)
def unary(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `_UNARY`."""
    return (np.asarray(_UNARY[op.name.removeprefix("Flex")](inputs[0])),)


@flex_kernel("ApproximateEqual")
def approximate_equal(op: View, inputs: Inputs, state: State) -> Outputs:
    """Whether two numbers differ by less than the tolerance."""
    x, y = inputs
    with np.errstate(all="ignore"):
        return (np.abs(x - y) < x.dtype.type(node_of(op)["tolerance"]),)
