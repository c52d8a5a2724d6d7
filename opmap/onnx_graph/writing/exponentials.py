"""Tables of the powers of e by which TFLite computes SOFTMAX of 16-bit codes, and tables of small
steps: a file has a multiplier, or the steps, and nodes that are folded at load make the table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.interpolated import CODES, lines_of
from tflite_ort.opmap.onnx_graph.writing.table_nodes import TableNodes
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.arithmetic.softmax_tables import power_multiplier, powers, softmax_powers

Array = npt.NDArray[Any]

_DOUBLE = ir.DataType.DOUBLE
# Scales of codes between which one is looked for, and how often the gap is halved.
_SCALES, _HALVINGS = (1e-9, 1.0), 60
# Differences of codes are shifted to the left by so many bits at most: 32 bits hold them.
_LEFT = 14
_NIBBLE = 16


class Powers(NamedTuple):
    """e**(scale * d) for differences d of codes: the multiplier by which these become places in
    the table of e**x from -10 to 0."""

    q31: int
    shift: int

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes of the table; all numbers are integers that float64 holds."""
        add = nodes.add

        def number(value: float) -> ir.Value:
            return nodes.constant(f"c/d{value}", np.array(value, np.float64))

        lines = lines_of(powers())
        assert lines is not None
        table = ir.Value(nodes.constant.names.free("c/powers"))
        lines.make(nodes, "c/powers", table)
        differences = add("Cast", nodes.range(-CODES + 1, 1, 1, np.int64), to=_DOUBLE)
        left, right = max(self.shift, 0), max(-self.shift, 0)
        high = add("Mul", differences, number(self.q31 * 2.0 ** (left - 31)))
        scaled = add("Floor", add("Add", high, number(0.5)))
        if right:  # halves away from zero, of numbers up to 0
            above = add("Mul", scaled, number(-(2.0**-right)))
            scaled = add("Neg", add("Floor", add("Add", above, number(0.5))))
        places = add("Max", add("Add", scaled, number(CODES - 1)), number(0))
        add("Gather", table, add("Cast", places, to=ir.DataType.INT64), output=output)


def powers_of(table: Array) -> Powers | None:
    """The multiplier that gives exactly `table`; None where there is none.

    A larger one makes no power larger, so that the gap around it can be halved.
    """
    if table.dtype != np.int16 or table.shape != (CODES,) or table[-1] != powers()[-1]:
        return None
    low, high = _SCALES
    for _ in range(_HALVINGS):
        scale = float(np.sqrt(low * high))
        tried = softmax_powers(scale)
        if np.array_equal(tried, table):
            q31, shift = (int(each) for each in quantize_multiplier(power_multiplier(scale)))
            return Powers(q31, shift) if shift <= _LEFT else None
        above, below = bool((tried > table).any()), bool((tried < table).any())
        if above and below:
            return None
        low, high = (scale, high) if above else (low, scale)
    return None


class Steps(NamedTuple):
    """The first code, and by how much each is more than the one before it: two of 4 bits a byte,
    the lower bits first, from `lowest` on."""

    first: int
    lowest: int
    pairs: npt.NDArray[np.uint8]

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes of the table; all numbers are integers that int32 holds."""
        add, to_int = nodes.add, ir.DataType.INT32
        pairs = add("Cast", nodes.constant(f"{name}_steps", self.pairs[:, None]), to=to_int)
        upper = add("Div", pairs, nodes.number(_NIBBLE))
        lower = add("Sub", pairs, add("Mul", upper, nodes.number(_NIBBLE)))
        steps = add("Reshape", add("Concat", lower, upper, axis=1), nodes.list(CODES))
        rises = add("CumSum", add("Add", steps, nodes.number(self.lowest)), nodes.long(0))
        codes = add("Add", rises, nodes.number(self.first))
        add("Cast", codes, to=ir.DataType.INT16, output=output)


def steps_of(table: Array) -> Steps | None:
    """The steps that give exactly `table`; None where 4 bits do not hold them."""
    if table.dtype != np.int16 or table.shape != (CODES,):
        return None
    rises = np.diff(table.astype(np.int32))
    lowest = int(rises.min())
    if int(rises.max()) - lowest >= _NIBBLE:
        return None
    steps = np.concatenate([[0], rises - lowest]).astype(np.uint8)
    pairs = (steps[::2] + steps[1::2] * _NIBBLE).astype(np.uint8)
    return Steps(int(table[0]) - lowest, lowest, pairs)
