"""Functions of 8-bit codes by floats, in a unit in which no result is next to a half.

TFLite has a table of all codes, whose halves go away from zero. ONNX Runtime rounds them to even,
and its floats have other last bits. A slightly larger or smaller unit of the input moves what is
next to a half to the side on which TFLite has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.by_code import by_code, every_code, is_short_row
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView
from tflite_ort.schema.arithmetic import function_table
from tflite_ort.schema.arithmetic.code_functions import inverse_root_codes
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

Function = Callable[[Any], Any]
# The results of every code of a tensor, in codes of another.
Table = Callable[[Codes, Codes, Function], Any]

# By what a unit is multiplied, the least change first.
UNITS = (1.0, *(1 + sign * 2.0**-bits for bits in (18, 16, 14) for sign in (1, -1)))
# How far off floats are, of their size and that of the input, in codes of the result.
_ERROR = 2.0**-20


def rounded_table(source: Codes, target: Codes, function: Function) -> Any:
    """TFLite's table of what is a function of reals there too."""
    given, made = ((np.float32(each.scale), each.zero_point) for each in (source, target))
    codes, dtype = every_code(source.type), NUMPY_DTYPE[target.type]
    return function_table.byte_table(codes, function, given, made, dtype)


def inverse_roots(source: Codes, target: Codes, function: Function) -> Any:
    """What TFLite's fixed point makes of codes from the zero point on."""
    steps, scales = np.maximum(source.steps(), 0), (source.scale, target.scale)
    return target.filed(inverse_root_codes(steps, *map(np.float32, scales)))


def write_function(
    op: OperatorView[Any],
    g: Graph,
    function: Function,
    emit: Callable[[ir.Value], ir.Value],
    table: Table = rounded_table,
) -> None:
    """Write `function` of 8-bit codes; a Gather from TFLite's table where no unit is found,
    and for short rows.

    Args:
        emit: adds the nodes of reals.
        table: makes TFLite's table.
    """
    input, layout = op["input"], g.layout(op["input"], rows=True)
    source, target = Codes.of(input), Codes.of(op.output)
    unit = None
    if not is_short_row(g, input):
        unit = 1.0 if g.target.paired_codes else _clear_unit(source, target, function, table)
    if unit is None:
        by_code(op, g, table(source, target, function))
        return
    if unit == 1.0:
        x = g.read(input, layout=layout)
    else:
        x = g.read_steps(input, source.scale * unit, layout=layout)
    g.write(op.output, emit(x), layout=layout)


@lru_cache(maxsize=256)
def _clear_unit(source: Codes, target: Codes, function: Function, table: Table) -> float | None:
    """By what the unit of the input is multiplied, so that floats give TFLite's table."""
    wanted = table(source, target, function).astype(np.float64) - target.zero_point
    low, high = (end - target.zero_point for end in quantized_range(target.type))
    for unit in UNITS:
        x = source.steps() * np.float32(source.scale * unit)
        with np.errstate(all="ignore"):
            units = function(x).astype(np.float64) / target.scale
            slack = 0.5 - _ERROR * (np.abs(units) + np.abs(x) / target.scale + 1)
            above = (units >= wanted - slack) | (wanted == low)
            below = (units <= wanted + slack) | (wanted == high)
        if np.all(above & below):
            return unit
    return None
