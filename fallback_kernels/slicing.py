"""Regions cut out of a tensor."""

from __future__ import annotations

from typing import Any

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import Op, OperatorView, StridedSliceOptions
from tflite_ort.schema.semantics import strided_slice as resolved
from tflite_ort.schema.shapes_slicing import slice_sizes


# `slice` is the builtin, which the kernels below need.
@kernel(Op.SLICE, versions=(1, 8), inputs=("input", "begin", "size"))
def slice_(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """`size` elements from `begin` in every dimension; size -1 takes all that follow."""
    array, begin = inputs[0], tuple(inputs[1].tolist())
    sizes = slice_sizes(array.shape, begin, tuple(inputs[2].tolist()))
    bounds = zip(begin, sizes, strict=True)
    return (array[tuple(slice(first, first + size) for first, size in bounds)].copy(),)


@kernel(Op.STRIDED_SLICE, versions=(1, 8), inputs=("input", "begin", "end", "strides"))
def strided_slice(op: OperatorView[StridedSliceOptions], inputs: Inputs, state: State) -> Outputs:
    """numpy's basic indexing: begin:end:stride with masks for `...`, `newaxis` and integers."""
    array, begin, end, strides = inputs
    region = resolved(array.shape, begin, end, strides, op.options)
    return (array[region.slices].reshape(region.shape),)
