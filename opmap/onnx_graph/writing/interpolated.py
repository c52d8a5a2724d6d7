"""Tables of all 16-bit codes that are straight lines between 512 points, as TFLite makes most of
them: a file has the points, and nodes that are folded at load make the table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import TableNodes

Array = npt.NDArray[Any]

_SEGMENTS, _STEPS = 512, 128
CODES = _SEGMENTS * _STEPS
_NONE, _HIGHEST = np.iinfo(np.int64).max, np.iinfo(np.int16).max


class Lines(NamedTuple):
    """The first code of each segment, and by how much 128 codes further on it is more."""

    points: npt.NDArray[np.int16]
    slopes: npt.NDArray[np.int16]

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes of the table; all numbers are integers that float32 holds."""
        add, constant, to_float = nodes.add, nodes.constant, ir.DataType.FLOAT
        points, slopes = self._ends(nodes, name)
        steps = constant("c/steps", np.arange(_STEPS, dtype=np.int8)[None])
        rises = add("Mul", slopes, add("Cast", steps, to=to_float))
        half = constant("c/line_half", np.array([_STEPS // 2], np.float32))
        part = constant("c/line_part", np.array([1 / _STEPS], np.float32))
        rises = add("Floor", add("Mul", add("Add", rises, half), part))
        codes = add("Cast", add("Add", points, rises), to=ir.DataType.INT16)
        add("Reshape", codes, nodes.list(CODES), output=output)

    def _ends(self, nodes: TableNodes, name: str) -> tuple[ir.Value, ir.Value]:
        """Points and slopes [512, 1] as floats. Each segment ends where the next one begins, as a
        rule: then 513 points tell both."""
        add, constant, to_float = nodes.add, nodes.constant, ir.DataType.FLOAT
        ends = np.append(self.points.astype(np.int32), np.int32(self.points[-1]) + self.slopes[-1])
        if np.array_equal(np.diff(ends), self.slopes) and abs(ends[-1]) <= _HIGHEST:
            codes = constant(f"{name}_points", ends.astype(np.int16)[:, None])
            whole, first = add("Cast", codes, to=to_float), nodes.list(0)
            points = add("Slice", whole, first, nodes.list(_SEGMENTS))
            after = add("Slice", whole, nodes.list(1), nodes.list(_SEGMENTS + 1))
            return points, add("Sub", after, points)
        points = add("Cast", constant(f"{name}_points", self.points[:, None]), to=to_float)
        return points, add("Cast", constant(f"{name}_slopes", self.slopes[:, None]), to=to_float)


def lines_of(table: Array) -> Lines | None:
    """The lines that give exactly `table`; None where there are none."""
    if table.dtype != np.int16 or table.shape != (CODES,):
        return None
    codes = table.reshape(_SEGMENTS, _STEPS).astype(np.int64)
    points, rise = codes[:, :1], codes[:, -1] - codes[:, 0]
    slopes = np.full(_SEGMENTS, _NONE)
    for shift in (0, -1, 1):
        tried = np.rint(rise * _STEPS / (_STEPS - 1)).astype(np.int64) + shift
        fits = np.all(_line(points, tried[:, None]) == codes, axis=1) & (slopes == _NONE)
        slopes[fits] = tried[fits]
    if np.any(np.abs(slopes) > _HIGHEST):
        return None
    return Lines(points[:, 0].astype(np.int16), slopes.astype(np.int16))


def _line(points: Array, slopes: Array) -> Array:
    rise: Array = (slopes * np.arange(_STEPS) + _STEPS // 2) >> 7
    codes: Array = points + rise
    return codes
