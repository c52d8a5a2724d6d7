"""Shape rules of tf.text's operators that TFLite models have as custom operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule
from tflite_ort.schema.values.sizes import is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import BinarizeOptions, NgramsOptions, map_options

View = OperatorView[Any]

_FIRST_PARTITION = 3  # after the shape, the values and the default value


@rule(
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "FastWordpieceTokenizeWithOffsets",
    "TFText>ByteSplitByOffsets",
    "TFText>ByteSplitWithOffsets",
    "TFText>FastSentencepieceDetokenize",
    "TFText>FastSentencepieceTokenize",
    "TFText>FastWordpieceDetokenize",
    "TFText>RoundRobinGenerateMasks",
    "TFText>RoundRobinTrim",
    "FastBertNormalize",
)
def lists(op: View) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)


def partition_kinds(told: Sequence[Any], count: int) -> list[str]:
    """How each of so many tensors tells rows: ROW_SPLITS, or FIRST_DIM_SIZE and then VALUE_ROWIDS.

    Raises:
        ModelError: in another way, or in another order.
    """
    kinds = [
        each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in told
    ]
    splits = bool(kinds) and kinds == ["ROW_SPLITS"] * len(kinds)
    ids = len(kinds) > 1 and kinds == ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * (len(kinds) - 1)
    if not (splits or ids) or len(kinds) != count:
        raise ModelError(f"rows told by {' '.join(kinds[:9])}")
    return kinds


def custom_partition_kinds(op: View) -> list[str]:
    """As `partition_kinds`, of TFLite's custom operator."""
    told = op.options.get("row_partition_types") if isinstance(op.options, Mapping) else None
    if not isinstance(told, Sequence) or isinstance(told, (str, bytes)):
        raise ModelError(f"{op.label}: option 'row_partition_types' is {told!r}, expected texts")
    return partition_kinds(told, len(op.inputs) - _FIRST_PARTITION)


@rule("RaggedTensorToTensor")
def dense(op: View) -> Shapes:
    """[rows, widths...] of a list of values."""
    kinds = custom_partition_kinds(op)
    return (unknown_shape(len(kinds) + (kinds[0] == "ROW_SPLITS")),)


@rule("TFText>Utf8Binarize")
def bits(op: View) -> Shapes:
    """The bits of all characters of each text."""
    options = map_options(op, BinarizeOptions)
    count = max(options.word_length, 0) * max(options.bits_per_char, 0)
    return ((*op["input_tokens"].shape, count),)


@rule("TFText>NgramsStringJoin")
def ngrams(op: View) -> Shapes | None:
    """A shorter last dimension; or a list, and splits as they were."""
    values, *splits = op.present_inputs()
    if splits:
        return (unknown_size(),), *(tensor.shape for tensor in splits)
    if not values.shape:
        return None
    *rest, last = values.shape
    width = map_options(op, NgramsOptions).width
    return ((*rest, max(0, last - width + 1) if is_known(last) else last),)
