"""Codes in another unit, as TFLite's fixed point rounds them: once, or twice.

TFLite holds a multiplier as m * 2**-n, with m from 1/2 to 1. It rounds the product of a code with
m, halves upwards, and then what 2**n divides, halves away from zero. So with n = 1 all that is a
quarter above a whole number, and more, goes up. QuantizeLinear rounds once.

What m makes of the codes of 8 bits fits 8 bits again. So each rounding is a DequantizeLinear, a
LeakyRelu and a QuantizeLinear, of which ONNX Runtime makes a lookup in a table of 256 codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.by_code import by_code, every_code, looked_up
from tflite_ort.opmap.idioms.fixed_point import centred_codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.code_functions import joined_codes
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier, rescale, saturate
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_activation_bounds

Array = npt.NDArray[Any]
View = OperatorView[Any]
_NONE = ActivationFunctionType.NONE

# Codes that are read in a slightly smaller unit round halves away from zero, and in a larger one
# towards it. Trying all codes finds the one of these units that gives the results of TFLite.
UNITS = (1.0, *(1 - 2.0**-bits for bits in (22, 20, 18)), *(1 + 2.0**-bits for bits in (22, 20)))
# What moves halves upwards, or downwards, and no other number past a half.
_MOVES = (1.0, *(1 + sign * 2.0**-bits for bits in (22, 20) for sign in (1, -1)))
_AWAY = 1 + 2.0**-22
# The highest code of the lookup between.
_HIGHEST = 255


class Codes(NamedTuple):
    """The quantization of a tensor with one scale."""

    type: TensorType
    scale: float
    zero_point: int

    @classmethod
    def of(cls, tensor: TensorView) -> Codes:
        """
        Raises:
            Untranslatable: the tensor has several scales, or none.
        """
        found = tensor.quantization
        if found is None or found.per_channel:
            raise Untranslatable("codes of more than one scale, or of none")
        return cls(tensor.type, found.scalar_scale, found.scalar_zero_point)

    def steps(self) -> Array:
        """Every code, ascending, less the zero point; float32."""
        return (every_code(self.type) - np.float32(self.zero_point)).astype(np.float32)

    def filed(self, steps: Array) -> Array:
        """The codes for whole numbers counted from the zero point."""
        return saturate(steps + self.zero_point, NUMPY_DTYPE[self.type])


class Lookup(NamedTuple):
    """DequantizeLinear, LeakyRelu and QuantizeLinear in a unit: what they make of steps.

    Args:
        step: that of DequantizeLinear.
        slope: of numbers below 0.
        unit: the scale of QuantizeLinear.
    """

    step: float
    slope: float = 1.0
    unit: float = 1.0

    def of(self, steps: Array) -> Array:
        """Whole numbers, for steps in float32, as float32 has them."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = steps * np.float32(self.step)
            x = np.where(x < 0, x * np.float32(self.slope), x)
            return np.asarray(np.rint(x / np.float32(self.unit)))


class Twice(NamedTuple):
    """Two lookups, and the zero point of the codes between them."""

    first: Lookup
    zero_point: int
    second: Lookup

    def of(self, steps: Array) -> Array:
        between = np.clip(self.first.of(steps), -self.zero_point, _HIGHEST - self.zero_point)
        return self.second.of(between)


def requantized(source: Codes, target: Codes, ratio: float) -> Array:
    """The code of `target` for every code of `source`, ascending, as TFLite rescales them."""
    return target.filed(rescale(source.steps().astype(np.int32), ratio))


def rescaled_codes(
    op: View,
    g: Graph,
    wanted: Array,
    slope: float = 1.0,
    *,
    activation: ActivationFunctionType = _NONE,
    most: int | None = None,
    sloped: Callable[[ir.Value], ir.Value] = lambda x: x,
) -> None:
    """Write the output of `op`, of which every code is known, in as few nodes as are exact.

    Args:
        wanted: the output code of every input code, in ascending order.
        slope: of codes below the zero point.
        activation, most: cut the results; `most` is counted from the zero point.
        sloped: adds the node that gives reals this slope.
    """
    source, target = Codes.of(op["input"]), Codes.of(op.output)
    low, high = quantized_activation_bounds(activation, *target)
    high = high if most is None else min(high, target.zero_point + most)
    key = source, target, slope, low, high, np.clip(wanted, low, high).tobytes()
    layout = g.layout(op["input"])
    if most is None and g.target.paired_codes:
        x = sloped(g.read(op["input"], layout=layout))
        g.write(op.output, x, layout=layout, activation=activation)
    elif most is None and (unit := _exact_unit(*key)) is not None:
        x = sloped(g.read_steps(op["input"], source.scale / unit, layout=layout))
        g.write(op.output, x, layout=layout, activation=activation)
    elif (lookups := _exact_lookups(*key)) is not None:
        units = _looked_up(g, g.read_steps(op["input"], lookups.first.step, layout=layout), lookups)
        if most is not None:
            units = g.op("Min", units, g.constant(most, np.float32))
        codes = centred_codes(g, units, op.output)
        g.write(op.output, codes, layout=layout, domain=Domain.STORED, activation=activation)
    else:
        by_code(op, g, np.clip(wanted, low, high))


