"""Shape rules of tf.text's operators on sequences."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule, of_rank
from tflite_ort.schema.shapes.tokenizers import lists, ngrams
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

flex_rule("ConstrainedSequence", "TFText>RoundRobinGenerateMasks", "TFText>RoundRobinTrim")(lists)
flex_rule("TFText>NgramsStringJoin")(ngrams)


@flex_rule("MaxSpanningTree")
def max_spanning_tree(op: View) -> Shapes:
    """A sum, and a row of nodes, for each graph."""
    batch, size, _ = of_rank(op, "scores", 3)
    return (batch,), (batch, size)


@flex_rule("RougeL")
def rouge_l(op: View) -> Shapes:
    """Three numbers for each row."""
    (count,) = of_rank(op, "hyp_splits", 1)
    return ((count - 1 if is_known(count) else unknown_size(),),) * 3
