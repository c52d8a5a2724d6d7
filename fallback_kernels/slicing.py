"""Regions cut out of a tensor, and put into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import Op, OperatorView, StridedSliceOptions
from tflite_ort.schema.shapes.slicing import check_update, slice_sizes
from tflite_ort.schema.values.semantics import strided_slice as resolved


# `slice` is the builtin, which the kernels below need.
@kernel(Op.SLICE, versions=(1, 8))
def slice_(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """`size` elements from `begin` in every dimension; size -1 takes all that follow."""
    array, begin = inputs[0], tuple(inputs[1].tolist())
    sizes = slice_sizes(array.shape, begin, tuple(inputs[2].tolist()))
    bounds = zip(begin, sizes, strict=True)
    return (array[tuple(slice(first, first + size) for first, size in bounds)].copy(),)


@kernel(Op.STRIDED_SLICE, versions=(1, 8))
def strided_slice(op: OperatorView[StridedSliceOptions], inputs: Inputs, state: State) -> Outputs:
    """numpy's basic indexing: begin:end:stride with masks for `...`, `newaxis` and integers."""
    array, begin, end, strides = inputs
    region = resolved(array.shape, begin, end, strides, op.options)
    return (array[region.slices].reshape(region.shape),)


@kernel(Op.DYNAMIC_UPDATE_SLICE, versions=(1, 6))
def dynamic_update_slice(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The operand with `update` at `start`, which is moved as far as it needs to fit."""
    operand, update, start = inputs
    check_update(operand.shape, update.shape, start.shape)
    firsts = np.clip(start, 0, np.subtract(operand.shape, update.shape)).tolist()
    result = operand.copy()
    bounds = zip(firsts, update.shape, strict=True)
    result[tuple(slice(first, first + size) for first, size in bounds)] = update
    return (result,)
