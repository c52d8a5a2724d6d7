"""StableHLO operators: elementwise ones of equal shapes, PAD, GATHER, SCATTER, windows, bits.

Rows of a table: stablehlo_add, stablehlo_multiply, stablehlo_maximum, stablehlo_minimum,
stablehlo_and, stablehlo_shift_left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.counters import Words, philox, threefry
from tflite_ort.fallback_kernels.idioms.scattering import combine_at, rows_of
from tflite_ort.fallback_kernels.reduction import windows_reduced
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    KernelError,
    Op,
    OperatorView,
    RngAlgorithm,
    StablehloGatherOptions,
    StablehloPadOptions,
    StablehloReduceWindowOptions,
    StablehloRngBitGeneratorOptions,
    StablehloScatterOptions,
)
from tflite_ort.schema.shapes.reduction import reduced_windows
from tflite_ort.schema.shapes.stablehlo import (
    batch_shape,
    offset_axes,
    pad_sizes,
    padded_shape,
    slice_grid,
    slice_sizes,
)
from tflite_ort.schema.values.regions import (
    WindowAttributes,
    scatter_function,
    scatter_places,
    window_function,
)

_FLOATS = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
_SHIFTED = frozenset(map(np.dtype, (np.int8, np.int16, np.int32)))
_INTEGERS = _SHIFTED | frozenset(
    map(np.dtype, (np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_))
)


def _elementwise(
    op: Op, function: Callable[[Array, Array], Array], dtypes: frozenset[np.dtype[Any]]
) -> None:
    @kernel(op, versions=(1, 1))
    def run(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
        lhs, rhs = inputs
        if lhs.dtype != rhs.dtype or lhs.dtype not in dtypes:
            raise KernelError(f"{lhs.dtype} with {rhs.dtype} is not implemented")
        if lhs.shape != rhs.shape:
            raise KernelError(f"shapes {lhs.shape} and {rhs.shape} differ")
        return (np.asarray(function(lhs, rhs), lhs.dtype),)

    run.__name__ = op.name.lower()


def _shift_left(lhs: Array, rhs: Array) -> Array:
    """x << distance, by the low five bits of the distance, as 32-bit machines shift."""
    shifted = np.left_shift(lhs.astype(np.int32), rhs.astype(np.int32) & 31)
    return np.asarray(shifted, lhs.dtype)


for row in (
    (Op.STABLEHLO_ADD, np.add, _FLOATS | _INTEGERS),
    (Op.STABLEHLO_MULTIPLY, np.multiply, _FLOATS | _INTEGERS),
    # NaN is neither less nor greater, so the left operand is kept.
    (Op.STABLEHLO_MAXIMUM, lambda a, b: np.where(a < b, b, a), _FLOATS | _INTEGERS),
    (Op.STABLEHLO_MINIMUM, lambda a, b: np.where(b < a, b, a), _FLOATS | _INTEGERS),
    (Op.STABLEHLO_AND, np.bitwise_and, _INTEGERS),
    (Op.STABLEHLO_SHIFT_LEFT, _shift_left, _SHIFTED),
):
    _elementwise(*row)


@kernel(Op.STABLEHLO_PAD, versions=(1, 1))
def stablehlo_pad(op: OperatorView[StablehloPadOptions], inputs: Inputs, state: State) -> Outputs:
    """`value` between the elements and around them; a negative edge cuts."""
    array, value = inputs
    if value.size != 1 or value.dtype != array.dtype:
        raise KernelError(f"value is {value.dtype} {value.shape}, expected one {array.dtype}")
    return (_padded(array, value, op.options),)


def _padded(array: Array, value: Array, options: StablehloPadOptions) -> Array:
    rows = pad_sizes(array.shape, options)
    spread = [
        size + max(0, size - 1) * interior
        for size, (*_, interior) in zip(array.shape, rows, strict=True)
    ]
    around = [(max(0, low), max(0, high)) for low, high, _ in rows]
    full = np.full([b + n + a for n, (b, a) in zip(spread, around, strict=True)], value.reshape(()))
    places = (
        slice(before, before + size, interior + 1)
        for size, (before, _), (*_, interior) in zip(spread, around, rows, strict=True)
    )
    full[tuple(places)] = array
    shape = padded_shape(array.shape, options)
    cuts = (
        slice(max(0, -low), max(0, -low) + size)
        for size, (low, *_) in zip(shape, rows, strict=True)
    )
    return full[tuple(cuts)].copy()


@kernel(Op.STABLEHLO_GATHER, versions=(1, 1))
def stablehlo_gather(
    op: OperatorView[StablehloGatherOptions], inputs: Inputs, state: State
) -> Outputs:
    """Slices of `operand`, one for a start index; a start is moved back until its slice fits."""
    operand, starts, options = inputs[0], inputs[1], op.options
    if starts.dtype not in (np.int32, np.int64):
        raise KernelError(f"start indices are {starts.dtype}, expected int32 or int64")
    batches, mapped = batch_shape(starts.shape, options), list(options.start_index_map or ())
    limits = np.subtract(operand.shape, slice_sizes(operand.shape, options))
    if options.index_vector_dim < starts.ndim:
        starts = np.moveaxis(starts, options.index_vector_dim, -1)
    grid = slice_grid(operand.shape, options)
    index = np.zeros((*batches, grid.shape[-1]), np.int64)
    index[..., mapped] = np.clip(starts.reshape(*batches, len(mapped)), 0, limits[mapped])
    index = np.expand_dims(index, tuple(range(len(batches), len(batches) + grid.ndim - 1))) + grid
    # Without the dots a single text would be no array.
    slices = operand[(*np.moveaxis(index, -1, 0), ...)]
    offsets = offset_axes(operand.ndim, len(batches), options)
    moved = np.moveaxis(slices, range(len(batches), slices.ndim), offsets)
    return (np.array(moved, order="C"),)


@kernel(Op.STABLEHLO_RNG_BIT_GENERATOR, versions=(1, 1))
def stablehlo_rng_bit_generator(
    op: OperatorView[StablehloRngBitGeneratorOptions], inputs: Inputs, state: State
) -> Outputs:
    """(the state after, bits) of Philox, state [key, counter] or [key, counter, upper half of the
    counter], or of Threefry, state [key, counter]."""
    before, result = inputs[0], op.outputs[1]
    lanes = 2 if op.options.algorithm is RngAlgorithm.THREEFRY else 4
    sizes = [2] if lanes == 2 else [2, 3]
    if before.dtype != np.uint64 or before.ndim != 1 or before.size not in sizes:
        raise KernelError(f"state is {before.dtype} {before.shape}, expected uint64 {sizes}")
    if result.dtype.kind not in "iu" or result.dtype.itemsize not in (4, 8):
        raise KernelError(f"bits are {result.dtype}, expected integers of 32 or 64 bits")
    count = int(np.prod(result.shape, dtype=np.int64))
    words = count * result.dtype.itemsize // 4
    counters = before[1] + np.arange(-(-words // lanes), dtype=np.uint64)
    bits = _blocks(before, counters, lanes).reshape(-1)[:words]
    after = before.copy()
    after[1] += np.uint64(counters.size)
    return after, bits.view(result.dtype).reshape(result.shape)


def _blocks(state: Array, counters: Array, lanes: int) -> Words:
    if lanes == 2:
        return threefry(int(state[0]), counters)
    return philox(int(state[0]), counters, np.full_like(counters, state[2 % state.size]))


@kernel(Op.STABLEHLO_REDUCE_WINDOW, versions=(1, 1))
def stablehlo_reduce_window(
    op: OperatorView[StablehloReduceWindowOptions], inputs: Inputs, state: State
) -> Outputs:
    """`init` is put between elements and around them, then every window is reduced."""
    array, init = inputs
    each = WindowAttributes.of(op.options, array.ndim)
    lows, highs = zip(*each.padding, strict=True) if array.ndim else ((), ())
    padding = StablehloPadOptions(lows, highs, each.interior)
    if array.size == 0 or 0 in padded_shape(array.shape, padding):
        raise KernelError(f"nothing is left of an input of shape {list(array.shape)}")
    array = _padded(array, init, padding)
    rows = reduced_windows(array.shape, each.window, each.strides, each.dilations)
    return (windows_reduced(array, init, rows, window_function(op)),)


_SCATTERED: dict[Op, np.ufunc] = {
    Op.STABLEHLO_ADD: np.add,
    Op.STABLEHLO_MULTIPLY: np.multiply,
    Op.STABLEHLO_MAXIMUM: np.maximum,
    Op.STABLEHLO_MINIMUM: np.minimum,
}


@kernel(Op.STABLEHLO_SCATTER, versions=(1, 1))
def stablehlo_scatter(
    op: OperatorView[StablehloScatterOptions], inputs: Inputs, state: State
) -> Outputs:
    """`operand` with updates, in order, written to their positions or combined with the elements.

    Updates out of range are left out. So are NaNs of a maximum or minimum: they are neither greater
    nor less.
    """
    operand, indices, updates = inputs
    if updates.dtype != operand.dtype or indices.dtype not in (np.int32, np.int64):
        raise KernelError(f"{updates.dtype} at {indices.dtype} in {operand.dtype}")
    function, result = scatter_function(op), operand.copy()
    places = scatter_places(indices.astype(np.int64), updates.shape, operand.shape, op.options)
    sizes = np.reshape(operand.shape, (-1, *[1] * updates.ndim))
    inside = ((places >= 0) & (places < sizes)).all(axis=0)
    if function in (Op.STABLEHLO_MAXIMUM, Op.STABLEHLO_MINIMUM) and updates.dtype.kind == "f":
        inside &= ~np.isnan(updates)
    where, values = rows_of(places[:, inside].T, operand.shape), updates[inside]
    if function is None:
        result.reshape(-1)[where] = values  # of several updates of one place, the last one
    else:
        combine_at(_SCATTERED[function], result, where, values)
    return (result,)
