"""Shape rules of matrix products."""

from __future__ import annotations

import math
from typing import Any

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shapes,
    broadcast,
    check_bias,
    rule,
)
from tflite_ort.schema.values.semantics import UNCLAMPED
from tflite_ort.schema.values.sizes import differ, is_known, quotient
from tflite_ort.schema.values.view import OperatorView


@rule(Op.FULLY_CONNECTED)
def fully_connected(op: OperatorView[Any]) -> Shapes:
    """[B, N] of filter [N, D]; the input's shape with N for its last with keep_num_dims, and
    wherever D is 0, then flattened."""
    _check_activation(op)
    _check_channels(op)
    shape, filter = op["input"].shape, op["filter"].shape
    if len(filter) == 2 and is_known(filter[1]) and filter[1] == 0:
        rows = shape[:-1] if op.options.keep_num_dims else (math.prod(shape[:-1]),)
        return ((*rows, filter[0]),)
    if len(filter) != 2 or (is_known(*shape, filter[1]) and math.prod(shape) % filter[1]):
        raise ModelError(f"{op.label}: filter {filter} does not fit an input of {shape}")
    check_bias(op, filter[0])
    if not op.options.keep_num_dims:
        return ((quotient(shape, filter[1]), filter[0]),)
    if differ(shape[-1:], filter[1:]):
        raise ModelError(f"{op.label}: filter has depth {filter[1]}, input has shape {shape}")
    return ((*shape[:-1], filter[0]),)


def _check_activation(op: OperatorView[Any]) -> None:
    """Refuse what only the kernels of float inputs and integer weights apply."""
    activation, types = op.options.fused_activation_function, (op["input"].type, op["filter"].type)
    hybrid = types[0] is TensorType.FLOAT32 is not types[1]
    if activation in UNCLAMPED and not hybrid:
        raise ModelError(f"{op.label}: {types[0].name} takes no fused {activation.name}")


def _check_channels(op: OperatorView[Any]) -> None:
    """Refuse scales along the sums: LiteRT does for codes, and takes them for scales of the units
    where the input has floats."""
    found = op["filter"].quantization
    if found is not None and found.per_channel and found.axis != 0:
        raise ModelError(f"{op.label}: the filter has scales along axis {found.axis}, expected 0")


@rule(Op.BATCH_MATMUL)
def batch_matmul(op: OperatorView[Any]) -> Shapes:
    """The product of the last two dimensions, after adj_x and adj_y; the others broadcast."""
    x, y = op["x"].shape, op["y"].shape
    if min(len(x), len(y)) < 2:
        raise ModelError(f"{op.label}: ranks are {len(x)} and {len(y)}, expected at least 2")
    rows, depth = x[-1:-3:-1] if op.options.adj_x else x[-2:]
    other, columns = y[-1:-3:-1] if op.options.adj_y else y[-2:]
    if differ((depth,), (other,)):
        raise ModelError(f"{op.label}: depth is {depth} on the left, {other} on the right")
    return ((*broadcast(op, x[:-2], y[:-2]), rows, columns),)
