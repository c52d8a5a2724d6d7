"""tf.text's operators that split texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import OperatorView

View = OperatorView[Any]

# Unicode's property White_Space.
WHITE_SPACE = frozenset(
    {
        *(*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680),
        *(*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    }
)


@flex_kernel("WhitespaceTokenizeWithOffsets")
def whitespace_tokenize_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """Splits texts into words.

    Returns:
        the characters of words, the splits of words, the first byte and the end of every word in
        its text, and the splits of texts into words.
    """
    characters, splits = inputs
    check_splits(splits, characters)
    kept, words, starts, ends, texts = [], [0], [], [], [0]
    for start, end in pairwise(splits.tolist()):
        for first, last in _words(characters[start:end].tolist()):
            kept.append(characters[start + first : start + last])
            words.append(words[-1] + last - first)
            starts.append(first)
            ends.append(last)
        texts.append(len(starts))
    outputs = (np.concatenate([np.empty(0, np.int32), *kept]), words, starts, ends, texts)
    return tuple(
        np.asarray(values, tensor.dtype) for values, tensor in zip(outputs, op.outputs, strict=True)
    )


def _words(text: list[int]) -> Iterator[tuple[int, int]]:
    """(first, end) of all runs of characters that are not white space."""
    start = None
    for at, character in enumerate([*text, 0x20]):
        if character not in WHITE_SPACE:
            start = at if start is None else start
        elif start is not None:
            yield start, at
            start = None
