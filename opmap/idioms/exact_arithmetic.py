"""ADD, SUB and MUL of 16-bit codes in TFLite's fixed point, in float64 that holds it exactly.

SUB of 8-bit codes, which XNNPACK rounds in another way, is in float32.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_shift
from tflite_ort.opmap.idioms.exact_sums import clipped_codes, is_centred
from tflite_ort.opmap.idioms.fixed_point import TIE_BREAK, rescaled
from tflite_ort.opmap.idioms.long_runs import with_longer_runs
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import (
    power_of_two_shifts,
    shifts_all_out,
    shifts_refusal,
)

View = OperatorView[Any]

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_LARGEST_CODE = 2.0**15
_LARGEST_RESULT = 2.0**31
# Of two 16-bit codes, in units of the result's, that float64 holds before it is cut.
_LARGEST_PRODUCT = 2.0**6
_INEXACT_SUM = 2.0**18  # of float32: the places of 1/64
# By which part of a code QLinearAdd is off at most, and how many of all pairs may be that near to a
# half: by chance there are four.
_NEAR = 2.0**-15
_FEW_PAIRS = 64
# Moves halves away from 0, and no other product of 8-bit codes past a half.
_AWAY = 1 + 2.0**-20
# The operands of a sum are counted in twice the larger scale over 2**15.
_SUM_BITS = 15


def takes_exact_codes(op: View, g: Graph) -> bool:
    """Whether both operands and the output are 16-bit codes and the target wants them exact, with
    scales at which TFLite's results stay within 32 bits."""
    tensors = (*op.present_inputs(), op.output)
    if not (g.target.exact and all(t.type is TensorType.INT16 and is_centred(t) for t in tensors)):
        return False
    first, second, output = map(float, _scales(op))
    if op.op is Op.MUL:
        return first * second / output < _LARGEST_PRODUCT
    return _LARGEST_CODE * 2 * max(first, second) / output < _LARGEST_RESULT


def exact_codes(op: View, g: Graph) -> None:
    """Write the output of ADD, SUB or MUL as TFLite rounds it."""
    leave_many_to_numpy(g, op.output.shape, "16-bit codes")
    a, b = op.present_inputs()
    layout = g.layout(a, b)
    x, y = (_codes(g, tensor, layout, op.output.rank) for tensor in (a, b))
    result = _product(op, g, x, y) if op.op is Op.MUL else _sum(op, g, x, y)
    codes = clipped_codes(g, result, op.output, op.options.fused_activation_function)
    g.write(op.output, codes, layout=layout, domain=Domain.STORED)


