"""Tables of TFLite's 16-bit tanh and logistic function over all codes, as the arithmetic that makes
them: `schema/arithmetic/fixed_point16.py` in nodes of 32-bit integers.

Both are functions of e = exp(-abs(x)) alone. A table is made of the magnitudes 1..32768 in order::

    e of a quarter          a series, of 8192 codes; other counts of integer bits take every 2**n-th
    e of all magnitudes     times exp(-1/4), exp(-1/2), ... for each further bit: the list doubles
    2 / (1 + e)             of all 32768 e, looked up
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import TableNodes
from tflite_ort.schema.arithmetic.fixed_point16 import (
    EXP_OF_MINUS_EIGHTH,
    EXP_STEPS,
    THIRD,
    logistic,
    tanh,
)

Array = npt.NDArray[Any]

_CODES, _ONE, _HALF_ONE = 65536, 32767, 16384
_QUARTER = 8192  # codes of a quarter, without integer bits
# A quotient is lifted above 0, so that Div cuts its rest off downwards.
_LIFT = 16384
_BACKWARDS = -_CODES  # an end before all
# Of these counts of integer bits tables are looked for.
_GATE_BITS, _TANH_BITS = 3, range(5)


class Gate(NamedTuple):
    """A function over all codes.

    Args:
        is_tanh: not the logistic function.
        bits: integer bits of the codes.
        ascending: by code; False: at the place of their bits, the negative ones last.
        rest: 1 less the function.
    """

    is_tanh: bool
    bits: int
    ascending: bool = True
    rest: bool = False

    def table(self) -> npt.NDArray[np.int16]:
        """The codes of the results."""
        codes = np.arange(_CODES, dtype=np.uint16).view(np.int16)
        codes = np.sort(codes) if self.ascending else codes
        made = (tanh if self.is_tanh else logistic)(codes, self.bits)
        return (_ONE - made).astype(np.int16) if self.rest else made


class Gates(NamedTuple):
    """Functions whose tables stand one after the other."""

    parts: tuple[Gate, ...]

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes of the tables, as one."""
        pieces = [piece for each in self.parts for piece in _pieces(each, nodes)]
        whole = pieces[0] if len(pieces) == 1 else nodes.add("Concat", *pieces, axis=0)
        nodes.add("Cast", whole, to=ir.DataType.INT16, output=output)


def gates_of(table: Array) -> Gates | None:
    """The functions of which `table` has all results; None where it has others."""
    if table.dtype != np.int16 or table.ndim != 1 or not table.size or table.size % _CODES:
        return None
    parts = []
    for block in table.reshape(-1, _CODES):
        found = next(
            (gate for gate, made in _gates_with_tables() if np.array_equal(made, block)), None
        )
        if found is None:
            return None
        parts.append(found)
    return Gates(tuple(parts))


@cache
def _gates_with_tables() -> list[tuple[Gate, Array]]:
    return [(gate, gate.table()) for gate in _gates()]


def _gates() -> Iterator[Gate]:
    for ascending in (True, False):
        yield from (Gate(False, _GATE_BITS, ascending, rest) for rest in (False, True))
        yield from (Gate(True, bits, ascending) for bits in _TANH_BITS)


def _pieces(gate: Gate, g: TableNodes) -> Sequence[ir.Value]:
    """What the table of a function consists of, in int32."""
    one = g.number(_ONE)
    exp = _exp(g, gate.bits + gate.is_tanh)
    quotient = g.add("Gather", _reciprocals(g), exp)
    if gate.is_tanh:
        above = g.add("Mul", g.add("Sub", quotient, g.number(_QUARTER)), g.number(4))
        above = g.add("Min", above, one)
        below, middle = g.add("Neg", above), g.constant("c/0", np.array([0], np.int32))
    else:
        above = g.add("Min", g.add("Add", quotient, quotient), one)
        below, half = g.add("Sub", one, above), _ONE - _HALF_ONE if gate.rest else _HALF_ONE
        middle = g.constant(f"c/h{half}", np.array([half], np.int32))
        if gate.rest:
            above, below = below, above
    # Magnitudes are from 1 to 32768, which only a negative code has.
    parts = [g.slice(below, -1, _BACKWARDS, -1), middle, g.slice(above, 0, _ONE)]
    return parts if gate.ascending else [*parts[1:], parts[0]]


def _exp(g: TableNodes, bits: int) -> ir.Value:
    """exp(-x) of the magnitudes 1..32768 of codes with `bits` integer bits.

    If there are those of fewer bits, every second, fourth, ... one of them is the first part.
    """
    if bits in g.exps:
        return g.exps[bits]
    fewer = [known for known in g.exps if known < bits]
    first = max(fewer, default=0)
    step = 1 << (bits - first)
    source, end = (g.exps[first], _ONE + 1) if fewer else (_quarter(g), _QUARTER)
    whole = g.slice(source, step - 1, end, step)
    for multiplier in EXP_STEPS[first + 2 if fewer else 0 : bits + 2]:
        whole = g.add("Concat", whole, _product(g, whole, g.number(multiplier)), axis=0)
    g.exps[bits] = whole
    return whole


def _quarter(g: TableNodes) -> ir.Value:
    """exp of -1, -2, ... -8192, of codes without integer bits: a series about -1/8."""
    y = g.range(4095, -4097, -1)
    y2 = _product(g, y, y)
    quarter = g.add("Div", _product(g, y2, y2, above=2), g.number(4))
    tail = g.add("Add", quarter, _lifted(g, y2, y))
    tail = _lifted(g, tail, g.number(THIRD), less=_LIFT * THIRD)
    tail = g.add("Div", g.add("Add", g.add("Add", tail, y2), g.number(1 - _LIFT)), g.number(2))
    eighth = _lifted(g, g.number(EXP_OF_MINUS_EIGHTH), g.add("Add", y, tail))
    whole = g.add("Add", eighth, g.number(EXP_OF_MINUS_EIGHTH - _LIFT))
    return g.add("Min", whole, g.number(_ONE))


def _reciprocals(g: TableNodes) -> ir.Value:
    """2 / (1 + e) in Q2.13 of all e from 0 to 32767: Newton-Raphson from 48/17 - 32/17 d."""
    half = g.add("Div", g.range(_ONE + 1, 2 * _ONE + 2, 1), g.number(2))
    estimate = g.add("Add", _lifted(g, half, g.number(-15420)), g.number(23130 - _LIFT))
    for _ in range(3):
        error = g.add("Sub", g.number(_QUARTER), _product(g, half, estimate))
        step = g.add("Sub", _lifted(g, estimate, error), g.number(_LIFT))
        estimate = g.add("Add", estimate, g.add("Mul", step, g.number(4)))
    return estimate


def _product(g: TableNodes, a: ir.Value, b: ir.Value, above: int = 0) -> ir.Value:
    """High half of ``2 * a * b``, which is not below 0, halves upwards, and `above`."""
    doubled = g.add("Add", g.add("Mul", a, b), g.number((above << 15) + (1 << 14)))
    return g.add("Div", doubled, g.number(1 << 15))


def _lifted(g: TableNodes, a: ir.Value, b: ir.Value, less: int = 0) -> ir.Value:
    """As `_product`, of numbers of any sign whose product is within 2**29, lifted above 0.

    Args:
        less: what the product is too large by.
    """
    lifted = g.add("Add", g.add("Mul", a, b), g.number((_LIFT << 15) + (1 << 14) - less))
    return g.add("Div", lifted, g.number(1 << 15))
