"""Shape rules of pooling."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.convolution import window_counts
from tflite_ort.schema.shapes.registry import (
    Shapes,
    of_rank,
    rule,
)
from tflite_ort.schema.values.view import OperatorView


@rule(Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D, Op.L2_POOL_2D)
def pool_2d(op: OperatorView[Any]) -> Shapes:
    """[N, rows, columns, C] of windows."""
    batch, _, _, channels = of_rank(op, "input", 4)
    kernel = (op.options.filter_height, op.options.filter_width)
    return ((batch, *window_counts(op, kernel, (1, 1)), channels),)
