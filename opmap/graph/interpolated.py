"""Tables of all 16-bit codes that are straight lines between 512 points, as TFLite makes most of
them: a file has the points, and nodes that are folded at load make the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import ir

Array = npt.NDArray[Any]
# Adds a node with one output.
AddNode = Callable[..., ir.Value]

_SEGMENTS, _STEPS = 512, 128
CODES = _SEGMENTS * _STEPS
_NONE = np.iinfo(np.int64).max


class Lines(NamedTuple):
    """The first code of each segment, and by how much 128 codes further on it is more."""

    points: npt.NDArray[np.int16]
    slopes: npt.NDArray[np.int16]


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
    if np.any(np.abs(slopes) > 32767):
        return None
    return Lines(points[:, 0].astype(np.int16), slopes.astype(np.int16))


def _line(points: Array, slopes: Array) -> Array:
    rise: Array = (slopes * np.arange(_STEPS) + _STEPS // 2) >> 7
    codes: Array = points + rise
    return codes


def table_of(
    lines: Lines, name: str, constant: Callable[[str, Array], ir.Value], add: AddNode
) -> None:
    """Add the nodes that make the table; all numbers are integers that float32 holds.

    Args:
        name: what names of constants begin with.
        constant: gives the initializer of a name, which is made once.
        add: takes the type of a node, its inputs and attributes; the last one makes the table.
    """
    to_float: Any = {"to": ir.DataType.FLOAT}
    points = add("Cast", constant(f"{name}_points", lines.points[:, None]), **to_float)
    slopes = add("Cast", constant(f"{name}_slopes", lines.slopes[:, None]), **to_float)
    steps = add("Cast", constant("line_steps", np.arange(_STEPS, dtype=np.int8)[None]), **to_float)
    half = constant("line_half", np.array([_STEPS // 2], np.float32))
    part = constant("line_part", np.array([1 / _STEPS], np.float32))
    rises = add("Floor", add("Mul", add("Add", add("Mul", slopes, steps), half), part))
    codes = add("Cast", add("Add", points, rises), to=ir.DataType.INT16)
    add("Reshape", codes, constant("line_codes", np.array([CODES], np.int64)), last=True)
