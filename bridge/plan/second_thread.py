"""Whether a second thread saves time in a session.

ONNX Runtime hands most layers to all threads of a session, small ones too. To hand a layer over and
to wait for it takes about a microsecond, so a layer of less than two is slower with two threads.
The times here are rough ones, of layers on one thread of a processor with VNNI; a network whose sum
is near zero takes as long either way. More threads than asked for are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.opmap.graph.costs import layer_costs
from tflite_ort.schema import Op, OperatorView, TensorType
from tflite_ort.schema.values.sizes import is_known, known_product

_TOGETHER = 16  # channels that are computed together

_CONVOLUTIONS = (Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.CONV_3D)
_CODES = (TensorType.INT8, TensorType.UINT8)


def saves_time(operators: Sequence[OperatorView[Any]]) -> bool:
    """Whether two threads are likely to run these operators sooner than one."""
    if any(op.bodies or not is_known(*x.shape) for op in operators for x in op.outputs):
        return True
    times, costs = [_microseconds(op) for op in operators], layer_costs()
    return sum(time / 2 - costs.handed_over for time in times if time > costs.shared) > 0


def _microseconds(op: OperatorView[Any]) -> float:
    """About what an operator takes on one thread."""
    if not op.outputs:
        return 0.0
    costs, made = layer_costs(), known_product(op.outputs[0].shape)
    constants = [known_product(x.shape) for x in op.present_inputs() if x.is_constant]
    least = max(made * costs.element, sum(constants) * costs.weight)
    filter = op.inputs[1] if len(op.inputs) > 1 else None
    if filter is None or not filter.shape or not is_known(*filter.shape):
        return least
    codes = op.outputs[0].type in _CODES
    product = costs.code_product if codes else costs.float_product
    if op.op in _CONVOLUTIONS:
        channels = max(1, op.outputs[0].shape[-1])
        cells = made / channels
        depthwise = op.op is Op.DEPTHWISE_CONV_2D
        if depthwise:
            product = costs.code_depthwise if codes else costs.float_depthwise
        window = known_product(filter.shape) / (filter.shape[-1] if depthwise else filter.shape[0])
        padded = -(-channels // _TOGETHER) * _TOGETHER
        return cells * padded * window * product
    if op.op in (Op.FULLY_CONNECTED, Op.TRANSPOSE_CONV, Op.BATCH_MATMUL):
        return max(least, made * filter.shape[-1] * product)
    return least
