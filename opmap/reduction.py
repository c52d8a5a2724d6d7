"""Reductions over constant axes: MEAN to ARG_MIN."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.movement import integers, narrowed, reshaped, same_order, widened
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    Op,
    OperatorView,
    ReducerOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.semantics import normalized_axes, normalized_axis

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


@translator(Op.MEAN, versions=(1, 3), inputs=("input", "axes!"))
def mean(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """GlobalAveragePool of channels-first images, else ReduceMean; integers are divided as in C."""
    input, axes = op["input"], _axes(op)
    if input.type in _INTEGERS:
        _integer_mean(op, g, prod(input.shape[axis] for axis in axes))
        return
    _check_real(input)
    layout = _layout(op, g)
    if layout is Layout.FIRST and axes == tuple(range(1, input.rank - 1)):
        pooled = g.op("GlobalAveragePool", g.read(input, layout=layout))
        _write(op, g, pooled, layout, Domain.REAL)
    else:
        _reduce(op, g, "ReduceMean", layout, Domain.REAL)


def _integer_mean(op: OperatorView[ReducerOptions], g: Graph, count: int) -> None:
    """The sum in int64 over `count`, cut towards zero."""
    wide = g.op("Cast", g.read(op["input"]), to=ir.DataType.INT64)
    total = _reduced(op, g, "ReduceSum", wide, Layout.LAST)
    quotient = g.op("Div", total, g.constant(count, np.int64))
    narrow = g.op("Cast", quotient, to=ir.DataType[op.output.type.name])
    _write(op, g, narrow, Layout.LAST, Domain.REAL)


@translator(Op.SUM, versions=(1, 2), inputs=("input", "axes!"))
def sum(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceSum."""
    if op["input"].type not in _INTEGERS:
        _check_real(op["input"])
    _reduce(op, g, "ReduceSum", _layout(op, g), Domain.REAL)


@translator(Op.REDUCE_MAX, versions=(1, 3), inputs=("input", "axes!"))
def reduce_max(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMax of the codes."""
    _extremum(op, g, "ReduceMax")


@translator(Op.REDUCE_MIN, versions=(1, 3), inputs=("input", "axes!"))
def reduce_min(op: OperatorView[ReducerOptions], g: Graph) -> None:
    """ReduceMin of the codes."""
    _extremum(op, g, "ReduceMin")


def _extremum(op: OperatorView[ReducerOptions], g: Graph, name: str) -> None:
    input, output = op["input"], op.output
    if input.type not in _COMPARED:
        raise Untranslatable(f"{input.type.name} elements")
    if input.is_quantized != output.is_quantized or (
        input.quantization is not None and not input.quantization.equals(output.quantization)
    ):
        raise Untranslatable("input and output differ in scale or zero point")
    _reduce(op, g, name, _layout(op, g), Domain.STORED)


@translator(Op.ARG_MAX, versions=(1, 3), inputs=("input", "axis!"))
def arg_max(op: OperatorView[ArgMaxOptions], g: Graph) -> None:
    """ArgMax of the codes, the first of equals."""
    _first_index(op, g, "ArgMax")


@translator(Op.ARG_MIN, versions=(1, 3), inputs=("input", "axis!"))
def arg_min(op: OperatorView[ArgMinOptions], g: Graph) -> None:
    """ArgMin of the codes, the first of equals."""
    _first_index(op, g, "ArgMin")


def _first_index(op: OperatorView[Any], g: Graph, name: str) -> None:
    input = op["input"]
    if input.type not in _SEARCHED:
        raise Untranslatable(f"{input.type.name} elements")
    axis = normalized_axis(integers(op["axis"])[0], input.rank)
    # Without the channels, both layouts of the rest are one.
    layout = g.layout(input) if axis == input.rank - 1 else Layout.LAST
    value = g.read(input, layout=layout, domain=Domain.STORED)
    if input.type is TensorType.BOOL:
        value = g.op("Cast", value, to=ir.DataType.UINT8)
    found = g.op(name, value, axis=layout.axis(axis, input.rank), keepdims=0)
    if op.output.type is TensorType.INT32:
        found = g.op("Cast", found, to=ir.DataType.INT32)
    g.write(op.output, found)


def _axes(op: OperatorView[Any]) -> tuple[int, ...]:
    return normalized_axes(integers(op["axes"]), op["input"].rank)


def _check_real(input: TensorView) -> None:
    if input.type is not TensorType.FLOAT32 and not input.is_quantized:
        raise Untranslatable(f"{input.type.name} input without a scale")


def _layout(op: OperatorView[ReducerOptions], g: Graph) -> Layout:
    """The layout the input has, unless what is left after dropping axes would be out of order."""
    input, axes = op["input"], _axes(op)
    kept = [1 if axis in axes else size for axis, size in enumerate(input.shape)]
    return g.layout(input) if op.options.keep_dims or same_order(kept) else Layout.LAST


def _reduce(
    op: OperatorView[ReducerOptions], g: Graph, name: str, layout: Layout, domain: Domain
) -> None:
    input = op["input"]
    value = g.read(input, layout=layout, domain=domain)
    if domain is Domain.STORED:
        reduced = _reduced(op, g, name, widened(g, value, input.type), layout)
        _write(op, g, narrowed(g, reduced, input.type), layout, domain)
    else:
        _write(op, g, _reduced(op, g, name, value, layout), layout, domain)


def _reduced(
    op: OperatorView[ReducerOptions], g: Graph, name: str, value: ir.Value, layout: Layout
) -> ir.Value:
    """`name` over the axes, which are kept; no axes reduce nothing."""
    axes = [layout.axis(axis, op["input"].rank) for axis in _axes(op)]
    return g.op(name, value, g.constant(axes, np.int64), keepdims=1, noop_with_empty_axes=1)


def _write(
    op: OperatorView[ReducerOptions], g: Graph, value: ir.Value, layout: Layout, domain: Domain
) -> None:
    """Record a result whose reduced axes are kept, without them if need be."""
    if op.options.keep_dims:
        g.write(op.output, value, layout=layout, domain=domain)
    else:
        g.write(op.output, reshaped(g, value, op.output.shape), domain=domain)
