"""SentencePiece's operators. The first input is the model, in the place of its handle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.idioms.sentencepieces import (
    Around,
    Piece,
    Sentencepieces,
    model_of,
)
from tflite_ort.fallback_kernels.idioms.texts import text_array
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.fallback_kernels.tokenizers import texts_of
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


class _Held:
    """The model that an operator asks."""

    def __init__(self, op: View) -> None:
        self._content: Array | None = None
        self._model: Sentencepieces | None = None

    def of(self, content: Array) -> Sentencepieces:
        """The model in an array, as long as it is the same one.

        Raises:
            KernelError: it is a handle, since two models could be meant.
        """
        if content.dtype != np.uint8:
            raise KernelError("which model of SentencePiece it asks is not known before the run")
        if self._model is None or content is not self._content:
            self._model, self._content = model_of(content.tobytes()), content
        return self._model


@flex_kernel("SentencepieceOp")
def handle(op: View, inputs: Inputs, state: State) -> Outputs:
    """A number that nothing reads."""
    return (np.zeros((), op.output.dtype),)


@flex_kernel("SentencepieceTokenizeOp", "SentencepieceTokenizeWithOffsetsOp", state=_Held)
def tokenize(op: View, inputs: Inputs, state: State) -> Outputs:
    """(pieces or their numbers, splits, the first byte and the end of each) of texts."""
    content, texts, sizes, alphas, *flags = inputs
    model, around = state.of(content), _around(flags)
    given = texts_of(texts, bytes)
    if node_of(op)["return_nbest"]:
        if sizes.ndim or sizes < 1:
            raise KernelError(f"nbest_size is {sizes}, expected one number from 1 on")
        rows = model.best_pieces(given, int(sizes), around)
    else:
        rows = model.pieces(given, _drawn(sizes, alphas, len(given)), around)
    flat = [piece for row in rows for piece in row]
    values, splits, *places = op.outputs
    names = values.dtype.hasobject
    first = (
        text_array([p.piece for p in flat]) if names else np.array([p.id for p in flat], np.int32)
    )
    bounds = np.cumsum([0, *map(len, rows)], dtype=splits.dtype)
    return first, bounds, *_places(flat)[: len(places)]


def _places(pieces: Sequence[Piece]) -> tuple[Array, Array]:
    ends = [(piece.start, piece.end) for piece in pieces]
    columns = np.array(ends, np.int64).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


def _drawn(sizes: Array, alphas: Array, count: int) -> list[tuple[int, float] | None]:
    """Of how many ways the pieces of each text are drawn, and the exponent; None for the best."""
    try:
        ways = np.broadcast_to(sizes, (count,)).tolist()
        exponents = np.broadcast_to(alphas, (count,)).tolist()
    except ValueError:
        shapes = f"{list(sizes.shape)} and {list(alphas.shape)}"
        raise KernelError(f"nbest_size and alpha have shapes {shapes} for {count} texts") from None
    pairs = zip(ways, exponents, strict=True)
    return [None if way in (0, 1) else (way, exponent) for way, exponent in pairs]


def _around(flags: Sequence[Array]) -> Around:
    if any(flag.ndim for flag in flags):
        raise KernelError("add_bos, add_eos or reverse is no scalar")
    return Around(*map(bool, flags))


@flex_kernel("SentencepieceDetokenizeOp", state=_Held)
def detokenize(op: View, inputs: Inputs, state: State) -> Outputs:
    """The text of each row of pieces, or of their numbers."""
    content, values, splits, *flags = inputs
    check_splits(splits, values)
    given = texts_of(values, bytes) if values.dtype.hasobject else values.tolist()
    rows = [given[a:b] for a, b in pairwise(splits.tolist())]
    return (text_array(state.of(content).texts(rows, _around(flags))),)


@flex_kernel("SentencepieceVocabSizeOp", state=_Held)
def vocab_size(op: View, inputs: Inputs, state: State) -> Outputs:
    """How many pieces there are."""
    return (np.array(state.of(inputs[0]).size, np.int32),)


@flex_kernel("SentencepieceIdToStringOp", state=_Held)
def id_to_string(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pieces of numbers."""
    names = state.of(inputs[0]).names(inputs[1].reshape(-1).tolist())
    return (text_array(names).reshape(inputs[1].shape),)


@flex_kernel("SentencepieceStringToIdOp", state=_Held)
def string_to_id(op: View, inputs: Inputs, state: State) -> Outputs:
    """The numbers of pieces."""
    numbers = state.of(inputs[0]).numbers(texts_of(inputs[1], bytes))
    return (np.array(numbers, np.int32).reshape(inputs[1].shape),)


refuse_rest("sentencepiece")
