"""Comparisons, LOGICAL_NOT, and selection by a condition.

Rows of a table: equal, not_equal, less, less_equal, greater, greater_equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.elementwise import refusal
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.complex_arithmetic import as_pairs
from tflite_ort.opmap.idioms.indices import failing, matched
from tflite_ort.opmap.idioms.long_runs import read_operand
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import differ, may_differ

View = OperatorView[Any]

_T = TensorType
_BYTES = frozenset({_T.UINT8, _T.INT8})
_NUMBERS = frozenset({_T.FLOAT32, _T.FLOAT16, _T.INT32, _T.INT64})
_EQUALITY = frozenset({Op.EQUAL, Op.NOT_EQUAL})  # these rescale 16-bit codes too
# Types that ONNX Runtime's Where does not take, and the wider ones that carry them.
_CARRIERS = {
    _T.BOOL: ir.DataType.UINT8,
    _T.INT16: ir.DataType.INT32,
    _T.UINT16: ir.DataType.INT32,
    _T.UINT64: ir.DataType.INT64,  # of the same bits
}
_SELECTED = frozenset(
    {
        *(_T.FLOAT16, _T.FLOAT32, _T.FLOAT64, *_CARRIERS),
        *(_T.INT8, _T.UINT8, _T.INT32, _T.UINT32, _T.INT64),
    }
)


# Comparisons -------------------------------------------------------------------------------------


def compared(op_type: str, negated: bool, types: frozenset[TensorType], op: View, g: Graph) -> None:
    """One comparison; 8-bit codes are compared after TFLite's rescaling."""
    a, b, output = op["input1"], op["input2"], op.output
    if a.type is not b.type or output.type is not _T.BOOL:
        raise refusal(op)
    layout = g.layout(a, b)
    if a.type in _BYTES or (a.type is _T.INT16 and a.is_quantized and op.op in _EQUALITY):
        first, second = _units(op, g, layout)
    elif a.type in types:
        first, second = (
            read_operand(g, tensor, other, layout, Domain.FILE, output.rank)
            for tensor, other in ((a, b), (b, a))
        )
    else:
        raise refusal(op)
    result = g.op(op_type, first, second)
    g.write(output, g.op("Not", result) if negated else result, layout=layout)


for operator, last, op_type, negated, types in (
    (Op.EQUAL, 5, "Equal", False, _NUMBERS | {_T.BOOL, _T.INT16, _T.STRING}),
    (Op.NOT_EQUAL, 4, "Equal", True, _NUMBERS | {_T.BOOL, _T.STRING}),
    (Op.LESS, 3, "Less", False, _NUMBERS | {_T.INT16}),
    (Op.LESS_EQUAL, 2, "LessOrEqual", False, _NUMBERS | {_T.INT16}),
    (Op.GREATER, 2, "Greater", False, _NUMBERS | {_T.INT16}),
    (Op.GREATER_EQUAL, 3, "GreaterOrEqual", False, _NUMBERS | {_T.INT16}),
):
    translator(operator, versions=(1, last))(partial(compared, op_type, negated, types))


def _units(op: View, g: Graph, layout: Layout) -> Sequence[ir.Value]:
    """Both quantized operands in TFLite's common unit of 1/256.

    These are the codes themselves if they have the same order, otherwise elements of a table.
    """
    tensors = (op["input1"], op["input2"])
    tables = [unit_table(tensor) for tensor in tensors]
    alike = np.array_equal(tables[0], tables[1]) and bool(np.all(np.diff(tables[0]) > 0))
    rank = op.output.rank
    values = [
        read_operand(g, tensor, other, layout, Domain.STORED, rank)
        for tensor, other in zip(tensors, reversed(tensors), strict=True)
    ]
    if alike:
        return values
    if tensors[0].type is _T.INT16:
        raise Untranslatable("16-bit codes of different or very small scales")
    indices = (g.cast(value, ir.DataType.INT32) for value in values)
    common = np.result_type(*tables)
    return [
        g.op("Gather", g.constant(table.astype(common)), index)
        for table, index in zip(tables, indices, strict=True)
    ]


