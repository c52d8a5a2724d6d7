"""Shape rules of TensorFlow's tokenizers."""

from __future__ import annotations

from tflite_ort.schema.shapes.registry import flex_rule
from tflite_ort.schema.shapes.tokenizers import bits, lists

flex_rule(
    "FastWordpieceTokenizeWithOffsets",
    "RegexSplitWithOffsets",
    "SentenceFragments",
    "SplitMergeTokenizeWithOffsets",
    "TFText>ByteSplitByOffsets",
    "TFText>ByteSplitWithOffsets",
    "TFText>FastSentencepieceDetokenize",
    "TFText>FastSentencepieceTokenize",
    "TFText>FastWordpieceDetokenize",
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "TokenizerFromLogits",
    "UnicodeScriptTokenizeWithOffsets",
    "WhitespaceTokenizeWithOffsets",
    "WordpieceTokenizeWithOffsets",
)(lists)
flex_rule("TFText>Utf8Binarize")(bits)
