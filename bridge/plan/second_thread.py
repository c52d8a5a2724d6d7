"""Whether a second thread saves time in a session.

ONNX Runtime hands most layers to all threads of a session, small ones too. To hand a layer over and
to wait for it takes about a microsecond, so a layer of less than two is slower with two threads.
The times here are rough ones, of layers on one thread of a processor with VNNI; a network whose sum
is near zero takes as long either way. More threads than asked for are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.schema import Op, OperatorView, TensorType
from tflite_ort.schema.values.sizes import is_known, known_product

# Microseconds of a thousand products: of codes, of floats. Depthwise layers collect their inputs.
_PRODUCTS = {Op.DEPTHWISE_CONV_2D: (0.035, 0.032)}
_OTHER_PRODUCTS = (0.0037, 0.0084)
_TOGETHER = 16  # channels that are computed together
_WEIGHTS = 0.03  # of a thousand weights that are read
_ELEMENTS = 0.1  # of a thousand elements that are made
_HANDED_OVER = 1.65  # microseconds to share a layer between two threads
_SHARED = 0.3  # a layer of fewer microseconds stays on one

_CONVOLUTIONS = (Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.CONV_3D)
_CODES = (TensorType.INT8, TensorType.UINT8)


def saves_time(operators: Sequence[OperatorView[Any]]) -> bool:
    """Whether two threads are likely to run these operators sooner than one."""
    if any(op.bodies or not is_known(*x.shape) for op in operators for x in op.outputs):
        return True
    times = [_microseconds(op) for op in operators]
    return sum(time / 2 - _HANDED_OVER for time in times if time > _SHARED) > 0


def _microseconds(op: OperatorView[Any]) -> float:
    """About what an operator takes on one thread."""
    if not op.outputs:
        return 0.0
    made = known_product(op.outputs[0].shape) / 1000
    constants = [known_product(x.shape) for x in op.present_inputs() if x.is_constant]
    least = max(made * _ELEMENTS, sum(constants) / 1000 * _WEIGHTS)
    filter = op.inputs[1] if len(op.inputs) > 1 else None
    if filter is None or not filter.shape or not is_known(*filter.shape):
        return least
    floats = op.outputs[0].type not in _CODES
    if op.op in _CONVOLUTIONS:
        channels = max(1, op.outputs[0].shape[-1])
        cells = made / channels
        depthwise = op.op is Op.DEPTHWISE_CONV_2D
        window = known_product(filter.shape) / (filter.shape[-1] if depthwise else filter.shape[0])
        whole = -(-channels // _TOGETHER) * _TOGETHER
        return cells * whole * window * _PRODUCTS.get(op.op, _OTHER_PRODUCTS)[floats]
    if op.op in (Op.FULLY_CONNECTED, Op.TRANSPOSE_CONV, Op.BATCH_MATMUL):
        return max(least, made * filter.shape[-1] * _OTHER_PRODUCTS[floats])
    return least
