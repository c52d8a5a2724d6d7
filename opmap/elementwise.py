"""Arithmetic element by element: one operand (EXP, ABS, ...) or two that broadcast (ADD, ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.pairs import is_complex
from tflite_ort.opmap.idioms.by_code import by_code, every_code
from tflite_ort.opmap.idioms.indices import failing, matched
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ActivationFunctionType,
    BucketizeOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.function_table import (
    int16_table,
    interpolated,
    tabulated_function,
)
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import differ, may_differ

View = OperatorView[Any]
Emit = Callable[[View, Graph, ir.Value, ir.Value], ir.Value]
Single = Callable[[View, Graph, ir.Value], ir.Value]

_T = TensorType
_FLOAT32 = frozenset({_T.FLOAT32})
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
        if domain is Domain.STORED:
            domain = moved_domain(a, b, output)
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


def one_node(op_type: str) -> Emit:
    """A node of both operands."""

    def emit(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
        return g.op(op_type, a, b)

    return emit


def _product(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Mul; of complex numbers, the real part times b plus the other times b turned by 90°."""
    if not is_complex(op.output):
        return g.op("Mul", a, b)
    real, imaginary = g.op_multi("Split", a, outputs=2, axis=-1, num_outputs=2)
    turned = g.op("Gather", b, g.constant([1, 0], np.int64), axis=-1)
    turned = g.op("Mul", turned, g.constant([-1, 1], np.float32))
    return g.op("Add", g.op("Mul", real, b), g.op("Mul", imaginary, turned))


def _quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Div; of integers in 64 bits, where the lowest one over -1 does not end the process: it is
    the highest one."""
    if op.output.type is not _T.INT32:
        return g.op("Div", a, b)
    quotient = g.op("Div", g.op("Cast", a, to=ir.DataType.INT64), _divisor(op, g, b))
    known = op["input2"].data
    if known is None or np.any(known == -1):
        quotient = g.smaller(quotient, g.constant(np.iinfo(np.int32).max, np.int64))
    return g.op("Cast", quotient, to=ir.DataType.INT32)


def _floor_quotient(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Floor(Div) by way of double, as TFLite divides: no float32 quotient rounds up to a whole."""
    if op.output.type is not _T.FLOAT32:
        b = _divisor(op, g, b)
    first, second = (g.op("Cast", value, to=ir.DataType.DOUBLE) for value in (a, b))
    floor = g.op("Floor", g.op("Div", first, second))
    return g.op("Cast", floor, to=ir.DataType.from_numpy(op.output.dtype))


def _divisor(op: View, g: Graph, b: ir.Value) -> ir.Value:
    """The integer divisor in 64 bits; the graph fails where it is 0.

    Where there are kernels, one that may be 0 is left to them: their error says which number it is.
    """
    wide, known = g.op("Cast", b, to=ir.DataType.INT64), op["input2"].data
    if known is not None and np.all(known):
        return wide
    if known is not None or g.target.fallback:
        raise Untranslatable("integer divisor that may be 0")
    return failing(g, wide, g.op("Equal", wide, g.constant(0, np.int64)))


