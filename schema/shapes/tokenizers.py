"""Shape rules of tf.text's operators that TFLite models have as custom operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, rule
from tflite_ort.schema.values.sizes import is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import BinarizeOptions, NgramsOptions, map_options

View = OperatorView[Any]


@rule(
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "FastWordpieceTokenizeWithOffsets",
    "TFText>ByteSplitByOffsets",
    "TFText>ByteSplitWithOffsets",
    "TFText>FastWordpieceDetokenize",
    "TFText>RoundRobinGenerateMasks",
    "TFText>RoundRobinTrim",
    "FastBertNormalize",
)
def lists(op: View) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)


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