def total(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Add of real numbers.

    ONNX Runtime's QLinearAdd takes the zero points off the sum, in float32 and in the result's
    scale, and makes an INT32 of it before it clips it. So large sums are computed by floats.
    """
    made = g.op("Add", a, b)
    return g.apart(made) if _largest_sum_of_bytes(op) >= _INEXACT_SUM else made


def _largest_sum_of_bytes(op: View) -> float:
    """The largest sum of 8-bit codes in units of the result's; 0 of other types."""
    if op.output.type not in _BYTES or not op.output.is_quantized:
        return 0.0
    first, second, made = _scales(op)
    return _largest_sum(float(first) / float(made), float(second) / float(made))


def _largest_sum(first: float, second: float) -> float:
    """The largest sum of two weighted 8-bit codes, less their zero points."""
    return 255 * (first + second)


def product(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Mul of real numbers.

    ONNX Runtime's QLinearMul makes an INT32 of a product in the result's scale before it clips it.
    So what may exceed that is computed by floats.
    """
    multiplier = _multiplier_of_bytes(op)
    if shifts_all_out(multiplier):
        a = g.op("Mul", a, g.constant(np.float32(0)))
    made = g.op("Mul", a, b)
    return g.apart(made) if multiplier * 255**2 >= _LARGEST_RESULT else made


def _multiplier_of_bytes(op: View) -> float:
    """The factor from the product of two 8-bit codes to a code; 0 for other types."""
    quantizations = [tensor.quantization for tensor in (*op.present_inputs(), op.output)]
    if op.output.type not in _BYTES or None in quantizations:
        return 0.0
    first, second, made = (each.scalar_scale for each in quantizations if each is not None)
    return float(first * second / made)


def has_halves(op: View, g: Graph) -> bool:
    """Whether 8-bit codes are added, subtracted or multiplied in units, because of halves."""
    if g.target.paired_codes:
        return False
    if op.op not in (Op.ADD, Op.MUL):
        return op.op is Op.SUB
    return not (adds_codes if op.op is Op.ADD else _multiplies_codes)(*units_of_codes(op))


def units_of_codes(op: View) -> tuple[float, float, int, int, int]:
    """What a code of each operand counts in units of the result's, and the zero points."""
    first, second, made = map(float, _scales(op))
    a, b, output = map(_carried_zero, (*op.present_inputs(), op.output))
    if op.op is Op.MUL:
        return first * second / made, 1.0, a, b, output
    return first / made, (-second if op.op is Op.SUB else second) / made, a, b, output


def rounded_bytes(op: View, g: Graph) -> None:
    """Floor(a + b + 1/2), or of a - b, in units of the output's scale, of 8-bit codes: TFLite
    rounds halves up. Halves are common: models centre images by subtracting half a code.

    QLinearMul rounds halves to even after it has added the zero point, TFLite's kernels
    before that, or away from 0. So halves are moved away from 0, where TFLite's kernels agree.
    """
    a, b, output = op["input1"], op["input2"], op.output
    assert output.quantization is not None
    unit, layout = output.quantization.scalar_scale, g.layout(a, b)
    scales = [t.quantization.scalar_scale for t in (a, b) if t.quantization is not None]
    activation = op.options.fused_activation_function
    long = [with_longer_runs(g, *pair, layout, output.rank) for pair in ((a, b), (b, a))]
    steps = (scales[0], scales[1] * _AWAY) if op.op is Op.MUL else (x / unit for x in scales)
    first, second = (
        g.read_steps(t, step, layout=layout, rank=output.rank)
        for t, step in zip(long, steps, strict=True)
    )
    if op.op is Op.MUL:
        g.write(output, product(op, g, first, second), layout=layout, activation=activation)
        return
    units = g.op("Sub" if op.op is Op.SUB else "Add", first, second)
    codes = g.quantize_units(units, output)
    g.write(output, codes, layout=layout, domain=Domain.STORED, activation=activation)


def _carried_zero(tensor: TensorView) -> int:
    return tensor.zero + carried_shift(tensor)


# An operator is translated twice.
@lru_cache(maxsize=256)
def adds_codes(first: float, second: float, a: int, b: int, output: int) -> bool:
    """Whether QLinearAdd holds all sums of codes, few of which are next to a half.

    Args:
        first, second: what a code counts in units of the result's.
        a, b, output: zero points.
    """
    if _largest_sum(abs(first), abs(second)) >= _INEXACT_SUM:
        return False
    codes = np.arange(256)
    sums = np.add.outer((codes - a) * first, (codes - b) * second)
    return _has_few_halves(sums + output)


@lru_cache(maxsize=256)
def _multiplies_codes(first: float, second: float, a: int, b: int, output: int) -> bool:
    """Whether few products of codes are next to a half; as `adds_codes`."""
    codes = np.arange(256)
    return _has_few_halves(np.multiply.outer((codes - a) * first, (codes - b) * second) + output)


def _has_few_halves(results: npt.NDArray[np.float64]) -> bool:
    """Whether few of all codes of a result are next to a half, before they are rounded."""
    near = np.abs(results - np.floor(results) - 0.5) < _NEAR
    return int(np.count_nonzero(near & (results > -1) & (results < 256))) <= _FEW_PAIRS


def _codes(g: Graph, tensor: TensorView, layout: Layout, rank: int) -> ir.Value:
    codes = g.read(tensor, layout=layout, domain=Domain.STORED, rank=rank)
    return g.cast(codes, ir.DataType.DOUBLE)


def _product(op: View, g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The product of the codes times s_x * s_y / s_out, in float32 as TFLite has it."""
    first, second, output = _scales(op)
    product = g.op("Mul", x, y)
    return rescaled(g, product, first * second / output, _LARGEST_CODE**2, bits=17)


def _sum(op: View, g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """x + y or x - y: both rounded to a common unit, the sum rounded to that of the output."""
    op_type = "Sub" if op.op is Op.SUB else "Add"
    first, second, output = _scales(op)
    shifts = power_of_two_shifts(_scales(op)) if op.options.pot_scale_int16 else None
    if shifts is not None:
        if min(shifts) != 0:
            raise Untranslatable(shifts_refusal(_scales(op)))
        x, y = (_shifted(g, value, shift) for value, shift in zip((x, y), shifts, strict=True))
        return g.op(op_type, x, y)
    twice = 2 * float(max(first, second))
    x, y = (
        rescaled(g, value, float(scale) / twice, _LARGEST_CODE, zeros=_SUM_BITS)
        for value, scale in ((x, first), (y, second))
    )
    to_output = twice / (2**_SUM_BITS * float(output))
    return rescaled(g, g.op(op_type, x, y), to_output, 2.0**31, bits=17)


def _shifted(g: Graph, value: ir.Value, shift: int) -> ir.Value:
    """`value` / 2**shift, halves away from zero."""
    return (
        g.op("Round", g.op("Mul", value, g.constant(2.0**-shift * TIE_BREAK))) if shift else value
    )


def _scales(op: View) -> tuple[np.float32, np.float32, np.float32]:
    first, second, output = (
        tensor.quantization.sole_scale
        for tensor in (*op.present_inputs(), op.output)
        if tensor.quantization is not None
    )
    return first, second, output
