"""Reductions over windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.combining import combined, pairing
from tflite_ort.opmap.idioms.padding import spread_and_padded
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    OperatorView,
    ReduceWindowFunction,
    TensorType,
    Untranslatable,
)
from tflite_ort.schema.shapes.reduction import Windows
from tflite_ort.schema.values.regions import Edges, padded_sizes
from tflite_ort.schema.values.sizes import is_known

_COMBINERS = {
    ReduceWindowFunction.ADD: "Add",
    ReduceWindowFunction.MUL: "Mul",
    ReduceWindowFunction.MINIMUM: "Min",
    ReduceWindowFunction.MAXIMUM: "Max",
    ReduceWindowFunction.ALL: "And",
    ReduceWindowFunction.ANY: "Or",
}
# The type to compute in, by element type: ONNX Runtime lacks kernels for most types.
_COMPUTED_AS = {
    TensorType.FLOAT32: ir.DataType.FLOAT,
    TensorType.FLOAT64: ir.DataType.DOUBLE,
    TensorType.INT64: ir.DataType.INT64,
} | dict.fromkeys(
    (TensorType.BOOL, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32),
    ir.DataType.INT32,
)


def windows_reduced(
    op: OperatorView[Any],
    g: Graph,
    rows: Windows,
    function: ReduceWindowFunction,
    edges: Edges = (),
) -> None:
    """Every window, and `init`, reduced to one number.

    Args:
        edges: how often `init` is put before, after and between the elements of an axis; see
            `spread_and_padded`.
    """
    input, name = op["input"], _COMBINERS.get(function)
    if name is None or input.type not in _COMPUTED_AS:
        raise Untranslatable(f"{function.name} over windows of {input.type.name}")
    if 0 in filter(is_known, op.output.shape):  # no window fits
        g.write(op.output, g.constant(np.zeros(op.output.shape, input.dtype)), domain=Domain.FILE)
        return
    logical = name in ("And", "Or")
    between = ir.DataType.BOOL if logical else _COMPUTED_AS[input.type]
    values = (g.read(tensor, domain=Domain.FILE) for tensor in (input, op["init"]))
    result, init = (g.cast(value, between) for value in values)
    init, sizes = g.reshape(init, ()), input.shape
    if any(map(any, edges)):
        result = spread_and_padded(g, result, sizes, edges, init)
        sizes = padded_sizes(sizes, edges)
    pair = pairing(g, name, input.type)
    for axis, (size, row) in enumerate(zip(sizes, rows, strict=True)):
        result = combined(g, pair, result, axis, size, row)
    result = pair(result, init)
    narrow = g.cast(result, input.dtype)
    g.write(op.output, narrow, domain=Domain.FILE)
