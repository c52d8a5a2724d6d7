"""Reductions over axes, from MEAN to ARG_MIN, and REDUCE_WINDOW over windows."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.code_means import pools_images, rounded_sums
from tflite_ort.opmap.idioms.code_sums import (
    Rescaled,
    amplifies,
    exact_mean,
    exact_sum,
    in_double,
    is_long,
    product_of_codes,
    rounded_mean,
    rounded_sum,
    sums_codes,
    takes_exact_sum,
)
from tflite_ort.opmap.idioms.combining import combined_axis
from tflite_ort.opmap.idioms.computed_axes import ComputedAxis, distinct_axes, times_named
from tflite_ort.opmap.idioms.movement import integers, narrowed, same_order, widened
from tflite_ort.opmap.idioms.window_reduction import windows_reduced
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    CumsumOptions,
    Op,
    OperatorView,
    ReducerOptions,
    ReduceWindowOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.shapes.reduction import reduced_windows
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import is_known, known_product

_INTEGERS = (TensorType.INT32, TensorType.INT64)
_COMPARED = frozenset(
    {
        TensorType.FLOAT32,
        TensorType.INT8,
        TensorType.UINT8,
        TensorType.INT16,
        TensorType.INT32,
        TensorType.INT64,
    }
)
_SEARCHED = _COMPARED - {TensorType.INT16, TensorType.INT64} | {TensorType.BOOL}

# Of integers that are combined pair by pair several copies are held at a time.
_MOST_CHAINED = 1 << 23


@translator(Op.MEAN, versions=(1, 3))
def mean(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """GlobalAveragePool for channels-first images, else ReduceMean; integers divide as in C."""
    input = op["input"]
    if input.type in _INTEGERS:
        _integer_mean(op, g)
        return
    _check_real(input, op.output)
    layout = reduced_layout(op, g)
    terms = _known_terms(op)
    planes = layout is Layout.FIRST and axes_of(op) == tuple(range(1, input.rank - 1))
    by_codes = sums_codes(terms, input, op.output) or takes_exact_sum(g, input, op.output, terms)
    if planes and (g.target.paired_codes or not by_codes) and pools_images(input, op.output, terms):
        value = g.read(input, layout=layout)
        pooled = _of_some(op, g, g.op("GlobalAveragePool", value), value)
        if g.transposes_cancel(input):
            pooled = g.op("Transpose", pooled, perm=Layout.FIRST.inverse(4))
            layout = Layout.LAST
        write_reduced(op, g, pooled, layout, Domain.REAL)
    else:
        _reduce_reals(op, g, "ReduceMean", layout)


def _reduce_reals(op: OperatorView[ReducerOptions], g: Graph, name: str, layout: Layout) -> None:
    """`name` of floats, or of 8-bit codes counted from their zero point. Sums of whole numbers are
    the same in any order, which ONNX Runtime changes with the number of rows."""
    input, output = op["input"], op.output
    terms, mean = _known_terms(op), name == "ReduceMean"
    if g.target.paired_codes or g.target.real_means:
        _reduce(op, g, name, layout, Domain.REAL)
        return
    if takes_exact_sum(g, input, output, terms):
        _in_double(op, g, layout, exact_mean if mean else exact_sum)
        return
    if terms and (amplifies(input, output, 1 if mean else terms) or is_long(input, output, terms)):
        _in_double(op, g, layout, rounded_mean if mean else rounded_sum)
        return
    if not sums_codes(terms, input, output):
        _reduce(op, g, name, layout, Domain.REAL)
        return
    divisor = max(terms, 1) if mean else 1
    summed = partial(_reduced, op, g, "ReduceSum", layout=layout)
    codes = rounded_sums(g, input, output, terms, divisor, layout, summed)
    write_reduced(op, g, codes, layout, Domain.STORED)


def _of_some(op: OperatorView[Any], g: Graph, mean: ir.Value, value: ir.Value) -> ir.Value:
    """A mean of floats, NaN if `value` turns out to have no elements: ReduceMean gives 0."""
    input, output = op["input"], op.output
    sizes = [input.shape[axis] for axis in axes_of(op)] if op["axes"].is_constant else input.shape
    if (is_known(*sizes) and 0 not in sizes) or output.is_quantized:
        return mean
    count = g.cast(g.op("Size", value), ir.DataType.FLOAT)
    return g.op("Add", mean, g.op("Div", g.constant(0, np.float32), count))


def _in_double(
    op: OperatorView[ReducerOptions], g: Graph, layout: Layout, rescaled: Rescaled
) -> None:
    """Sums of codes, exact, which `rescaled` makes codes of the output."""
    input = op["input"]
    wide = in_double(g, input, layout, [layout.axis(axis, input.rank) for axis in axes_of(op)])
    total = _reduced(op, g, "ReduceSum", wide, layout)
    codes = rescaled(g, total, input, op.output, _terms_of(op))
    write_reduced(op, g, codes, layout, Domain.STORED)


def _known_terms(op: OperatorView[ReducerOptions]) -> int | None:
    """The number of elements in a sum, unless it depends on data."""
    if not op["axes"].is_constant or not is_known(*(op["input"].shape[a] for a in axes_of(op))):
        return None
    return _terms_of(op)


def _terms_of(op: OperatorView[ReducerOptions]) -> int:
    """The number of elements in a sum over known axes."""
    return prod(op["input"].shape[axis] for axis in axes_of(op))


def _integer_mean(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """The sum in int64 divided by the number of terms, truncated towards zero."""
    wide = g.cast(g.read(op["input"]), ir.DataType.INT64)
    total = _total(op, g, wide, TensorType.INT64, Layout.LAST)
    quotient = g.op("Div", total, _terms(op, g, wide, total))
    narrow = g.cast(quotient, ir.DataType[op.output.type.name])
    write_reduced(op, g, narrow, Layout.LAST, Domain.REAL)


def _terms(
    op: OperatorView[ReducerOptions], g: Graph, value: ir.Value, total: ir.Value
) -> ir.Value:
    """The number of elements of `value` in one of `total`; 1 for none, so that 0 stays 0."""
    if op["axes"].is_constant and is_known(*op["input"].shape):
        return g.ints(_terms_of(op))
    one = g.ints(1)
    sums = g.larger(g.op("Size", total), one)
    return g.larger(g.op("Div", g.op("Size", value), sums), one)


@translator(Op.SUM, versions=(1, 2))
def sum(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceSum of reals; of integers Add upon Add; of truths as REDUCE_ANY."""
    if op["input"].type is TensorType.BOOL:
        _of_truths(op, g, "ReduceMax")
        return
    layout = reduced_layout(op, g)
    if op["input"].type in _INTEGERS:
        value = g.read(op["input"], layout=layout)
        total = _total(op, g, value, op.output.type, layout)
        write_reduced(op, g, total, layout, Domain.REAL)
        return
    _check_real(op["input"], op.output)
    _reduce_reals(op, g, "ReduceSum", layout)