def unit_table(tensor: TensorView) -> npt.NDArray[Any]:
    """The integers that TFLite compares, one for each code, from the lowest code on.

    It is 256 * real value, rounded twice: to the fraction bits that are left in the fixed-point
    product, then to an integer. For scales of 1 and more, which TFLite has no multiplier for, it is
    a double.
    """
    quantization = tensor.quantization
    if not tensor.is_quantized or quantization is None:
        raise Untranslatable(f"{tensor.type.name} without a scale")
    if quantization.per_channel or quantization.scalar_scale <= 0:
        raise Untranslatable(f"scale {quantization.scalar_scale} is not above 0")
    low, high = quantized_range(tensor.type)
    codes = np.arange(low, high + 1, dtype=np.int64) - quantization.scalar_zero_point
    if quantization.scalar_scale >= 1:
        return np.asarray(np.rint(codes * (256 * quantization.scalar_scale)))
    mantissa, exponent = math.frexp(quantization.scalar_scale)
    if exponent < -31:  # TFLite has no multiplier that small
        return np.zeros(codes.shape, np.int32)
    product = ((codes << 8) * int(mantissa * 2**31) + 2**30) >> 31
    half = (1 << -exponent) >> 1
    return np.asarray(np.sign(product) * ((np.abs(product) + half) >> -exponent), np.int32)


# Logical ------------------------------------------------------------------------------------------


@translator(Op.LOGICAL_NOT, versions=(1, 1))
def logical_not(op: View, g: Graph) -> None:
    """Not."""
    input, layout = op["input"], g.layout(op["input"])
    if input.type is not _T.BOOL or op.output.type is not _T.BOOL:
        raise refusal(op)
    g.write(op.output, g.op("Not", g.read(input, layout=layout)), layout=layout)


# Selection ---------------------------------------------------------------------------------------


@translator(Op.SELECT, versions=(1, 4))
def select(op: View, g: Graph) -> None:
    """Where; a condition of rank 1 chooses along the first dimension."""
    condition, x = op["condition"], op["x"]
    if condition.rank == 0 or not may_differ(condition.shape, x.shape):
        where(op, g, g.layout(condition, x, op["y"]))
        return
    if condition.rank == x.rank:
        if is_complex(x):
            raise Untranslatable("complex numbers by a condition whose shape may be another one")
        where(op, g, Layout.LAST, matched(g, g.read(condition), g.read(x, domain=Domain.STORED)))
        return
    if condition.rank != 1 or differ(condition.shape, x.shape[:1]):
        raise Untranslatable(f"condition {condition.shape} does not fit values {x.shape}")
    size = g.size(condition.shape[0])
    if may_differ(condition.shape, x.shape[:1]):
        size = failing(g, size, g.op("Not", g.op("Equal", size, g.size(x.shape[0]))))
    shape = g.op("Concat", size, g.ints([1] * (x.rank - 1)), axis=0)
    where(op, g, Layout.LAST, g.op("Reshape", g.read(condition), shape, allowzero=1))


@translator(Op.SELECT_V2, versions=(1, 2))
def select_v2(op: View, g: Graph) -> None:
    """Where; condition and values broadcast."""
    where(op, g, g.layout(*op.present_inputs()))


def _has_pair(g: Graph, x: TensorView, y: TensorView, output: TensorView) -> bool:
    """Whether codes of one scale stand between a pair."""
    found = output.quantization
    if found is None or not g.target.paired_codes:
        return False
    return all(t.quantization is not None and t.quantization.equals(found) for t in (x, y))


def where(op: View, g: Graph, layout: Layout, condition: ir.Value | None = None) -> None:
    """Where on the numbers as stored: codes are copied, whatever their scales are. Of complex
    numbers both parts are chosen by one condition."""
    if is_complex(op["x"]):
        condition = g.read(op["condition"]) if condition is None else condition
        op, condition = as_pairs(op), g.op("Unsqueeze", condition, g.ints([-1]))
        layout = Layout.LAST
    x, y, output = op["x"], op["y"], op.output
    if op["condition"].type is not _T.BOOL or x.type is not y.type or x.type not in _SELECTED:
        raise Untranslatable(f"selection from {x.type.name} and {y.type.name}")
    if {x.is_quantized, y.is_quantized, output.is_quantized} == {True, False}:
        raise Untranslatable("only some of the values are quantized")
    rank = output.rank
    if condition is None:
        condition = read_operand(g, op["condition"], output, layout, Domain.FILE, rank)
    values = [read_operand(g, t, output, layout, Domain.STORED, rank) for t in (x, y)]
    carrier, paired = _CARRIERS.get(x.type), _has_pair(g, x, y, output)
    if paired:
        values = [g.dequantize(value, output) for value in values]
    elif carrier is not None:
        leave_many_to_numpy(g, output.shape, f"values of {x.type.name}")
        values = [g.cast(value, carrier) for value in values]
    result = g.op("Where", condition, *values)
    if paired:
        result = g.quantize(result, output)
    elif carrier is not None:
        result = g.cast(result, output.dtype)
    if rank != max(t.rank for t in op.present_inputs()):
        # A single element gets the rank that the model declares.
        result = g.reshape(result, output.shape)
    g.write(output, result, layout=layout, domain=Domain.STORED)
