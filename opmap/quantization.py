"""Between real numbers and codes: QUANTIZE, DEQUANTIZE, FAKE_QUANT, CAST, DENSIFY."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.by_code import by_code, every_code
from tflite_ort.opmap.constants import carried, carried_type
from tflite_ort.opmap.fixed_point import read_centred, rescaled
from tflite_ort.opmap.forms import Domain
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.pairs import is_complex
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    FakeQuantOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.fixed_point import rescale, saturate
from tflite_ort.schema.semantics import fake_quant_range

Array = npt.NDArray[Any]
View = OperatorView[Any]

_T = TensorType
_CODES = frozenset({_T.UINT8, _T.INT8, _T.INT16})
_FLOATS = frozenset({_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16})
_INTEGERS = frozenset(
    {_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.UINT32, _T.INT64, _T.BOOL}
)
# These are cast to it alone.
_TO_FLOAT32 = frozenset({_T.INT4, _T.INT2, _T.UINT4, _T.COMPLEX64})

# Codes that are read a little larger round halves away from zero, as TFLite does; in which of
# these units most of them come out the same is found by trying all codes.
_UNITS = (1.0, 1 - 2.0**-22, 1 - 2.0**-20, 1 - 2.0**-18)


def refusal(op: View) -> Untranslatable:
    return Untranslatable(f"{op['input'].type.name} to {op.output.type.name} is not translated")


@translator(Op.QUANTIZE, versions=(1, 6), inputs=("input",))
def quantize(op: View, g: Graph) -> None:
    """QuantizeLinear of real numbers; nothing at all where the carried codes stay the same."""
    input, output = op["input"], op.output
    if (input.type, output.type) == (_T.INT16, _T.INT32):
        _widen(op, g)
        return
    if output.type not in _CODES or input.type not in _CODES | {_T.FLOAT32}:
        raise refusal(op)
    if not output.is_quantized or (input.type, output.type) == (_T.INT16, _T.UINT8):
        raise refusal(op)
    layout = g.layout(input)
    if _carried_alike(input, output):
        codes = g.read(input, layout=layout, domain=Domain.STORED)
        g.write(output, codes, layout=layout, domain=Domain.STORED)
        return
    if input.type not in _CODES:
        g.write(output, g.read(input, layout=layout), layout=layout)
        return
    if not input.is_quantized:
        raise Untranslatable(f"{input.type.name} input without a scale")
    wanted, misses = _requantized(input, output), partial(_misses, input, output)
    unit = min(_UNITS, key=lambda unit: misses(wanted, unit))
    if input.type is _T.INT16 and misses(wanted, unit):
        by_code(op, g, carried(wanted, output.type, np.zeros(1, np.int64), carried_type(output))[0])
        return
    g.write(output, g.read_units(input, unit, layout=layout, rank=input.rank), layout=layout)


def _requantized(input: TensorView, output: TensorView) -> Array:
    """The code of `output` for every code of `input`, ascending."""
    given, made = input.quantization, output.quantization
    if given is None or made is None or given.per_channel or made.per_channel:
        raise Untranslatable("codes of more than one scale, or of none")
    centred = every_code(input.type).astype(np.int32) - np.int32(given.scalar_zero_point)
    codes = rescale(centred, given.scalar_scale / made.scalar_scale) + made.scalar_zero_point
    return saturate(codes, output.dtype)


def _misses(input: TensorView, output: TensorView, wanted: Array, unit: float) -> int:
    """How many codes of `input`, read in units of `unit`, DequantizeLinear and QuantizeLinear bring
    elsewhere."""
    given, made = input.quantization, output.quantization
    assert given is not None and made is not None
    centred = (every_code(input.type) - np.float32(given.scalar_zero_point)).astype(np.float32)
    codes = np.rint(centred * np.float32(given.scalar_scale / unit) / made.scale[0])
    found = saturate(codes + made.scalar_zero_point, output.dtype)
    return int(np.count_nonzero(found != wanted))


def _widen(op: View, g: Graph) -> None:
    """16-bit codes rescaled to 32 bits, as TFLite rounds them."""
    input, output = op["input"], op.output
    if input.quantization is None or output.quantization is None:
        raise refusal(op)
    codes = g.op("Cast", read_centred(g, input), to=ir.DataType.DOUBLE)
    multiplier = input.quantization.scalar_scale / output.quantization.scalar_scale
    codes = rescaled(g, codes, multiplier, 2.0**16)
    zero_point = g.constant(output.quantization.scalar_zero_point, np.float64)
    codes = g.op("Cast", g.op("Add", codes, zero_point), to=ir.DataType.INT32)
    g.write(output, codes, domain=Domain.STORED)


def _carried_alike(a: TensorView, b: TensorView) -> bool:
    """Whether the codes of both stand in the graph as the same numbers."""
    first, second = a.quantization, b.quantization
    if first is None or second is None or carried_type(a) is not carried_type(b):
        return False
    if first.per_channel or second.per_channel:
        return False
    zeros = (
        quantization.scalar_zero_point + 128 * (tensor.type is _T.INT8)
        for tensor, quantization in ((a, first), (b, second))
    )
    return len(set(zeros)) == 1 and first.scalar_scale == second.scalar_scale


@translator(Op.DEQUANTIZE, versions=(1, 9), inputs=("input",))
def dequantize(op: View, g: Graph) -> None:
    """DequantizeLinear; Cast of FLOAT16."""
    input, layout = op["input"], g.layout(op["input"])
    value = g.read(input, layout=layout)
    if input.type is _T.FLOAT16:
        value = g.op("Cast", value, to=ir.DataType.FLOAT)
    elif not input.is_quantized or input.type is _T.INT32:
        raise refusal(op)
    g.write(op.output, value, layout=layout)


@translator(Op.FAKE_QUANT, versions=(1, 2), inputs=("input",))
def fake_quant(op: OperatorView[FakeQuantOptions], g: Graph) -> None:
    """Floor((clipped - low) / step + 1/2) * step + low; what is no number is clipped to low.

    The half is the float below it, so that no quotient just under a half is rounded up to one.
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


