"""Shape rules of TensorFlow's tokenizers."""

from __future__ import annotations

from tflite_ort.schema.shapes.registry import flex_rule
from tflite_ort.schema.shapes.tokenizers import lists

flex_rule(
    "FastWordpieceTokenizeWithOffsets",
    "RegexSplitWithOffsets",
    "SentenceFragments",
    "SplitMergeTokenizeWithOffsets",
    "TFText>FastWordpieceDetokenize",
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "TokenizerFromLogits",
    "UnicodeScriptTokenizeWithOffsets",
    "WhitespaceTokenizeWithOffsets",
    "WordpieceTokenizeWithOffsets",
)(lists)
