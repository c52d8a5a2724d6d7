"""Between real numbers and codes: QUANTIZE, DEQUANTIZE, FAKE_QUANT, CAST, DENSIFY."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.forms import carried_shift, carried_type
from tflite_ort.opmap.idioms.complex_arithmetic import joined
from tflite_ort.opmap.idioms.fixed_point import centred_codes, rescaled
from tflite_ort.opmap.idioms.indices import agreeing
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.idioms.rescaled_codes import Codes, requantized, rescaled_codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    FakeQuantOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.values.complex_pairs import is_complex, part_dtype
from tflite_ort.schema.values.semantics import fake_quant_range, quantized_range
from tflite_ort.schema.values.sizes import may_differ

Array = npt.NDArray[Any]
View = OperatorView[Any]

_T = TensorType
_REAL = ir.DataType.FLOAT
_CODES = frozenset({_T.UINT8, _T.INT8, _T.INT16})
_NARROW = frozenset(PACKED_BITS) - {_T.INT2}
_FLOATS = frozenset({_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16})
_INTEGERS = frozenset(
    {_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.UINT32, _T.INT64, _T.BOOL}
)
# These types are cast only to float32.
_TO_FLOAT32 = frozenset({*PACKED_BITS, _T.COMPLEX64})

# No code of 16 bits less its zero point is as large.
_BEYOND = np.float32(2.0**18)
# Times this every code but 0 is beyond 32 bits.
_ALL_OUT = 2.0**32


def refusal(op: View) -> Untranslatable:
    """The error for a pair of types that LiteRT converts and this graph does not."""
    return Untranslatable(f"{op['input'].type.name} to {op.output.type.name} is not translated")


@translator(Op.QUANTIZE, versions=(1, 6))
def quantize(op: View, g: Graph) -> None:
    """QuantizeLinear of real numbers; no node at all if the carried codes stay the same."""
    input, output = op["input"], op.output
    if (input.type, output.type) == (_T.INT16, _T.INT32):
        _widen(op, g)
        return
    if input.type is _T.INT32 and output.type in (_T.INT8, _T.INT16):
        _narrow(op, g)
        return
    if output.type in _NARROW and output.is_quantized:
        _quantize_along(op, g)
        return
    if output.type not in _CODES or input.type not in _CODES | {_T.FLOAT32}:
        raise refusal(op)
    if not output.is_quantized or (input.type, output.type) == (_T.INT16, _T.UINT8):
        raise refusal(op)
    if output.quantization is not None and output.quantization.per_channel:
        _quantize_along(op, g)
        return
    layout = g.layout(input)
    if _carried_alike(input, output):
        codes = g.read(input, layout=layout, domain=Domain.STORED)
        g.write(output, codes, layout=layout, domain=Domain.STORED)
        return
    if input.type not in _CODES:
        g.write(output, g.read(input, layout=layout), layout=layout)
        return
    source, target = Codes.of(input), Codes.of(output)
    ratio = source.scale / target.scale
    wanted = requantized(source, target, ratio)
    rescaled_codes(op, g, wanted)


def _quantize_along(op: View, g: Graph) -> None:
    """Codes of a scale for each place along an axis, or of 4 bits. TFLite rounds halves away from
    zero there, QuantizeLinear to even. NaN becomes the highest code."""
    input, output = op["input"], op.output
    if input.type is not _T.FLOAT32:
        raise refusal(op)
    unit, zero = _along(output)
    x = _as_scaled(g, g.read(input), output)
    quotient = g.op("Div", x, g.constant(unit))
    magnitude = g.op("Abs", quotient)
    whole = g.op("Floor", magnitude)
    twice = g.op("Mul", g.op("Sub", magnitude, whole), g.constant(2, np.float32))
    rounded = g.op("Mul", g.op("Add", whole, g.op("Floor", twice)), g.op("Sign", quotient))
    low, high = (
        g.constant((end - zero).astype(np.float32)) for end in quantized_range(output.type)
    )
    # Of an infinity the difference is no number.
    inside = g.op("Less", g.op("Abs", quotient), g.constant(_BEYOND))
    outside = g.op("Where", g.op("Less", quotient, g.constant(-_BEYOND)), low, high)
    codes = g.op("Where", inside, g.op("Max", g.op("Min", rounded, high), low), outside)
    codes = g.op("Add", codes, g.constant(zero.astype(np.float32)))
    g.write(output, g.cast(codes, output.dtype), domain=Domain.FILE)


def _along(tensor: TensorView) -> tuple[Array, Array]:
    """The scales and zero points of codes in a shape that broadcasts along their axis."""
    found, shape = tensor.quantization, [1] * tensor.rank
    assert found is not None
    shape[found.axis] = -1
    return found.scale.reshape(shape), found.zero_point.reshape(shape)


def _as_scaled(g: Graph, value: ir.Value, tensor: TensorView) -> ir.Value:
    """`value`, of the shape of `tensor`, in a graph that fails where there are not as many places
    as scales: nodes broadcast."""
    found = tensor.quantization
    assert found is not None
    size = tensor.shape[found.axis : found.axis + 1]
    if not (found.per_channel and may_differ(size, found.scale.shape)):
        return value
    sizes = agreeing(g, g.op("Shape", value), size, found.scale.shape)
    return g.op("Reshape", value, sizes, allowzero=1)


def _widen(op: View, g: Graph) -> None:
    """Rescale 16-bit codes to 32 bits, with the rounding of TFLite."""
    input, output = op["input"], op.output
    if input.quantization is None or output.quantization is None:
        raise refusal(op)
    multiplier = input.quantization.scalar_scale / output.quantization.scalar_scale
    codes = g.cast(g.read_steps(input), ir.DataType.DOUBLE)
    codes = rescaled(g, codes, multiplier, 2.0**16)
    zero_point = g.constant(output.quantization.scalar_zero_point, np.float64)
    codes = g.cast(g.op("Add", codes, zero_point), ir.DataType.INT32)
    g.write(output, codes, domain=Domain.STORED)


def _narrow(op: View, g: Graph) -> None:
    """32-bit codes rescaled to 8 or 16 bits, as TFLite rounds them: what has the zero point taken
    off wraps."""
    source, target = Codes.of(op["input"]), Codes.of(op.output)
    if not op.output.is_quantized:
        raise refusal(op)
    multiplier = min(source.scale / target.scale, _ALL_OUT)
    _, shift = quantize_multiplier(multiplier)
    left = max(int(shift), 0)
    codes = g.read(op["input"], domain=Domain.STORED)
    codes = g.op("Sub", codes, g.constant(source.zero_point, np.int32))
    codes = g.cast(codes, ir.DataType.DOUBLE)
    if left:
        bounds = (g.constant(bound, np.float64) for bound in (-(2.0**31), 2.0**31 - 1))
        codes = g.op("Clip", g.op("Mul", codes, g.constant(2.0**left, np.float64)), *bounds)
    codes = rescaled(g, codes, multiplier * 2.0**-left, 2.0**31, bits=17)
    low, high = (bound - target.zero_point for bound in quantized_range(target.type))
    codes = g.op("Clip", codes, g.constant(low, np.float64), g.constant(high, np.float64))
    codes = centred_codes(g, g.cast(codes, ir.DataType.FLOAT), op.output)
    g.write(op.output, codes, domain=Domain.STORED)


def _carried_alike(a: TensorView, b: TensorView) -> bool:
    """Whether the carried codes of both are the same numbers."""
    first, second = a.quantization, b.quantization
    if first is None or second is None or carried_type(a) is not carried_type(b):
        return False
    if first.per_channel or second.per_channel:
        return False
    zeros = (
        quantization.scalar_zero_point + carried_shift(tensor)
        for tensor, quantization in ((a, first), (b, second))
    )
    return len(set(zeros)) == 1 and first.scalar_scale == second.scalar_scale


@translator(Op.DEQUANTIZE, versions=(1, 9))
def dequantize(op: View, g: Graph) -> None:
    """DequantizeLinear; Cast of FLOAT16."""
    input, layout = op["input"], g.layout(op["input"])
    found = input.quantization
    if found is not None and found.per_channel and input.type in _CODES and not input.is_constant:
        unit, zero = _along(input)
        codes = _as_scaled(g, g.read(input, domain=Domain.FILE), input)
        steps = g.op("Sub", g.cast(codes, _REAL), g.constant(zero.astype(np.float32)))
        g.write(op.output, g.op("Mul", steps, g.constant(unit)))
        return
    value = g.read(input, layout=layout)
    if input.type is _T.FLOAT16:
        value = g.cast(value, ir.DataType.FLOAT)
    elif not input.is_quantized or input.type is _T.INT32:
        raise refusal(op)
    g.write(op.output, value, layout=layout)


@translator(Op.FAKE_QUANT, versions=(1, 2))
def fake_quant(op: OperatorView[FakeQuantOptions], g: Graph) -> None:
    """Floor((clipped - low) / step + 1/2) * step + low; NaN is clipped to low.

    The float below 1/2 is added, so that a quotient just below a half is not rounded up.
    """
    input, layout = op["input"], g.layout(op["input"])
    if input.type is not _T.FLOAT32:
        raise refusal(op)
    step, low, high = fake_quant_range(op.options)
    x, bottom = g.read(input, layout=layout), g.constant(low)
    raised = g.op("Where", g.op("Greater", x, bottom), x, bottom)
    clipped = g.op("Sub", g.op("Min", raised, g.constant(high)), bottom)
    quotient = g.op("Mul", clipped, g.constant(np.float32(1) / step))
    half = np.nextafter(np.float32(0.5), np.float32(0))
    codes = g.op("Floor", g.op("Add", quotient, g.constant(half)))
    g.write(op.output, g.op("Add", g.op("Mul", codes, g.constant(step)), bottom), layout=layout)


@translator(Op.CAST, versions=(1, 9))
def cast(op: View, g: Graph) -> None:
    """Cast of the numbers in the file; of complex numbers, of their real parts, and to them, beside
    zeros.

    From floats to integers TFLite saturates, and NaN becomes the highest value. ONNX leaves both
    undefined, so the value is clipped first.
    """
    input, output, layout = op["input"], op.output, g.layout(op["input"])
    if is_complex(output) and input.type in _FLOATS | _INTEGERS:
        real = g.cast(g.read(input, domain=Domain.FILE), part_dtype(output.dtype))
        zeros = g.op("Expand", g.constant(0, part_dtype(output.dtype)), g.op("Shape", real))
        g.write(output, joined(g, real, zeros), domain=Domain.FILE)
        return
    sources = _FLOATS | _INTEGERS | (_TO_FLOAT32 if output.type is _T.FLOAT32 else set())
    if input.type not in sources or output.type not in _FLOATS | _INTEGERS:
        raise refusal(op)
    value = g.read(input, layout=layout, domain=Domain.FILE)
    if is_complex(input):
        value = g.op("Gather", value, g.ints(0), axis=-1)
    if input.type in _FLOATS and output.type in _INTEGERS - {_T.BOOL}:
        leave_many_to_numpy(g, input.shape, "floats that become integers")
        value = _saturated(g, value, input, output)
    elif input.type is not output.type:
        value = g.cast(value, output.dtype)
    g.write(output, value, layout=layout, domain=Domain.FILE)


def _saturated(g: Graph, value: ir.Value, input: TensorView, output: TensorView) -> ir.Value:
    """Cast of floats, clipped to the range of an integer type.

    It is Where(x < limit, Max(x, lowest), highest), whose comparison is false for NaN. The highest
    32-bit and 64-bit integers are not float32 numbers: there a second Where chooses an integer.
    """
    bounds, real = np.iinfo(output.dtype), np.dtype(np.float32)
    if input.type is _T.FLOAT64:
        real = input.dtype
    elif input.type is not _T.FLOAT32:
        value = g.cast(value, ir.DataType.FLOAT)
    exact = output.dtype.itemsize <= 2
    limit = float(bounds.max) if exact else float(bounds.max) + 1
    inside = g.op("Less", value, g.constant(limit, real))
    raised = g.op("Max", value, g.constant(bounds.min, real))
    held = g.op("Where", inside, raised, g.constant(bounds.max if exact else 0, real))
    result = g.cast(held, output.dtype)
    if exact:
        return result
    return g.op("Where", inside, result, g.constant(bounds.max, output.dtype))


@translator(Op.DENSIFY, versions=(1, 1), constants=("input",))
def densify(op: View, g: Graph) -> None:
    """The constant itself: a view holds sparse constants as dense arrays."""
    codes = g.read(op["input"], domain=Domain.STORED)
    g.write(op.output, codes, domain=Domain.STORED)
