"""Reductions over listed axes (duplicates and negative axes are allowed) and over windows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    CumsumOptions,
    KernelError,
    Op,
    OperatorView,
    Quantization,
    ReducerOptions,
    ReduceWindowFunction,
    ReduceWindowOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import (
    divided_multiplier,
    held_ratio,
    multiply_by_quantized_multiplier,
    multiply_wide_by_quantized_multiplier,
    narrow_multiplier,
    quantize_multiplier,
    round_half_away,
    saturate,
)
from tflite_ort.schema.shapes.reduction import Windows, reduced_windows
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis

_QUANTIZED = (np.int8, np.uint8, np.int16)
# Products of codes: elements that are widened at a time, and up to how many columns go one by one.
_PART, _FEW_COLUMNS = 1 << 16, 32


@kernel(Op.MEAN, versions=(1, 3))
def mean(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """sum / count; integers are cut towards zero, quantized ones rescaled. None of none is NaN."""
    array, axes = inputs[0], normalized_axes(inputs[1], inputs[0].ndim)
    count = prod(array.shape[axis] for axis in axes)
    keep = op.options.keep_dims
    if array.dtype in _QUANTIZED:
        return (_quantized_sum(op, array, axes, count if array.size else None),)
    if array.size == 0:
        missing = np.nan if array.dtype == np.float32 else 0
        return (np.full_like(array.sum(axis=axes, keepdims=keep), missing, array.dtype),)
    if array.dtype == np.float32:
        return (np.asarray(array.mean(axis=axes, keepdims=keep, dtype=np.float32)),)
    if array.dtype in (np.int32, np.int64):
        total = np.asarray(array.sum(axis=axes, keepdims=keep, dtype=np.int64))
        cut = total // count + ((total < 0) & (total % count != 0))
        return (np.asarray(cut.astype(array.dtype)),)
    raise KernelError(f"MEAN of {array.dtype} is not implemented")


@kernel(Op.SUM, versions=(1, 2))
def sum_(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """The sum; integers wrap, quantized ones are rescaled, of truths it is whether one is true.

    TFLite's reference kernel reads int8 and int16 codes as uint8 ones, so these two follow the
    optimised kernel, which rescales in float32.
    """
    array, axes = inputs[0], normalized_axes(inputs[1], inputs[0].ndim)
    if array.dtype == np.bool_:
        return (_of_truths(op, inputs, np.any),)
    if array.dtype == np.uint8:
        return (_quantized_sum(op, array, axes, 1),)
    if array.dtype in _QUANTIZED:
        return (_float_rescaled_sum(op, array, axes),)
    if array.dtype not in (np.float32, np.int32, np.int64):
        raise KernelError(f"SUM of {array.dtype} is not implemented")
    return (np.asarray(array.sum(axis=axes, keepdims=op.options.keep_dims, dtype=array.dtype)),)


def _quantized_sum(
    op: OperatorView[ReducerOptions], array: Array, axes: tuple[int, ...], divisor: int | None
) -> Array:
    """(sum of the real values) / divisor as codes of the output: one fixed-point multiplication."""
    keep = op.options.keep_dims
    total = np.asarray(array.sum(axis=axes, keepdims=keep, dtype=np.int64))
    if array.size == 0 or divisor is None:
        return np.zeros(total.shape, array.dtype)
    source, target = _parameters(op)
    q31, shift = quantize_multiplier(source.scalar_scale / target.scalar_scale)
    if divisor > 1:
        q31, shift = divided_multiplier(int(q31), int(shift), divisor)
    total -= source.scalar_zero_point * prod(array.shape[axis] for axis in axes)
    codes = multiply_by_quantized_multiplier(total.astype(np.int32), q31, shift)
    codes = np.where(np.abs(total) < 2**31, codes, _true_codes(op, total / divisor))
    return saturate(codes.astype(np.int64) + target.scalar_zero_point, array.dtype)


def _float_rescaled_sum(
    op: OperatorView[ReducerOptions], array: Array, axes: tuple[int, ...]
) -> Array:
    source, target = _parameters(op)
    count = prod(array.shape[axis] for axis in axes)
    total = np.asarray(array.sum(axis=axes, keepdims=op.options.keep_dims, dtype=np.int64))
    scale = held_ratio(source.sole_scale / target.sole_scale)
    bias = np.float32(-source.scalar_zero_point) * scale * np.float32(count)
    rounded = round_half_away(total.astype(np.float32) * scale + bias)
    true = _true_codes(op, total.astype(np.float64) - source.scalar_zero_point * count)
    rounded = np.where(np.abs(total) < 2**31, rounded, true)
    return saturate(rounded + target.scalar_zero_point, array.dtype)


def _true_codes(op: OperatorView[ReducerOptions], steps: Array) -> Array:
    """The codes of the output, less its zero point, for sums or means in units of the input's
    scale, where sums pass 32 bits: there TFLite's kernels wrap, each at another place."""
    source, target = _parameters(op)
    codes = round_half_away(steps * float(source.scalar_scale / target.scalar_scale))
    return np.asarray(np.clip(codes, -(2**30), 2**30), np.int32)