def _total(
    op: OperatorView[ReducerOptions], g: Graph, value: ir.Value, type: TensorType, layout: Layout
) -> ir.Value:
    """The sum of integers `value` of `type`. Where it is not known how many there are, by
    ReduceSum of their upper and lower 32 bits: ONNX Runtime computes it in double."""
    input = op["input"]
    constant = op["axes"].is_constant
    known = constant and is_known(*(input.shape[axis] for axis in axes_of(op)))
    if known:
        return _chained(op, g, "Add", value, layout)
    wide, unit = g.cast(value, ir.DataType.INT64), g.ints(2**32)
    lower = g.op("Mod", wide, unit)
    upper = g.op("Div", g.op("Sub", wide, lower), unit)
    high, low = (_reduced(op, g, "ReduceSum", part, layout) for part in (upper, lower))
    total = g.op("Add", g.op("Mul", high, unit), low)
    return g.cast(total, ir.DataType[type.name])


@translator(Op.REDUCE_MAX, versions=(1, 3))
def reduce_max(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMax of the codes."""
    _extremum(op, g, "ReduceMax")


@translator(Op.REDUCE_MIN, versions=(1, 3))
def reduce_min(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMin of the codes."""
    _extremum(op, g, "ReduceMin")


def _extremum(op: OperatorView[ReducerOptions], g: Graph, name: str) -> None:
    input, output = op["input"], op.output
    if input.type is TensorType.BOOL:
        _of_truths(op, g, name)
        return
    if input.type not in _COMPARED:
        raise Untranslatable(f"{input.type.name} elements")
    if input.is_quantized != output.is_quantized or (
        input.quantization is not None and not input.quantization.equals(output.quantization)
    ):
        raise Untranslatable("input and output differ in scale or zero point")
    layout = reduced_layout(op, g)
    if input.type is not TensorType.INT64:
        _reduce(op, g, name, layout, Domain.STORED)
        return
    largest = _chained(op, g, name.removeprefix("Reduce"), g.read(input, layout=layout), layout)
    write_reduced(op, g, largest, layout, Domain.STORED)


@translator(Op.REDUCE_PROD, versions=(1, 2))
def reduce_prod(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceProd of floats; of integers Mul upon Mul; of truths as REDUCE_ALL."""
    input, layout = op["input"], reduced_layout(op, g)
    if input.type is TensorType.BOOL:
        _of_truths(op, g, "ReduceMin")
        return
    if input.is_quantized or op.output.is_quantized:
        axes = axes_of(op) if _known_terms(op) else None
        codes = g.reshape(product_of_codes(g, input, op.output, axes), op.output.shape)
        g.write(op.output, codes, domain=Domain.FILE)
        return
    if input.type is TensorType.FLOAT32:
        _reduce(op, g, "ReduceProd", layout, Domain.REAL)
        return
    if input.type not in _COMPARED:
        raise Untranslatable(f"{input.type.name} elements")
    wide = g.read(input, layout=layout)
    if input.type is not TensorType.INT64:
        wide = g.cast(wide, ir.DataType.INT32)
    product = _chained(op, g, "Mul", wide, layout)
    narrow = g.cast(product, ir.DataType[input.type.name])
    write_reduced(op, g, narrow, layout, Domain.REAL)


@translator(Op.REDUCE_ANY, versions=(1, 1))
def reduce_any(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMax of truths."""
    _of_truths(op, g, "ReduceMax")


@translator(Op.REDUCE_ALL, versions=(1, 1))
def reduce_all(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMin of truths."""
    _of_truths(op, g, "ReduceMin")


# The opset from which ReduceMax and ReduceMin take truths.
_TRUTHS_SINCE = 20


def _of_truths(op: OperatorView[ReducerOptions], g: Graph, name: str) -> None:
    if op["input"].type is not TensorType.BOOL:
        raise Untranslatable(f"{op['input'].type.name} elements")
    layout = reduced_layout(op, g)
    if g.opset >= _TRUTHS_SINCE and is_known(*op["input"].shape):
        _reduce(op, g, name, layout, Domain.REAL)
        return
    # Of no truths ONNX Runtime's ReduceMax fails; of no numbers it is the lowest one.
    numbers = g.cast(g.read(op["input"], layout=layout), ir.DataType.INT32)
    most = _reduced(op, g, name, numbers, layout)
    write_reduced(op, g, g.op("Greater", most, g.constant(0, np.int32)), layout, Domain.REAL)


@translator(Op.CUMSUM, versions=(1, 1))
def cumsum(op: OperatorView[CumsumOptions], g: Graph) -> None:
    """CumSum along a constant axis in either layout, a computed one channels-last."""
    input, where = op["input"], op["axis"]
    if input.type not in (TensorType.FLOAT32, *_INTEGERS):
        raise Untranslatable(f"{input.type.name} elements")
    if where.type is not TensorType.INT32 or prod(where.shape) != 1 or input.rank < 1:
        raise Untranslatable(f"axis of type {where.type.name} and shape {where.shape}")
    layout = Layout.LAST
    if where.is_constant:
        layout = g.layout(input)
        axis = layout.axis(normalized_axis(integers(where)[0], input.rank), input.rank)
        along = g.constant(axis, np.int32)
    else:
        along = g.reshape(g.read(where), ())
    result = g.op(
        "CumSum",
        g.read(input, layout=layout),
        along,
        exclusive=int(op.options.exclusive),
        reverse=int(op.options.reverse),
    )
    g.write(op.output, result, layout=layout)


@translator(Op.ARG_MAX, versions=(1, 3))
def arg_max(op: OperatorView[ArgMaxOptions], g: Graph) -> None:
    """ArgMax of the codes, the first of equals."""
    _first_index(op, g, "ArgMax")


@translator(Op.ARG_MIN, versions=(1, 3))
def arg_min(op: OperatorView[ArgMinOptions], g: Graph) -> None:
    """ArgMin of the codes, the first of equals."""
    _first_index(op, g, "ArgMin")


def _first_index(op: OperatorView[Any], g: Graph, name: str) -> None:
    input = op["input"]
    if input.type not in _SEARCHED:
        raise Untranslatable(f"{input.type.name} elements")
    axis = normalized_axis(integers(op["axis"])[0], input.rank) if op["axis"].is_constant else None
    # Without the channels, both layouts of the rest are one.
    layout = g.layout(input) if axis == input.rank - 1 else Layout.LAST
    value = g.read(input, layout=layout, domain=Domain.STORED)
    if input.type is TensorType.BOOL:
        value = g.cast(value, ir.DataType.UINT8)
    if axis is None:
        along = ComputedAxis.of(g, op["axis"], input.shape)
        found = along.dropped(g.op(name, along.folded(value), axis=1, keepdims=0))
    else:
        found = g.op(name, value, axis=layout.axis(axis, input.rank), keepdims=0)
    if op.output.type is TensorType.INT32:
        found = g.cast(found, ir.DataType.INT32)
    g.write(op.output, found)


def axes_of(op: OperatorView[Any]) -> tuple[int, ...]:
    """The axes of a reduction; Untranslatable where they are computed."""
    return normalized_axes(integers(op["axes"]), op["input"].rank)


def _check_real(*tensors: TensorView) -> None:
    for tensor in tensors:
        if tensor.type is not TensorType.FLOAT32 and not tensor.is_quantized:
            raise Untranslatable(f"{tensor.type.name} tensor {tensor.name!r} without a scale")


def _check_filled(op: OperatorView[Any]) -> None:
    shape = op["input"].shape
    if is_known(*shape) and 0 in shape:
        raise Untranslatable("ONNX Runtime gives the reduction of an empty tensor its shape")


def reduced_layout(op: OperatorView[ReducerOptions], g: Graph) -> Layout:
    """The layout of the input, unless the axes that are left would be out of order in it."""
    if not op["axes"].is_constant:
        return Layout.LAST
    input, axes = op["input"], axes_of(op)
    kept = [1 if axis in axes else size for axis, size in enumerate(input.shape)]
    return g.layout(input) if op.options.keep_dims or same_order(kept) else Layout.LAST


def _reduce(
    op: OperatorView[ReducerOptions], g: Graph, name: str, layout: Layout, domain: Domain
) -> None:
    input = op["input"]
    value = g.read(input, layout=layout, domain=domain)
    if domain is Domain.STORED:
        reduced = _reduced(op, g, name, widened(g, value, input.type), layout)
        write_reduced(op, g, narrowed(g, reduced, input.type), layout, domain)
    else:
        write_reduced(op, g, _reduced(op, g, name, value, layout), layout, domain)


def _reduced(
    op: OperatorView[ReducerOptions], g: Graph, name: str, value: ir.Value, layout: Layout
) -> ir.Value:
    """`name` over the axes, which are kept unless they are computed; without axes, `value`."""
    _check_filled(op)
    keep = op.options.keep_dims or op["axes"].is_constant
    axes = _reduced_axes(op, g, layout)
    reduced = g.op(name, value, axes, keepdims=int(keep), noop_with_empty_axes=1)
    return _of_some(op, g, reduced, value) if name == "ReduceMean" else reduced


def _reduced_axes(op: OperatorView[ReducerOptions], g: Graph, layout: Layout) -> ir.Value:
    """The axes as int64, none negative: ONNX Runtime fails on negative ones without elements.

    The graph fails if computed axes are out of range, or equal: the rank would be wrong.
    """
    axes, rank = op["axes"], op["input"].rank
    if axes.is_constant or not rank:
        known = axes_of(op) if rank else ()
        return g.ints([layout.axis(axis, rank) for axis in known])
    return distinct_axes(g, axes, rank)


def _chained(
    op: OperatorView[ReducerOptions], g: Graph, name: str, value: ir.Value, layout: Layout
) -> ir.Value:
    """`name` upon `name` over the axes, which are kept. ONNX Runtime reduces integers by way of
    double: large ones lose their last bits, and what overflows is held, not wrapped."""
    _check_filled(op)
    shape, rank = op["input"].shape, op["input"].rank
    if not op["axes"].is_constant and rank:
        return _chained_along(op, g, name, value, layout)
    if g.target.fallback and known_product(shape) > _MOST_CHAINED:
        raise Untranslatable("numpy needs less memory for large integer arrays")
    for axis in axes_of(op) if rank else ():
        place = layout.axis(axis, rank)
        value = combined_axis(g, name, op["input"].type, value, place, shape[axis])
    return value


def _chained_along(
    op: OperatorView[ReducerOptions], g: Graph, name: str, value: ir.Value, layout: Layout
) -> ir.Value:
    """`name` upon `name` over computed axes: along every axis, for those chosen in place of the
    elements; of these the first is taken in the end."""
    shape, zero, one = op["input"].shape, g.ints(0), g.ints(1)
    axes = _reduced_axes(op, g, layout)
    chosen = g.op("Greater", times_named(g, axes, len(shape)), zero)
    for axis, size in enumerate(shape):
        whole = combined_axis(g, name, op["input"].type, value, axis, size)
        value = g.op("Where", g.op("Gather", chosen, g.ints(axis)), whole, value)
    starts = g.ints([0] * len(shape))
    ends = g.op("Where", chosen, one, g.shape(shape))
    first = g.op("Slice", value, starts, ends)
    return first if op.options.keep_dims else g.op("Squeeze", first, axes)


def write_reduced(
    op: OperatorView[ReducerOptions], g: Graph, value: ir.Value, layout: Layout, domain: Domain
) -> None:
    """Write a result whose reduced axes are kept; drop them if the operator does."""
    if op.options.keep_dims or not op["axes"].is_constant:
        g.write(op.output, value, layout=layout, domain=domain)
    else:
        g.write(op.output, g.reshape(value, op.output.shape), domain=domain)


@translator(Op.REDUCE_WINDOW, versions=(1, 1), constants=("window", "strides", "dilations"))
def reduce_window(op: OperatorView[ReduceWindowOptions], g: Graph) -> None:
    """Slices of the input, combined axis by axis, for any function, rank and dilation."""
    listed = (tuple(integers(op[name])) for name in ("window", "strides", "dilations"))
    rows = reduced_windows(op["input"].shape, *listed)
    windows_reduced(op, g, rows, op.options.reduce_function)