@translator(Op.CAST, versions=(1, 9), inputs=("input",))
def cast(op: View, g: Graph) -> None:
    """Cast of the numbers as the file has them; of complex ones, of their real parts.

    Between floats and integers TFLite saturates, and makes NaN the highest value; ONNX leaves both
    undefined, so the value is brought into range first.
    """
    input, output, layout = op["input"], op.output, g.layout(op["input"])
    sources = _FLOATS | _INTEGERS | (_TO_FLOAT32 if output.type is _T.FLOAT32 else set())
    if input.type not in sources or output.type not in _FLOATS | _INTEGERS:
        raise refusal(op)
    value = g.read(input, layout=layout, domain=Domain.FILE)
    if is_complex(input):
        value = g.op("Gather", value, g.constant(0, np.int64), axis=-1)
    if input.type in _FLOATS and output.type in _INTEGERS - {_T.BOOL}:
        value = _saturated(g, value, input, output)
    elif input.type is not output.type:
        value = g.op("Cast", value, to=ir.DataType.from_numpy(output.dtype))
    g.write(output, value, layout=layout, domain=Domain.FILE)


def _saturated(g: Graph, value: ir.Value, input: TensorView, output: TensorView) -> ir.Value:
    """Cast of floats held in the range of an integer type.

    Where(x < limit, Max(x, lowest), highest): the comparison is false for NaN too. The highest
    32- and 64-bit integers are no float32, there the choice is made once more among integers.
    """
    bounds, real = np.iinfo(output.dtype), np.dtype(np.float32)
    if input.type is _T.FLOAT64:
        real = input.dtype
    elif input.type is not _T.FLOAT32:
        value = g.op("Cast", value, to=ir.DataType.FLOAT)
    exact = output.dtype.itemsize <= 2
    limit = float(bounds.max) if exact else float(bounds.max) + 1
    inside = g.op("Less", value, g.constant(limit, real))
    raised = g.op("Max", value, g.constant(bounds.min, real))
    held = g.op("Where", inside, raised, g.constant(bounds.max if exact else 0, real))
    result = g.op("Cast", held, to=ir.DataType.from_numpy(output.dtype))
    if exact:
        return result
    return g.op("Where", inside, result, g.constant(bounds.max, output.dtype))


@translator(Op.DENSIFY, versions=(1, 1), inputs=("input!",))
def densify(op: View, g: Graph) -> None:
    """The constant itself: a view holds sparse constants densely."""
    codes = g.read(op["input"], domain=Domain.STORED)
    g.write(op.output, codes, domain=Domain.STORED)
