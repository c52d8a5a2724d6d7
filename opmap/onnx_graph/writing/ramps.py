"""Tables of all 16-bit codes that are two ramps, of the codes below 0 and of the others: a product,
rounded and held between two limits. A file has the slopes; nodes folded at load make the table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import TableNodes

Array = npt.NDArray[Any]

_HALF = 32768
_INT32 = ir.DataType.INT32
# The fraction bits of slopes, and what keeps a quotient above 0 so that its rest is cut off.
_BITS, _LIFT = 36, 1 << 20
_TRIES = 80
_STEEPEST = 64.0


class Ramp(NamedTuple):
    """floor((code * slope + start) / 2**36)."""

    slope: int
    start: int


class Ramps(NamedTuple):
    """The ramps of the codes below 0 and of the others, and the limits of the results."""

    dtype: ir.DataType
    below: Ramp
    above: Ramp
    limits: tuple[int, int]

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes of the table, ascending by code."""
        sides = []
        for ramp, first in ((self.below, -_HALF), (self.above, 0)):
            codes = nodes.range(first, first + _HALF, 1, np.int64)
            start = ramp.start + (_LIFT << _BITS)
            sides.append(
                nodes.add("Add", nodes.add("Mul", codes, nodes.long(ramp.slope)), nodes.long(start))
            )
        whole = nodes.add("Concat", *sides, axis=0)
        quotient = nodes.add("Div", whole, nodes.long(1 << _BITS))
        # ONNX Runtime's Max and Min of int64 are wrong, see docs/numbers.md.
        results = nodes.add("Cast", nodes.add("Sub", quotient, nodes.long(_LIFT)), to=_INT32)
        low, high = map(nodes.number, self.limits)
        results = nodes.add("Min", nodes.add("Max", results, low), high)
        nodes.add("Cast", results, to=self.dtype, output=output)


def ramps_of(table: Array) -> Ramps | None:
    """The ramps that give exactly `table`; None where there are none."""
    if table.dtype not in (np.int8, np.uint8, np.int16) or table.shape != (2 * _HALF,):
        return None
    results = table.astype(np.int64)
    limits = int(results.min()), int(results.max())
    codes = np.arange(-_HALF, _HALF)
    sides = [_ramp(codes[side], results[side], limits) for side in _SIDES]
    if any(side is None for side in sides):
        return None
    below, above = (side for side in sides if side is not None)
    return Ramps(ir.DataType.from_numpy(table.dtype), below, above, limits)


_SIDES = (slice(_HALF), slice(_HALF, None))


def _ramp(codes: Array, results: Array, limits: tuple[int, int]) -> Ramp | None:
    """The ramp that gives exactly `results`, where it is held within `limits`."""
    if results.min() == results.max():
        return Ramp(0, int(results[0]) << _BITS)
    least = np.where(results > limits[0], results, -np.inf)
    most = np.where(results < limits[1], results + 1.0, np.inf)

    def room(slope: float) -> tuple[float, float]:
        """The least and the most that the start may be; there is none if they are the wrong way
        round, which a better slope may mend: the difference is convex."""
        rise = codes * slope
        return float(np.max(least - rise)), float(np.min(most - rise))

    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_TRIES):
        thirds = low + (high - low) / 3, high - (high - low) / 3
        missing = [start - end for start, end in map(room, thirds)]
        low, high = (low, thirds[1]) if missing[0] < missing[1] else (thirds[0], high)
    slope = round((low + high) / 2 * 2.0**_BITS)
    first, last = room(slope * 2.0**-_BITS)
    ramp = Ramp(slope, round((first + last) / 2 * 2.0**_BITS))
    made = ((codes * ramp.slope + ramp.start) >> _BITS).clip(*limits)
    return ramp if np.array_equal(made, results) else None
