"""Shape rules of TensorFlow's operators on texts."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shapes,
    broadcast,
    flex_rule,
    listed,
    reduced,
    same_shape,
)
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

flex_rule(
    "AsString",
    "DecodeBase64",
    "EncodeBase64",
    "StaticRegexFullMatch",
    "StaticRegexReplace",
    "StringLength",
    "StringLower",
    "StringStrip",
    "StringToHashBucket",
    "StringToHashBucketFast",
    "StringToHashBucketStrong",
    "StringToNumber",
    "UnicodeTranscode",
)(same_shape)


@flex_rule("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeEncode")
def of_text(op: View) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)


@flex_rule("RegexFullMatch", "RegexReplace")
def as_first(op: View) -> Shapes:
    """The shape of the texts."""
    return (op["input"].shape,)


@flex_rule("StringFormat")
def one_text(op: View) -> Shapes:
    """A scalar."""
    return ((),)


@flex_rule("StringJoin")
def joined(op: View) -> Shapes:
    """The shape of all that are no scalars."""
    shapes = [tensor.shape for tensor in op.present_inputs() if tensor.shape]
    return (shapes[0] if shapes else (),)


@flex_rule("Substr")
def substr(op: View) -> Shapes:
    """The texts and the places broadcast."""
    return (broadcast(op, op["input"].shape, op["pos"].shape),)


@flex_rule("Fingerprint")
def fingerprint(op: View) -> Shapes:
    """8 bytes for each row."""
    if not op["data"].shape:
        raise ModelError(f"{op.label}: a scalar has no rows")
    return ((op["data"].shape[0], 8),)


@flex_rule("ReduceJoin")
def reduce_join(op: View) -> Shapes | None:
    """Without the axes that are joined."""
    shape, axes = op["inputs"].shape, listed(op["reduction_indices"])
    rank = len(shape)
    if axes is None:
        return None
    if not is_known(*axes):
        keep = node_of(op)["keep_dims"]
        return (unknown_shape(rank if keep else max(rank - len(axes), 0)),)
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"{op.label}: axes {axes} of {rank} dimensions")
    return reduced(shape, {axis % rank for axis in axes}, node_of(op)["keep_dims"])


@flex_rule("UnsortedSegmentJoin")
def segments(op: View) -> Shapes:
    """A row for each segment."""
    (count, *_) = listed(op["num_segments"]) or (unknown_size(),)
    return ((count, *op["inputs"].shape[len(op["segment_ids"].shape) :]),)


@flex_rule("StringSplit", "StringSplitV2")
def split(op: View) -> Shapes:
    """A sparse matrix, of which only the data says how many elements it has."""
    return (unknown_size(), 2), unknown_shape(1), (2,)
