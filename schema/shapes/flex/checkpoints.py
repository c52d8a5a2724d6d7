"""Shape rules of TensorFlow's checkpoints."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("Save", "SaveSlices", "SaveV2", "MergeV2Checkpoints", "ReadFile", "WriteFile")
def written(op: View) -> Shapes:
    """The number of the next one, after what a file has."""
    return ((),) * len(op.outputs)


@flex_rule("ShardedFilename", "ShardedFilespec")
def name(op: View) -> Shapes:
    """A text."""
    return ((),)