def _floor_modulo(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Mod, which takes the divisor's sign for integers; for floats it has the dividend's, as
    C's remainder does, and the divisor is added where the two signs differ."""
    if op.output.type is not _T.FLOAT32:
        divisor, one = _divisor(op, g, b), g.constant(1, np.int64)
        # The lowest integer over -1 would end the process.
        divisor = g.op("Where", g.op("Equal", divisor, g.op("Neg", one)), one, divisor)
        remainder = g.op("Mod", g.op("Cast", a, to=ir.DataType.INT64), divisor)
        return g.op("Cast", remainder, to=ir.DataType.from_numpy(op.output.dtype))
    zero = g.constant(0, np.float32)
    remainder = g.op("Mod", a, b, fmod=1)
    signs = g.op("Xor", g.op("Less", b, zero), g.op("Less", remainder, zero))
    whole = g.op("Equal", remainder, zero)
    shifted = g.op("And", signs, g.op("Not", whole))
    return g.op("Where", shifted, g.op("Add", remainder, b), remainder)


def _angle(op: View, g: Graph, y: ir.Value, x: ir.Value) -> ir.Value:
    """Atan of the smaller magnitude over the larger, reflected into the octant of (x, y).

    The quotient is in [0, 1], so no quadrant is lost to infinity or to 0 / 0; a zero is negative
    where its reciprocal is.
    """
    shapes = (op["input1"].shape, op["input2"].shape)
    if differ(*shapes):
        raise Untranslatable(f"shapes {shapes[0]} and {shapes[1]} differ")
    if may_differ(*shapes):
        x = matched(g, x, y)
    dtype = op.output.dtype
    zero, right, straight = (g.constant(angle, dtype) for angle in (0, np.pi / 2, np.pi))
    high, wide = g.op("Abs", y), g.op("Abs", x)
    quotient = g.op("Div", g.op("Min", high, wide), g.op("Max", high, wide))
    quotient = g.op("Where", g.op("Equal", high, wide), g.op("Sign", high), quotient)
    angle = _arctangent(g, quotient, dtype)
    angle = g.op("Where", g.op("Greater", high, wide), g.op("Sub", right, angle), angle)
    below, left = (
        g.op("Or", g.op("Less", v, zero), g.op("Less", g.op("Reciprocal", v), zero)) for v in (y, x)
    )
    angle = g.op("Where", left, g.op("Sub", straight, angle), angle)
    # Not Where(below, Neg(angle), angle): ONNX Runtime's loses the sign of a zero that it takes.
    sign = g.op("Where", below, g.constant(-1, dtype), g.constant(1, dtype))
    return g.op("Mul", angle, sign)


def _arctangent(g: Graph, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """Atan; of doubles, which ONNX Runtime has none for, that of float32 and a step of Newton's."""
    if dtype != np.float64:
        return g.op("Atan", x)
    rough = g.op("Atan", g.op("Cast", x, to=ir.DataType.FLOAT))
    rough = g.op("Cast", rough, to=ir.DataType.DOUBLE)
    sine, cosine = g.op("Sin", rough), g.op("Cos", rough)
    rest = g.op("Sub", g.op("Mul", x, cosine), sine)
    return g.op("Add", rough, g.op("Div", rest, g.op("Add", cosine, g.op("Mul", x, sine))))


def _power(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Pow; of integers the graph fails where an exponent is negative, if no kernel can say so.

    Where integers overflow, ONNX Runtime's Pow and TFLite's give the lowest one, except that the
    latter multiplies, and wraps, for a single exponent that broadcasts.
    """
    if op.output.type is not _T.INT32:
        return g.op("Pow", a, b)
    exponents, negative = op["input2"], g.op("Less", b, g.constant(0, np.int32))
    known = exponents.data
    if g.target.fallback if known is None else np.any(known < 0):
        raise Untranslatable("integer exponent that may be negative")
    if known is None:
        b = failing(g, g.op("Cast", b, to=ir.DataType.INT64), negative)
    if exponents.dynamic or prod(exponents.shape) != 1 or exponents.shape == op["input1"].shape:
        return g.op("Pow", a, b)
    return _integer_power(g, a, b, 31 if known is None else int(known.max()).bit_length())


def _integer_power(g: Graph, a: ir.Value, b: ir.Value, bits: int) -> ir.Value:
    """The product of squares of squares, one for each bit of the exponent."""
    two, one = g.constant(2, np.int64), g.constant(1, np.int32)
    power, rest = one, g.op("Cast", b, to=ir.DataType.INT64)
    for bit in range(max(bits, 1)):
        if bit:
            rest, a = g.op("Div", rest, two), g.op("Mul", a, a)
        is_set = g.op("Cast", g.op("Mod", rest, two), to=ir.DataType.BOOL)
        power = g.op("Mul", power, g.op("Where", is_set, a, one))
    return power


def _squared_difference(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    difference = g.op("Sub", a, b)
    return g.op("Mul", difference, difference)


def _choice(comparison: str, op_type: str) -> Emit:
    """Max or Min of the numbers as stored: TFLite compares codes, whatever their scales.

    For floats it is spelt as a comparison, which decides what becomes of NaN: TFLite gives the
    second operand where either is NaN, Max would give NaN. So are 64-bit integers, of which ONNX
    Runtime's Max is wrong beyond 32 bits.
    """

    def emit(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
        if op.output.type in _FLOATS or op.output.type is _T.INT64:
            return g.op("Where", g.op(comparison, a, b), a, b)
        if op.output.type is not _T.INT16:
            return g.op(op_type, a, b)
        wide = (g.op("Cast", value, to=ir.DataType.INT32) for value in (a, b))
        return g.op("Cast", g.op(op_type, *wide), to=ir.DataType.INT16)

    return emit


_INT16 = frozenset({_T.INT16})
_ORDERED = _FLOATS | _INTEGERS | _CODES

BINARY = (
    Binary(Op.ADD, (1, 6), one_node("Add"), _FLOATS | _INTEGERS | _INT16, _CODES, fused=True),
    Binary(Op.SUB, (1, 5), one_node("Sub"), _INTEGERS | {_T.FLOAT32}, _CODES, fused=True),
    Binary(
        Op.MUL,
        (1, 8),
        _product,
        _FLOATS | _INTEGERS | _INT16 | {_T.UINT32, _T.COMPLEX64},
        _CODES,
        fused=True,
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
    Binary(
        Op.FLOOR_MOD,
        (1, 2),
        _floor_modulo,
        _INTEGERS | {_T.FLOAT32, _T.INT16, _T.INT8},
    ),
    Binary(Op.ATAN2, (1, 1), _angle, _FLOATS | {_T.FLOAT64}),
    Binary(Op.POW, (1, 1), _power, frozenset({_T.FLOAT32, _T.INT32})),
    Binary(Op.MAXIMUM, (1, 4), _choice("Greater", "Max"), _ORDERED, domain=Domain.STORED),
    Binary(Op.MINIMUM, (1, 4), _choice("Less", "Min"), _ORDERED, domain=Domain.STORED),
)

for row in BINARY:
    translator(row.op, versions=row.versions)(row.translate)


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


def _by_table(op: View, g: Graph) -> bool:
    """Gather of the result of every 16-bit code: TFLite interpolates a coarse table. False where
    the codes have other bits."""
    input, output = op["input"], op.output
    if not input.type is output.type is _T.INT16:
        return False
    given, made = input.quantization, output.quantization
    if given is None or made is None or given.scalar_zero_point or made.scalar_zero_point:
        raise Untranslatable("INT16 without a scale, or with a zero point")
    function = tabulated_function(op, np.float32(made.scalar_scale), 0)
    points = int16_table(function, given.scalar_scale, made.scalar_scale)
    results = interpolated(every_code(_T.INT16), points)
    if op.op is Op.RSQRT:
        by_code(op, g, results, partial(_failing_below_0, g))
    else:
        by_code(op, g, results)
    return True


def _failing_below_0(g: Graph, codes: ir.Value) -> ir.Value:
    return failing(g, codes, g.op("Less", codes, g.constant(0, np.int64)))


@translator(Op.EXP, versions=(1, 2))
def exp(op: View, g: Graph) -> None:
    """Exp."""
    if _by_table(op, g):
        return
    x, layout = _read(op, g, _FLOAT32 | {_T.INT8})
    g.write(op.output, g.op("Exp", x), layout=layout)


@translator(Op.LOG, versions=(1, 2))
def log(op: View, g: Graph) -> None:
    """Log; quantised numbers below 0 are taken as 0, whose logarithm is the lowest code."""
    if _by_table(op, g):
        return
    x, layout = _read(op, g, _FLOAT32 | {_T.INT8})
    if op["input"].is_quantized:
        x = g.op("Relu", x)
    g.write(op.output, g.op("Log", x), layout=layout)


@translator(Op.SQRT, versions=(1, 2))
def sqrt(op: View, g: Graph) -> None:
    """Sqrt; of quantised numbers Floor(Sqrt(x) / scale) * scale, since TFLite cuts the code."""
    x, layout = _read(op, g, _FLOAT32 | {_T.INT8})
    root = g.op("Sqrt", x)
    quantization = op.output.quantization
    if op["input"].is_quantized and quantization is not None:
        if not _starts_at_zero(op["input"]):
            raise Untranslatable("square root of codes that may be negative")
        unit = g.constant(quantization.sole_scale, np.float32)
        root = g.op("Mul", g.op("Floor", g.op("Div", root, unit)), unit)
    g.write(op.output, root, layout=layout)


@translator(Op.RSQRT, versions=(1, 3))
def rsqrt(op: View, g: Graph) -> None:
    """Reciprocal(Sqrt(x)); infinity saturates when it is quantised. The graph fails where 16-bit
    codes are negative, if there is no kernel to say so."""
    if op["input"].type is _T.INT16 and g.target.fallback:
        raise Untranslatable("square root of codes that may be negative")
    if _by_table(op, g):
        return
    x, layout = _read(op, g, _FLOAT32 | {_T.INT8})
    if op["input"].is_quantized and not _starts_at_zero(op["input"]):
        raise Untranslatable("square root of codes that may be negative")
    g.write(op.output, g.op("Reciprocal", g.op("Sqrt", x)), layout=layout)


@translator(Op.ABS, versions=(1, 5))
def abs(op: View, g: Graph) -> None:
    """Abs of real numbers, or of plain INT16 and INT32."""
    input, output, layout = op["input"], op.output, g.layout(op["input"])
    plain = input.type is _T.INT32 or (input.type is _T.INT16 and not input.is_quantized)
    if not plain:
        x, _ = _read(op, g, _FLOAT32 | {_T.INT8, _T.INT16})
        g.write(output, g.op("Abs", x), layout=layout)
        return
    if input.type is not output.type or output.is_quantized is not input.is_quantized:
        raise refusal(op)
    result = g.op("Abs", g.read(input, layout=layout, domain=Domain.FILE))
    g.write(output, result, layout=layout, domain=Domain.FILE)


@translator(Op.NEG, versions=(1, 1))
def neg(op: View, g: Graph) -> None:
    """Neg of the numbers as the file has them: TFLite ignores the quantisation."""
    input, layout = op["input"], g.layout(op["input"])
    if input.type not in _FLOATS | _INTEGERS | {_T.INT8, _T.INT16}:
        raise refusal(op)
    result = g.op("Neg", g.read(input, layout=layout, domain=Domain.FILE))
    g.write(op.output, result, layout=layout, domain=Domain.FILE)


def unary(emit: Single, types: frozenset[TensorType], op: View, g: Graph) -> None:
    """Nodes on plain numbers, in the layout that the input has."""
    input, layout = op["input"], g.layout(op["input"])
    if input.type not in types or op.output.type is not input.type:
        raise refusal(op)
    result = emit(op, g, g.read(input, layout=layout, domain=Domain.FILE))
    g.write(op.output, result, layout=layout, domain=Domain.FILE)


def _single(op_type: str) -> Single:
    def emit(op: View, g: Graph, x: ir.Value) -> ir.Value:
        return g.op(op_type, x)

    return emit


def _square(op: View, g: Graph, x: ir.Value) -> ir.Value:
    return g.op("Mul", x, x)


def _sign(op: View, g: Graph, x: ir.Value) -> ir.Value:
    """Sign; not a number stays what it is."""
    sign = g.op("Sign", x)
    return sign if op.output.type is _T.INT32 else g.op("Where", g.op("Equal", x, x), sign, x)


def _zeros(op: View, g: Graph, x: ir.Value) -> ir.Value:
    """Expand: the shape is known, and infinity times 0 would be no number."""
    return g.op("Expand", g.constant(0, op.output.dtype), g.op("Shape", x))


for operator, last, emit, types in (
    (Op.FLOOR, 1, _single("Floor"), _FLOATS),
    (Op.CEIL, 1, _single("Ceil"), _FLOAT32),
    (Op.ROUND, 1, _single("Round"), _FLOATS),
    (Op.SIN, 2, _single("Sin"), _FLOATS),
    (Op.COS, 2, _single("Cos"), _FLOATS),
    (Op.SQUARE, 1, _square, _FLOAT32),
    (Op.SIGN, 2, _sign, _FLOAT32 | {_T.FLOAT64, _T.INT32}),
    (Op.ZEROS_LIKE, 1, _zeros, _FLOAT32 | _INTEGERS),
):
    translator(operator, versions=(1, last))(partial(unary, emit, types))


@translator(Op.ADD_N, versions=(1, 1))
def add_n(op: View, g: Graph) -> None:
    """A chain of Add; sums of floats stay finite."""
    values, layout = op.present_inputs(), g.layout(*op.present_inputs())
    types = {value.type for value in values}
    if types not in ({_T.FLOAT32}, {_T.INT32}):
        raise refusal(op)
    shapes = [value.shape for value in values]
    if len(values) < 2 or any(differ(shapes[0], shape) for shape in shapes):
        raise Untranslatable(f"{len(values)} values of shapes {shapes}")
    terms = [g.read(value, layout=layout, domain=Domain.FILE) for value in values]
    for i, shape in enumerate(shapes):
        if may_differ(shapes[0], shape):
            terms[i] = matched(g, terms[i], terms[0])
    total = reduce(lambda a, b: g.op("Add", a, b), terms)
    total = total if op.output.type is _T.INT32 else g.finite(total)
    g.write(op.output, total, layout=layout, domain=Domain.FILE)


@translator(Op.BUCKETIZE, versions=(1, 1))
def bucketize(op: OperatorView[BucketizeOptions], g: Graph) -> None:
    """ReduceSum(Not(x < boundary)) over the boundaries; that way NaN is above all of them."""
    input, layout = op["input"], g.layout(op["input"])
    if input.type not in _FLOAT32 | _INTEGERS | {_T.FLOAT64}:
        raise refusal(op)
    boundaries = np.asarray(op.options.boundaries or (), np.float32)
    if not np.all(boundaries[1:] >= boundaries[:-1]):
        raise Untranslatable(f"boundaries {boundaries.tolist()} are not in ascending order")
    x = g.read(input, layout=layout, domain=Domain.FILE)
    if input.type is _T.FLOAT64:
        boundaries = boundaries.astype(np.float64)
    elif input.type is not _T.FLOAT32:
        x = g.op("Cast", x, to=ir.DataType.FLOAT)
    last = g.constant([input.rank], np.int64)  # -1 is not counted right where nothing is
    below = g.op("Less", g.op("Unsqueeze", x, last), g.constant(boundaries))
    passed = g.op("Cast", g.op("Not", below), to=ir.DataType.INT32)
    g.write(op.output, g.op("ReduceSum", passed, last, keepdims=0), layout=layout)
