"""Arithmetic element by element: one operand (EXP, ABS, ...) or two that broadcast (ADD, ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.semantics import quantized_range

View = OperatorView[Any]
Emit = Callable[[View, Graph, ir.Value, ir.Value], ir.Value]

_T = TensorType
_FLOATS = frozenset({_T.FLOAT32, _T.FLOAT16})
_BYTES = frozenset({_T.UINT8, _T.INT8})
_CODES = _BYTES | {_T.INT16}
_INTEGERS = frozenset({_T.INT32, _T.INT64})


def refusal(op: View) -> Untranslatable:
    """The error for operand types that a translator does not take."""
    types = ", ".join("none" if t is None else t.type.name for t in op.inputs)
    return Untranslatable(f"{types} to {op.output.type.name} is not translated")


# Two operands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Binary:
    """A row of the table of operators with two operands.

    Args:
        emit: the nodes for two real, or two plain integer, operands.
        types: the types that are taken as stored; `domain` says in which codes.
        quantized: the quantised types that go through real numbers.
        fused: the options carry a fused activation.
    """

    op: Op
    versions: tuple[int, int]
    emit: Emit
    types: frozenset[TensorType]
    quantized: frozenset[TensorType] = frozenset()
    fused: bool = False
    domain: Domain = Domain.FILE

    def translate(self, op: View, g: Graph) -> None:
        """The operator on both inputs in the layout they have, numpy broadcasting."""
        a, b, output = op["input1"], op["input2"], op.output
        quantized = output.type in self.quantized and output.is_quantized
        if a.type is not b.type or a.type is not output.type:
            raise refusal(op)
        if not quantized and output.type not in self.types:
            raise refusal(op)
        if quantized and not (a.is_quantized and b.is_quantized):
            raise Untranslatable(f"{a.type.name} input without a scale")
        activation = ActivationFunctionType.NONE
        if self.fused:
            activation = op.options.fused_activation_function
        if activation and not quantized and output.type not in _FLOATS:
            raise Untranslatable(f"{activation.name} fused to {output.type.name} arithmetic")
        if quantized and self.op is Op.SUB and output.type in _BYTES:
            difference_of_bytes(op, g)
            return
        domain = Domain.REAL if quantized else self.domain
        layout = g.layout(a, b)
        first, second = (
            g.read(tensor, layout=layout, domain=domain, rank=output.rank) for tensor in (a, b)
        )
        result = self.emit(op, g, first, second)
        g.write(output, result, layout=layout, domain=domain, activation=activation)


def difference_of_bytes(op: View, g: Graph) -> None:
    """Floor(a - b + 1/2) in units of the output's scale: XNNPACK rounds halves up.

    No fused integer operator is lost by it: ONNX Runtime has none for Sub. And halves are common,
    since images are centred by subtracting half of a code.
    """
    a, b, output = op["input1"], op["input2"], op.output
    assert output.quantization is not None
    unit, layout = output.quantization.scalar_scale, g.layout(a, b)
    first, second = (g.read_units(t, unit, layout=layout, rank=output.rank) for t in (a, b))
    codes = g.quantize_units(g.op("Sub", first, second), output)
    activation = op.options.fused_activation_function
    g.write(output, codes, layout=layout, domain=Domain.STORED, activation=activation)


def _node(op_type: str) -> Emit:
    def emit(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
        return g.op(op_type, a, b)

    return emit


def _quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Div; one by an integer -1 can overflow, which ends the process."""
    if op.output.type is _T.INT32 and np.any(_nonzero_divisor(op) == -1):
        raise Untranslatable("integer divisor -1")
    return g.op("Div", a, b)


def _floor_quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Floor(Div) by way of double, as TFLite divides: no float32 quotient rounds up to a whole."""
    if op.output.type is not _T.FLOAT32:
        _nonzero_divisor(op)
    first, second = (g.op("Cast", value, to=ir.DataType.DOUBLE) for value in (a, b))
    floor = g.op("Floor", g.op("Div", first, second))
    return g.op("Cast", floor, to=ir.DataType.from_numpy(op.output.dtype))


def _nonzero_divisor(op: View) -> Any:
    """The integer divisor: division by zero has to be an error, and is only seen beforehand."""
    divisor = op["input2"].data
    if divisor is None or not np.all(divisor):
        raise Untranslatable("integer divisor that may be 0")
    return divisor


def _power(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Pow; a negative exponent of an integer is an error, and is only seen beforehand."""
    if op.output.type is _T.INT32:
        exponent = op["input2"].data
        if exponent is None or np.any(exponent < 0):
            raise Untranslatable("integer exponent that may be negative")
    return g.op("Pow", a, b)


