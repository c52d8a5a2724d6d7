"""HARD_SWISH of 8-bit codes by floats, of which all are rounded to TFLite's codes.

TFLite computes in fixed point of 16 bits, so that a few codes are not the nearest ones. From 3 on
the result is a multiple of x, and from -3 to 3 the sum of a multiple of x and one of its square.
These three multiples are moved until no code of TFLite is missed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.by_code import by_code, is_short_row
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.schema import OperatorView
from tflite_ort.schema.arithmetic.hard_swish import hard_swish_codes
from tflite_ort.schema.values.semantics import quantized_range

Array = npt.NDArray[Any]

# By what the multiple of the square is moved, the least first.
_MOVES = np.array([sign * k * 2.0**-15 for k in range(40) for sign in (1, -1)][1:])[:, np.newaxis]
# How far off floats are, of their size and that of x, in codes of the result.
_ERROR = 2.0**-20


class Gate(NamedTuple):
    """y = x * min(max(x * slope + middle, 0), 1), of codes times `unit` times their scale."""

    unit: float = 1.0
    slope: float = 1 / 6
    middle: float = 0.5

    def of(self, x: Array) -> Array:
        x = x * self.unit
        return np.asarray(x * np.clip(x * self.slope + self.middle, 0, 1))


def write_hard_swish(op: OperatorView[Any], g: Graph, layout: Layout) -> None:
    """Write HARD_SWISH of 8-bit codes; where no gate is exact, and for short rows, a Gather from
    TFLite's table."""
    input, source, target = op["input"], Codes.of(op["input"]), Codes.of(op.output)
    wanted = _wanted(source, target)
    gate: Gate | None = Gate()
    if wanted is not None:
        gate = None if is_short_row(g, input) else _exact_gate(source, target)
    if wanted is not None and gate is None:
        by_code(op, g, target.filed(wanted))
    elif gate is None or gate == Gate():
        g.write(op.output, g.op("HardSwish", g.read(input, layout=layout)), layout=layout)
    else:
        x = g.read_steps(input, source.scale * gate.unit, layout=layout)
        share = g.op("HardSigmoid", x, alpha=gate.slope, beta=gate.middle)
        g.write(op.output, g.op("Mul", x, share), layout=layout)


def _wanted(source: Codes, target: Codes) -> Array | None:
    return hard_swish_codes(source.steps(), np.float32(source.scale), np.float32(target.scale))


# An operator is translated twice, and operators of a network share scales.
@lru_cache(maxsize=256)
def _exact_gate(source: Codes, target: Codes) -> Gate | None:
    """The gate with which all codes come out as TFLite's, if one is found."""
    codes = _wanted(source, target)
    if codes is None:
        return None
    x, lowest, highest = _bounds(source, target, codes.astype(np.float64))
    for gate in (Gate(), _moved(x, lowest, highest)):
        if gate is not None and np.all((lowest <= gate.of(x)) & (gate.of(x) <= highest)):
            return gate
    return None


def _bounds(source: Codes, target: Codes, codes: Array) -> tuple[Array, Array, Array]:
    """The input of every code, and the lowest and the highest result that become TFLite's code."""
    low, high = (end - target.zero_point for end in quantized_range(target.type))
    x, codes = source.steps().astype(np.float64) * source.scale, np.clip(codes, low, high)
    slack = 0.5 - _ERROR * (np.abs(codes) + np.abs(x) / target.scale + 1)
    lowest, highest = np.where(codes == low, -np.inf, codes - slack), codes + slack
    highest[codes == high] = np.inf
    return x, lowest * target.scale, highest * target.scale


def _moved(x: Array, lowest: Array, highest: Array) -> Gate | None:
    """The gate of multiples that are within the bounds of all codes."""
    is_linear, is_square = x >= 3, (x > -3) & (x < 3) & (x != 0)
    unit = _between(1.0, *_multiples(x[is_linear], lowest[is_linear], highest[is_linear]))
    x, lowest, highest = x[is_square], lowest[is_square], highest[is_square]
    squares = (1 + _MOVES) / 6
    least, most = _multiples(x, lowest - squares * x * x, highest - squares * x * x)
    found = np.flatnonzero(least <= most)
    if unit is None or not len(found):
        return None
    middle = _between(0.5, least[found[0]], most[found[0]])
    assert middle is not None
    return Gate(unit, float(squares[found[0], 0]) / unit**2, middle / unit)


def _multiples(x: Array, lowest: Array, highest: Array) -> tuple[Any, Any]:
    """The least and the largest multiple of all x that is within the bounds."""
    first, second = lowest / x, highest / x
    least = np.max(np.minimum(first, second), axis=-1, initial=-np.inf)
    return least, np.min(np.maximum(first, second), axis=-1, initial=np.inf)


def _between(number: float, least: float, most: float) -> float | None:
    """The number between the two that is nearest to `number`; None if there is none between."""
    return float(min(max(number, least), most)) if least <= most else None
