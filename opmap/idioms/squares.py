"""SQUARED_DIFFERENCE of 8-bit codes in TFLite's fixed point.

TFLite rounds both operands to twice the larger scale over 2**7, and the square to the unit of the
result. Floats have the same results where they have them of every code and of every difference.
Otherwise float64 holds all numbers exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.fixed_point import centred_codes, first_factor, rescaled
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.idioms.rescaled_codes import UNITS, Codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.arithmetic.fixed_point import rescale

View = OperatorView[Any]

_BITS = 7
_LARGEST = 255
# Moves halves away from zero, and no other number past a half.
_AWAY = 1 + 2.0**-20


class Units(NamedTuple):
    """What codes and squares are multiplied by.

    Args:
        operands: in units of the difference; the larger one is 1/2 * 2**7.
        square: in units of the result.
    """

    operands: tuple[float, float]
    square: float

    @classmethod
    def of(cls, first: Codes, second: Codes, output: Codes) -> Units:
        twice = 2 * max(first.scale, second.scale)
        square = twice**2 / float(np.float32(4**_BITS) * np.float32(output.scale))
        return cls((first.scale / twice, second.scale / twice), square)


def takes_squares(op: View, g: Graph) -> bool:
    """Whether the target wants TFLite's codes, and TFLite has any: it ends the process where the
    square of a unit is one of the result's and more."""
    return g.target.exact and op.output.is_quantized and has_codes(op)


def has_codes(op: View) -> bool:
    """Whether TFLite has any codes of squares."""
    return units_of_squares(op).square < 1


def write_squares(op: View, g: Graph) -> None:
    """Write the output of SQUARED_DIFFERENCE as TFLite rounds it."""
    output, units = op.output, units_of_squares(op)
    leave_many_to_numpy(g, output.shape, "codes")
    operands = list(zip(op.present_inputs(), units.operands, strict=True))
    layout, step = g.layout(*op.present_inputs()), step_of_floats(units.square)
    if step is None or not all(rounds_as_floats(Codes.of(t), x) for t, x in operands):
        x, y = (_in_double(g, tensor, ratio, layout, output.rank) for tensor, ratio in operands)
        largest = float(_LARGEST << _BITS) ** 2
        square = rescaled(g, _squared(g, x, y), units.square, largest, bits=9)
        square, step = g.cast(square, ir.DataType.FLOAT), 1.0
    else:
        x, y = (_in_floats(g, tensor, ratio, layout, output.rank) for tensor, ratio in operands)
        square = _squared(g, x, y)
    codes = centred_codes(g, square, output, step)
    g.write(output, codes, layout=layout, domain=Domain.STORED)


def units_of_squares(op: View) -> Units:
    """What an operator multiplies codes and squares by."""
    first, second = op.present_inputs()
    return Units.of(Codes.of(first), Codes.of(second), Codes.of(op.output))


def _squared(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    difference = g.op("Sub", x, y)
    return g.op("Mul", difference, difference)


def _in_double(g: Graph, tensor: TensorView, ratio: float, layout: Layout, rank: int) -> ir.Value:
    steps = g.cast(g.read_steps(tensor, layout=layout, rank=rank), ir.DataType.DOUBLE)
    return rescaled(g, steps, ratio, _LARGEST, zeros=_BITS)


def _in_floats(g: Graph, tensor: TensorView, ratio: float, layout: Layout, rank: int) -> ir.Value:
    factor, right = factors(ratio)
    value = g.read_steps(tensor, factor, layout=layout, rank=rank)
    if factor != int(factor):
        value = g.op("Round", value)
    if right != 1.0:
        value = g.op("Round", g.op("Mul", value, g.constant(right, np.float32)))
    return value


def factors(ratio: float) -> tuple[float, float]:
    """The factors of steps before the first and the second rounding; 1.0 stands for none."""
    factor, shift = first_factor(ratio)
    return float(factor) * 2**_BITS, 2.0 ** -float(shift) * _AWAY if shift else 1.0


@lru_cache(maxsize=256)
def rounds_as_floats(codes: Codes, ratio: float) -> bool:
    """Whether float32 rounds every code to the common unit as TFLite does."""
    steps, (factor, right) = codes.steps(), factors(ratio)
    made = np.rint(steps * np.float32(factor))
    if right != 1.0:
        made = np.rint(made * np.float32(right))
    return np.array_equal(made, rescale(steps.astype(np.int32) << _BITS, ratio))


# An operator is translated twice, and operators of a network share scales.
@lru_cache(maxsize=256)
def step_of_floats(unit: float) -> float | None:
    """What float32 divides squares by, such that it rounds all that are not cut as TFLite does."""
    most = min(2 * _LARGEST << _BITS - 1, int(np.sqrt(2 * (_LARGEST + 1) / unit)) + 1)
    squares = np.arange(most + 1, dtype=np.int64) ** 2
    wanted = np.minimum(rescale(squares, unit), _LARGEST + 1)
    for moved in UNITS:
        step = np.float32(moved / unit)
        made = np.minimum(np.rint(squares.astype(np.float32) / step), _LARGEST + 1)
        if np.array_equal(made, wanted):
            return float(step)
    return None