def operand_to_join(
    g: Graph, tensor: TensorView, output: TensorView, layout: Layout, domain: Domain
) -> ir.Value:
    """An operand of CONCATENATION; the reals of uint8 codes in a unit in which they are rounded to
    codes of the output as TFLite rounds them."""
    if domain is not Domain.REAL or not (tensor.is_quantized and output.is_quantized):
        return g.read(tensor, layout=layout, domain=domain)
    source, target = Codes.of(tensor), Codes.of(output)
    pairs = ((np.float32(each.scale), each.zero_point) for each in (source, target))
    wanted = joined_codes(every_code(source.type), *pairs)
    unit = _exact_unit(source, target, 1.0, 0, _HIGHEST, wanted.tobytes())
    if unit is None:
        codes = looked_up(g, tensor, layout, output, wanted)
        step, zero = g.constant(target.scale, np.float32), g.constant(target.zero_point, np.uint8)
        return g.op("DequantizeLinear", codes, step, zero)
    if source == target or unit == 1.0:
        return g.read(tensor, layout=layout)
    return g.read_steps(tensor, source.scale / unit, layout=layout)


def _looked_up(g: Graph, steps: ir.Value, lookups: Twice) -> ir.Value:
    """Reals that the last QuantizeLinear rounds."""
    one, zero = g.constant(1, np.float32), g.constant(lookups.zero_point, np.uint8)
    first = g.op("LeakyRelu", steps, alpha=lookups.first.slope)
    between = g.op("QuantizeLinear", first, one, zero)
    step = g.constant(lookups.second.step, np.float32)
    second = g.op("DequantizeLinear", between, step, zero)
    return g.op("LeakyRelu", second, alpha=lookups.second.slope)


# An operator is translated twice, and operators of a network share scales.
@lru_cache(maxsize=256)
def _exact_unit(
    source: Codes, target: Codes, slope: float, low: int, high: int, wanted: bytes
) -> float | None:
    """The unit in which all codes come out of one lookup as wanted, if there is one."""
    steps = source.steps()
    for unit in UNITS:
        made = target.filed(Lookup(source.scale / unit, slope, target.scale).of(steps))
        if np.clip(made, low, high).tobytes() == wanted:
            return unit
    return None


@lru_cache(maxsize=256)
def _exact_lookups(
    source: Codes, target: Codes, slope: float, low: int, high: int, wanted: bytes
) -> Twice | None:
    """The two lookups of which all codes come out as wanted, if there are any."""
    if source.type is TensorType.INT16:
        return None
    steps = source.steps()
    for lookups in _two_lookups(steps, source.scale / target.scale, slope):
        made = target.filed(lookups.of(steps))
        if np.clip(made, low, high).tobytes() == wanted:
            return lookups
    return None


def _two_lookups(steps: Array, ratio: float, slope: float) -> Iterator[Twice]:
    """The lookups to try: the first rounds halves up or down, the second away from zero."""
    (above, n), (below, k) = _mantissa(ratio), _mantissa(abs(ratio * slope))
    lowest = float(np.rint(min(steps[0], 0) * below))
    zero_point = int(min(-lowest, _HIGHEST))
    second = Lookup(2.0**-n * _AWAY, float(np.sign(slope)) * 2.0 ** (n - k))
    for up, down in product(_MOVES, _MOVES):
        first = Lookup(above * up, below * down / (above * up)) if above else Lookup(0.0)
        yield Twice(first, zero_point, second)


def _mantissa(multiplier: float) -> tuple[float, int]:
    """(m, n) with m * 2**-n, as TFLite rounds it; n is 0 where it rounds once."""
    q31, shift = quantize_multiplier(multiplier)
    return float(q31) * 2.0 ** (max(int(shift), 0) - 31), max(-int(shift), 0)
