"""Shape rules of the operators that pick boxes."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule
from tflite_ort.schema.values.sizes import differ, unknown_size
from tflite_ort.schema.values.view import OperatorView


@rule(Op.NON_MAX_SUPPRESSION_V4, Op.NON_MAX_SUPPRESSION_V5)
def non_max_suppression(op: OperatorView[Any]) -> Shapes | None:
    """Lists of max_output_size, and a count."""
    boxes, scores = op["boxes"].shape, op["scores"].shape
    most = op["max_output_size"].data
    if len(boxes) != 2 or differ(boxes[1:], (4,)) or differ(scores, boxes[:1]):
        raise ModelError(f"boxes {boxes} with scores {scores} are not [N, 4] and [N]")
    size = unknown_size() if most is None else int(most.reshape(-1)[0])
    if most is not None and size < 0:
        raise ModelError(f"max_output_size is {size}, expected at least 0")
    lists = ((size,),) * (len(op.outputs) - 1)
    return (*lists, ())