def _squared_difference(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    difference = g.op("Sub", a, b)
    return g.op("Mul", difference, difference)


def _choice(comparison: str, op_type: str) -> Emit:
    """Max or Min of the numbers as stored: TFLite compares codes, whatever their scales.

    For floats it is spelt as a comparison, which decides what becomes of NaN: TFLite gives the
    second operand where either is NaN, Max would give NaN.
    """

    def emit(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
        if op.output.type in _FLOATS:
            return g.op("Where", g.op(comparison, a, b), a, b)
        if op.output.type is not _T.INT16:
            return g.op(op_type, a, b)
        wide = (g.op("Cast", value, to=ir.DataType.INT32) for value in (a, b))
        return g.op("Cast", g.op(op_type, *wide), to=ir.DataType.INT16)

    return emit


_INT16 = frozenset({_T.INT16})
_ORDERED = _FLOATS | _INTEGERS | _CODES

BINARY = (
    Binary(Op.ADD, (1, 6), _node("Add"), _FLOATS | _INTEGERS | _INT16, _CODES, fused=True),
    Binary(Op.SUB, (1, 5), _node("Sub"), _INTEGERS | {_T.FLOAT32}, _CODES, fused=True),
    Binary(
        Op.MUL, (1, 8), _node("Mul"), _FLOATS | _INTEGERS | _INT16 | {_T.UINT32}, _CODES, fused=True
    ),
    Binary(Op.DIV, (1, 2), _quotient, frozenset({_T.FLOAT32, _T.INT32}), _CODES, fused=True),
    Binary(
        Op.SQUARED_DIFFERENCE,
        (1, 2),
        _squared_difference,
        frozenset({_T.FLOAT32, _T.INT32}),
        frozenset({_T.INT8}),
    ),
    Binary(
        Op.FLOOR_DIV,
        (1, 3),
        _floor_quotient,
        frozenset({_T.FLOAT32, _T.INT32, _T.INT16, _T.INT8}),
    ),
    Binary(Op.POW, (1, 1), _power, frozenset({_T.FLOAT32, _T.INT32})),
    Binary(Op.MAXIMUM, (1, 4), _choice("Greater", "Max"), _ORDERED, domain=Domain.STORED),
    Binary(Op.MINIMUM, (1, 4), _choice("Less", "Min"), _ORDERED, domain=Domain.STORED),
)

for row in BINARY:
    translator(row.op, versions=row.versions, inputs=("input1", "input2"))(row.translate)


# One operand -------------------------------------------------------------------------------------


def _read(op: View, g: Graph, types: frozenset[TensorType]) -> tuple[ir.Value, Any]:
    """The real input and its layout, if it is of one of `types` (8 and 16 bits: quantised)."""
    input = op["input"]
    if input.type not in types or input.type is not op.output.type:
        raise refusal(op)
    if input.type in _CODES and not (input.is_quantized and op.output.is_quantized):
        raise Untranslatable(f"{input.type.name} without a scale")
    layout = g.layout(input)
    return g.read(input, layout=layout), layout


def _starts_at_zero(tensor: TensorView) -> bool:
    """Whether no code of a quantised tensor stands for a negative number."""
    quantization = tensor.quantization
    lowest, _ = quantized_range(tensor.type)
    return quantization is not None and quantization.scalar_zero_point <= lowest


@translator(Op.EXP, versions=(1, 2), inputs=("input",))
def exp(op: View, g: Graph) -> None:
    """Exp."""
    x, layout = _read(op, g, frozenset({_T.FLOAT32, _T.INT8}))
    g.write(op.output, g.op("Exp", x), layout=layout)


@translator(Op.LOG, versions=(1, 2), inputs=("input",))
def log(op: View, g: Graph) -> None:
    """Log; quantised numbers below 0 are taken as 0, whose logarithm is the lowest code."""
    x, layout = _read(op, g, frozenset({_T.FLOAT32, _T.INT8}))
    if op["input"].is_quantized:
        x = g.op("Relu", x)
    g.write(op.output, g.op("Log", x), layout=layout)


@translator(Op.SQRT, versions=(1, 2), inputs=("input",))
def sqrt(op: View, g: Graph) -> None:
    """Sqrt; of quantised numbers Floor(Sqrt(x) / scale) * scale, since TFLite cuts the code."""
    x, layout = _read(op, g, frozenset({_T.FLOAT32, _T.INT8}))
    root = g.op("Sqrt", x)
    quantization = op.output.quantization
    if op["input"].is_quantized and quantization is not None:
        if not _starts_at_zero(op["input"]):
            raise Untranslatable("square root of codes that may be negative")
        unit = g.constant(quantization.scale[0], np.float32)
        root = g.op("Mul", g.op("Floor", g.op("Div", root, unit)), unit)
    g.write(op.output, root, layout=layout)


@translator(Op.RSQRT, versions=(1, 3), inputs=("input",))
def rsqrt(op: View, g: Graph) -> None:
    """Reciprocal(Sqrt(x)); infinity saturates when it is quantised."""
    x, layout = _read(op, g, frozenset({_T.FLOAT32, _T.INT8}))
    if op["input"].is_quantized and not _starts_at_zero(op["input"]):
        raise Untranslatable("square root of codes that may be negative")
    g.write(op.output, g.op("Reciprocal", g.op("Sqrt", x)), layout=layout)


@translator(Op.ABS, versions=(1, 5), inputs=("input",))
def abs(op: View, g: Graph) -> None:
    """Abs of real numbers, or of plain INT16 and INT32."""
    input, output, layout = op["input"], op.output, g.layout(op["input"])
    plain = input.type is _T.INT32 or (input.type is _T.INT16 and not input.is_quantized)
    if not plain:
        x, _ = _read(op, g, frozenset({_T.FLOAT32, _T.INT8, _T.INT16}))
        g.write(output, g.op("Abs", x), layout=layout)
        return
    if input.type is not output.type or output.is_quantized is not input.is_quantized:
        raise refusal(op)
    result = g.op("Abs", g.read(input, layout=layout, domain=Domain.FILE))
    g.write(output, result, layout=layout, domain=Domain.FILE)


@translator(Op.NEG, versions=(1, 1), inputs=("input",))
def neg(op: View, g: Graph) -> None:
    """Neg of the numbers as the file has them: TFLite ignores the quantisation."""
    input, layout = op["input"], g.layout(op["input"])
    if input.type not in _FLOATS | _INTEGERS | {_T.INT8, _T.INT16}:
        raise refusal(op)
    result = g.op("Neg", g.read(input, layout=layout, domain=Domain.FILE))
    g.write(op.output, result, layout=layout, domain=Domain.FILE)