def _parameters(op: OperatorView[ReducerOptions]) -> tuple[Quantization, Quantization]:
    source, target = op["input"].quantization, op.output.quantization
    if source is None or target is None:
        raise KernelError(f"{op.name} of {op['input'].dtype} needs scales on both sides")
    return source, target


@kernel(Op.REDUCE_MAX, versions=(1, 3))
def reduce_max(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """The largest; the lowest finite value for none."""
    return (_extremum(op, inputs, np.max, lowest=True),)


@kernel(Op.REDUCE_MIN, versions=(1, 3))
def reduce_min(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """The smallest; the highest finite value for none."""
    return (_extremum(op, inputs, np.min, lowest=False),)


def _extremum(
    op: OperatorView[ReducerOptions], inputs: Inputs, reduce: Callable[..., Any], *, lowest: bool
) -> Array:
    source, target = op["input"].quantization, op.output.quantization
    if inputs[0].dtype in _QUANTIZED and source is not None and not source.equals(target):
        raise KernelError(f"{op.name} needs the same scale and zero point on both sides")
    axes = normalized_axes(inputs[1], inputs[0].ndim)
    keep, dtype = op.options.keep_dims, inputs[0].dtype
    if dtype == np.bool_:
        return _of_truths(op, inputs, np.any if lowest else np.all)
    if inputs[0].size:
        return np.asarray(reduce(inputs[0], axis=axes, keepdims=keep))
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    fill = limits.min if lowest else limits.max
    return np.full_like(inputs[0].sum(axis=axes, keepdims=keep), fill, dtype)


@kernel(Op.REDUCE_PROD, versions=(1, 2))
def reduce_prod(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """The product, 1 for none; plain integers wrap, codes are rescaled after each factor."""
    array, axes = inputs[0], normalized_axes(inputs[1], inputs[0].ndim)
    if array.dtype == np.bool_:
        return (_of_truths(op, inputs, np.all),)
    if op["input"].is_quantized or (array.dtype in _QUANTIZED and op.output.is_quantized):
        return (_quantized_product(op, array, axes),)
    if array.dtype not in (np.float32, np.int32, np.int64, *_QUANTIZED):
        raise KernelError(f"REDUCE_PROD of {array.dtype} is not implemented")
    return (np.asarray(array.prod(axis=axes, keepdims=op.options.keep_dims, dtype=array.dtype)),)


def _quantized_product(
    op: OperatorView[ReducerOptions], array: Array, axes: tuple[int, ...]
) -> Array:
    """The product of codes; every factor takes its share of the output scale, against overflow."""
    if array.dtype == np.uint8:
        raise KernelError("REDUCE_PROD of quantized uint8 is not implemented")
    source, target = _parameters(op)
    result = array.sum(axis=axes, keepdims=op.options.keep_dims, dtype=np.int64)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    if not array.size:
        if np.size(result):
            raise KernelError("a product of no codes has no scale")
        return np.asarray(result, array.dtype)
    factors = np.transpose(array, (*axes, *kept)).reshape(-1, np.size(result))
    share = source.scalar_scale / target.scalar_scale ** (1.0 / len(factors))
    q31, shift = quantize_multiplier(share)
    product = _scaled_product(factors, source.scalar_zero_point, q31, shift)
    codes = multiply_wide_by_quantized_multiplier(product, q31, shift).astype(np.int64)
    return saturate(codes + target.scalar_zero_point, array.dtype).reshape(np.shape(result))


def _scaled_product(factors: Array, zero: int, q31: Array, shift: Array) -> Array:
    """The products of the columns of codes [n, m] less `zero`, scaled before each further factor.

    A product of 0 stays 0. The rows are taken in parts, to look for that and to bound the memory.
    """
    product: Array = np.subtract(factors[0], zero, dtype=np.int64)
    rows = max(1, _PART // len(product))
    for start in range(1, len(factors), rows):
        part = factors[start : start + rows]
        product[np.any(part == zero, axis=0)] = 0
        (left,) = np.nonzero(product)
        if not left.size:
            break
        steps = part[:, left].astype(np.int64) - zero
        product[left] = _multiplied(product[left], steps, q31, shift)
    return product


def _multiplied(product: Array, steps: Array, q31: Array, shift: Array) -> Array:
    """`product` [m] times the rows of `steps` [n, m], scaled and cut to 32 bits each time."""
    q15, right = (int(each) for each in narrow_multiplier(q31, shift))
    if len(product) < _FEW_COLUMNS and right > 0:
        columns = (steps * q15).T.tolist()
        half = 1 << (right - 1)
        pairs = zip(product.tolist(), columns, strict=True)
        return np.array([_column_product(first, each, half, right) for first, each in pairs])
    for factor in steps:
        scaled = multiply_wide_by_quantized_multiplier(product * factor, q31, shift)
        product = scaled.astype(np.int64)
    return product


def _column_product(product: int, factors: list[int], half: int, right: int) -> int:
    """As `_multiplied` for one column: numpy takes 6 microseconds for each row, this a tenth."""
    for factor in factors:
        product = (product * factor + half) >> right
        if not -(2**31) <= product < 2**31:
            product = (product + 2**31) % 2**32 - 2**31
    return product


@kernel(Op.REDUCE_ANY, versions=(1, 1))
def reduce_any(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """Whether one is true."""
    return (_of_truths(op, inputs, np.any),)


@kernel(Op.REDUCE_ALL, versions=(1, 1))
def reduce_all(op: OperatorView[ReducerOptions], inputs: Inputs, state: State) -> Outputs:
    """Whether none is false."""
    return (_of_truths(op, inputs, np.all),)


def _of_truths(
    op: OperatorView[ReducerOptions], inputs: Inputs, reduce: Callable[..., Any]
) -> Array:
    if inputs[0].dtype != np.bool_:
        raise KernelError(f"{op.name} of {inputs[0].dtype} is not implemented")
    axes = normalized_axes(inputs[1], inputs[0].ndim)
    return np.asarray(reduce(inputs[0], axis=axes, keepdims=op.options.keep_dims))


@kernel(Op.CUMSUM, versions=(1, 1))
def cumsum(op: OperatorView[CumsumOptions], inputs: Inputs, state: State) -> Outputs:
    """Running sums along an axis, from its end if reverse, without the element if exclusive."""
    array, where = inputs
    if array.dtype not in (np.float32, np.int32, np.int64):
        raise KernelError(f"CUMSUM of {array.dtype} is not implemented")
    if where.size != 1 or where.dtype != np.int32:
        raise KernelError(f"{where.size} axes of {where.dtype}, expected one of int32")
    axis = normalized_axis(int(where.reshape(-1)[0]), array.ndim)
    if op.options.reverse:
        array = np.flip(array, axis)
    sums = np.cumsum(array, axis, dtype=array.dtype)
    if op.options.exclusive and array.shape[axis]:
        before = np.zeros_like(np.take(sums, [0], axis))
        sums = np.concatenate([before, np.delete(sums, -1, axis)], axis)
    return (np.flip(sums, axis) if op.options.reverse else sums,)


@kernel(Op.ARG_MAX, versions=(1, 3))
def arg_max(op: OperatorView[ArgMaxOptions], inputs: Inputs, state: State) -> Outputs:
    """The first index of the largest along an axis."""
    return (_first_index(op, inputs, np.argmax, -np.inf),)


@kernel(Op.ARG_MIN, versions=(1, 3))
def arg_min(op: OperatorView[ArgMinOptions], inputs: Inputs, state: State) -> Outputs:
    """The first index of the smallest along an axis."""
    return (_first_index(op, inputs, np.argmin, np.inf),)


def _first_index(
    op: OperatorView[Any], inputs: Inputs, search: Callable[..., Any], worst: float
) -> Array:
    """The first position of the extreme along an axis; NaNs are skipped."""
    array, axis = inputs[0], normalized_axis(int(inputs[1].reshape(-1)[0]), inputs[0].ndim)
    if array.shape[axis] == 0:
        raise KernelError(f"{op.name} along an empty axis")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.float32(worst), array)
    return np.asarray(search(array, axis=axis), op.output.dtype)


_REDUCTIONS: dict[ReduceWindowFunction, Callable[[Array, Array], Array]] = {
    ReduceWindowFunction.ADD: np.add,
    ReduceWindowFunction.MUL: np.multiply,
    ReduceWindowFunction.MINIMUM: lambda a, b: np.where(a <= b, a, b),
    ReduceWindowFunction.MAXIMUM: lambda a, b: np.where(a >= b, a, b),
    ReduceWindowFunction.ALL: np.logical_and,
    ReduceWindowFunction.ANY: np.logical_or,
}
_WINDOWED = (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64)


@kernel(
    Op.REDUCE_WINDOW,
    versions=(1, 1),
)
def reduce_window(op: OperatorView[ReduceWindowOptions], inputs: Inputs, state: State) -> Outputs:
    """`init` and the cells of a window, combined in order; codes are not rescaled."""
    window, strides, dilations = (tuple(array.tolist()) for array in inputs[2:])
    rows = reduced_windows(inputs[0].shape, window, strides, dilations)
    return (windows_reduced(inputs[0], inputs[1], rows, op.options.reduce_function),)


def windows_reduced(
    array: Array, init: Array, rows: Windows, function: ReduceWindowFunction
) -> Array:
    """One value for every window; TFLite combines bools as 8-bit integers."""
    combine = _REDUCTIONS.get(function)
    if combine is None or array.dtype not in _WINDOWED:
        raise KernelError(f"{function.name} over windows of {array.dtype} is not implemented")
    counts = tuple(count for count, *_ in rows)
    dtype = np.dtype(np.int8) if array.dtype == np.bool_ else array.dtype
    if 0 in counts:
        return np.empty(counts, array.dtype)
    result = np.full(counts, init.reshape(-1)[0]).astype(dtype)
    view = array.astype(dtype)
    for axis, row in enumerate(rows):
        view = windows(view, axis, Span(*row, before=0, after=0))
    for place in np.ndindex(*(window for _, window, *_ in rows)):
        result = combine(result, view[(..., *place)]).astype(dtype)
    return result.astype(array.dtype)
