"""Shape rules of TensorFlow's non-maximum suppression."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed, of_rank
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import OperatorView


@flex_rule("CombinedNonMaxSuppression")
def combined(op: OperatorView[Any]) -> Shapes:
    """As many boxes of each image as asked for; with `pad_per_class` no more than there can be."""
    batch, *_ = of_rank(op, "boxes", 4)
    *_, classes = of_rank(op, "scores", 3)
    (total, *_), (each, *_) = (
        listed(op[name]) or (unknown_size(),)
        for name in ("max_total_size", "max_output_size_per_class")
    )
    if node_of(op)["pad_per_class"]:
        known = is_known(total, each, classes)
        total = min(total, each * classes) if known else unknown_size()
    if is_known(total) and total < 0:
        raise ModelError(f"{op.label}: {total} boxes of each image")
    return (batch, total, 4), (batch, total), (batch, total), (batch,)


@flex_rule("NonMaxSuppressionWithOverlaps")
def with_overlaps(op: OperatorView[Any]) -> Shapes:
    """As many boxes as there are found."""
    of_rank(op, "overlaps", 2)
    of_rank(op, "scores", 1)
    return ((unknown_size(),),)
