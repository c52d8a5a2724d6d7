"""The scales of a quantised convolution as one constant.

ONNX Runtime hands all constants of a graph to each run, which takes 13 nanoseconds for each. A
QLinearConv multiplies its sums by (scale of the input * scale of the weights) / scale of the
result, in float32. This factor takes the place of the weights' scale, and 1 that of the others: the
codes are the same, to the last one. All layers share the 1, and the zero points, which they share
with other nodes too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

Array = npt.NDArray[Any]
_X_SCALE, _W_SCALE, _W_ZERO, _Y_SCALE = 1, 4, 5, 6
_ONE = np.ones((), np.float32)
_CODES = (np.int8, np.uint8)


def join_scales(graph: ir.Graph, around: NodesAround) -> None:
    """Give each QLinearConv of `graph` one constant in place of three scales."""
    layers = [node for node in graph.nodes if node.op_type == "QLinearConv"]
    made: dict[tuple[Any, ...], ir.Value] = {}

    def key(array: Array) -> tuple[Any, ...]:
        return array.dtype, array.ndim, array.tobytes()

    def shared(array: Array) -> ir.Value:
        place = key(array)
        found = made.get(place)
        if found is None:
            found = graph.add_initializer(f"layers/constant_{len(made)}", array)
            made[place] = found
        return found

    for value in graph.initializers.values():
        number = None if value.const_value is None else value.const_value.array
        if number is not None and number.ndim == 0 and number.dtype in _CODES:
            made.setdefault(key(number), value)

    for node in layers:
        constants = [_constant(value) for value in node.inputs[1:8]]
        source, zero, _, weights, weights_zero, result, result_zero = constants
        if any(x is None for x in (source, zero, weights, weights_zero, result, result_zero)):
            continue
        with np.errstate(all="ignore"):  # as ONNX Runtime computes it
            factor = source * weights / result
        if not np.isfinite(factor).all():
            continue
        inputs = list(node.inputs)
        inputs[_X_SCALE] = inputs[_Y_SCALE] = shared(_ONE)
        inputs[_W_SCALE] = shared(factor)
        inputs[2], inputs[7] = shared(zero), shared(result_zero)
        inputs[_W_ZERO] = shared(
            weights_zero if weights_zero.any() else weights_zero.flat[:1].reshape(())
        )
        node.inputs = tuple(inputs)
    graph.drop_unread()


def _constant(value: ir.Value | None) -> Any:
    return None if value is None or value.const_value is None else value.const_value.array
