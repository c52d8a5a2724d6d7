"""Reduction of windows by an operation on pairs of numbers, in a logarithmic number of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.sizes import is_known

Pair = Callable[[ir.Value, ir.Value], ir.Value]

_LIMITS = np.iinfo(np.int64)


def pairing(g: Graph, name: str, type: TensorType) -> Pair:
    """The operation `name` on two numbers of a type."""
    if type is TensorType.INT64 and name in ("Max", "Min"):
        return g.larger if name == "Max" else g.smaller
    return functools.partial(g.op, name)


def combined_axis(
    g: Graph, name: str, type: TensorType, value: ir.Value, axis: int, size: int
) -> ir.Value:
    """The reduction of a whole axis, which is kept. Extremes of 64-bit integers are the first of
    TopK: ONNX Runtime's ReduceMax and ReduceMin are wrong beyond 32 bits."""
    if type is TensorType.INT64 and name in ("Max", "Min"):
        first, largest = g.ints([1]), int(name == "Max")
        if not is_known(size):  # TopK fails without elements
            worst = g.ints(_LIMITS.min if largest else _LIMITS.max)
            value = g.op("Pad", value, g.ints([0, 1]), worst, g.ints([axis]))
        return g.op_multi("TopK", value, first, outputs=2, axis=axis, largest=largest)[0]
    return combined(g, pairing(g, name, type), value, axis, size, (1, size, 1, 1))


def combined(
    g: Graph, pair: Pair, value: ir.Value, axis: int, size: int, row: tuple[int, int, int, int]
) -> ir.Value:
    """The reduction of the windows along one axis, by blocks of 1, 2, 4, ... cells."""
    _, window, stride, dilation = row
    if window == stride == 1:
        return value
    cells = size - (window - 1) * dilation  # positions at which a window can start
    pieces: list[ir.Value] = []
    reached, width = 0, 1
    while True:
        if window & width:
            pieces.append(_cut(g, value, axis, reached * dilation, cells))
            reached += width
        if reached == window:
            result = functools.reduce(pair, pieces)
            return _cut(g, result, axis, 0, cells, stride) if stride > 1 else result
        left = size - (2 * width - 1) * dilation
        halves = (_cut(g, value, axis, start, left) for start in (0, width * dilation))
        value, width = pair(*halves), 2 * width


def _cut(g: Graph, value: ir.Value, axis: int, start: int, count: int, step: int = 1) -> ir.Value:
    bounds = ([start], [start + count], [axis], [step])
    return g.op("Slice", value, *(g.ints(bound) for bound in bounds))
