"""Shape rules of TensorFlow's CTC decoders."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, of_rank
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import common, differ, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def _batch(op: View) -> int:
    _, batch, _ = of_rank(op, "inputs", 3)
    (lengths,) = of_rank(op, "sequence_length", 1)
    if differ((batch,), (lengths,)):
        raise ModelError(f"{op.label}: {lengths} lengths of {batch} sequences")
    return common(batch, lengths)


@flex_rule("CTCGreedyDecoder")
def greedy(op: View) -> Shapes:
    """Places [found, 2], labels [found], the size [2], and a score for each sequence."""
    batch, found = _batch(op), unknown_size()
    return (found, 2), (found,), (2,), (batch, 1)


@flex_rule("CTCBeamSearchDecoder")
def beam_search(op: View) -> Shapes:
    """As of the greedy decoder, of each of the best paths."""
    batch, paths = _batch(op), node_of(op)["top_paths"]
    found = [unknown_size() for _ in range(paths)]
    places = [(each, 2) for each in found]
    return (*places, *((each,) for each in found), *[(2,)] * paths, (batch, paths))
