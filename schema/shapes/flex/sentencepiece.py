"""Shape rules of SentencePiece's operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.shapes.tokenizers import lists
from tflite_ort.schema.values.view import OperatorView

flex_rule(
    "SentencepieceDetokenizeOp", "SentencepieceTokenizeOp", "SentencepieceTokenizeWithOffsetsOp"
)(lists)


@flex_rule("SentencepieceOp", "SentencepieceVocabSizeOp")
def scalar(op: OperatorView[Any]) -> Shapes:
    """A handle, or a number."""
    return ((),)


@flex_rule("SentencepieceIdToStringOp", "SentencepieceStringToIdOp")
def of_each(op: OperatorView[Any]) -> Shapes:
    """The shape of what is looked up."""
    return (op["input"].shape,)
