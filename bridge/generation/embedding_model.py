"""`EmbeddingModel`: texts as vectors, by a text encoder and its tokenizer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.bundles.bundle import Source
from tflite_ort.cache.choice import CacheChoice
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.metadata import embedding_ends
from tflite_ort.generation.vocabulary import Vocabulary, vocabulary_of
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import Budgets

Array = npt.NDArray[Any]
Pooling = Literal["output", "mean", "first"]

_ENCODER = "text_encoder"
_POOLINGS = ("output", "mean", "first")


class EmbeddingModel:
    """Makes vectors of texts, whose products are cosines.

    Args:
        model: a ``.tflite`` text encoder, or a ``.litertlm`` bundle that holds one, whose inputs
            are the numbers of tokens, a mask, and the numbers of segments, or the first alone.
        tokenizer: a ``tokenizer.json`` or a SentencePiece model; default: the one in the bundle.
        pooling: which vector is taken: ``output``, the one that the model gives for a text;
            ``mean`` or ``first`` of those that it gives for tokens. None: the only one that can be.
        providers, precision, num_threads, hybrid, cache, budgets: as of `Interpreter`.

    Raises:
        GenerationError: the model is no such encoder, nothing tells which vector is meant, or there
            is no tokenizer.
        BridgeError: it cannot be read or run.

    Example:
        >>> model = EmbeddingModel("embeddinggemma.tflite", "sentencepiece.model")  # doctest: +SKIP
        >>> near = model(["a cat", "a kitten"], dimensions=256)                     # doctest: +SKIP
        >>> float(near[0] @ near[1])                                                # doctest: +SKIP
        0.87
    """

    def __init__(
        self,
        model: Source,
        tokenizer: str | os.PathLike[str] | None = None,
        *,
        pooling: Pooling | None = None,
        providers: ProviderChoices | None = None,
        precision: str = FULL_PRECISION,
        num_threads: int | None = None,
        hybrid: str = "auto",
        cache: CacheChoice | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        if pooling is not None and pooling not in _POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(_POOLINGS)}, got {pooling!r}")
        opened = open_bundle(model, budgets=budgets)
        self._tokens = _reader(opened, tokenizer, budgets)
        self._interpreter = Interpreter(
            model_content=opened.model_content(_encoder(opened)),
            providers=providers,
            precision=precision,
            num_threads=num_threads,
            hybrid=hybrid,
            cache=cache,
            budgets=budgets,
        )
        self._roles = _roles(self._interpreter.get_input_details())
        self._output, self._pooling = _vector(self._interpreter.get_output_details(), pooling)
        signature = self._roles["ids"]["shape_signature"]
        self._longest = int(signature[-1]) if signature[-1] >= 0 else None
        self._lock = threading.Lock()

    @overload
    def __call__(
        self, texts: str, *, dimensions: int | None = None, normalize: bool = True
    ) -> Array: ...

    @overload
    def __call__(
        self, texts: Sequence[str], *, dimensions: int | None = None, normalize: bool = True
    ) -> Array: ...

    def __call__(
        self, texts: str | Sequence[str], *, dimensions: int | None = None, normalize: bool = True
    ) -> Array:
        """The vectors of texts, float32 [N, D]; of one text [D].

        Args:
            texts: what is too long for the model is cut off.
            dimensions: how many numbers of each vector are kept, the first ones, as models allow
                that were trained for it (Matryoshka); None keeps all.
            normalize: make each vector 1 long.

        Raises:
            ValueError: there are not so many dimensions.
            GenerationError: the tokenizer fails.
            BridgeError: the model fails.
        """
        if isinstance(texts, str):
            vector: Array = self([texts], dimensions=dimensions, normalize=normalize)[0]
            return vector
        found = [self._one(text) for text in texts]
        width = int(self._output["shape"][-1])
        vectors = np.stack(found) if found else np.zeros((0, width), np.float32)
        if dimensions is not None and not 1 <= dimensions <= vectors.shape[1]:
            raise ValueError(f"dimensions must be 1 to {vectors.shape[1]}, got {dimensions}")
        vectors = vectors[:, :dimensions]
        if not normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Array = vectors / np.where(lengths > 0, lengths, 1)
        return unit

    def _one(self, text: str) -> Array:
        ids = self._tokens(text, self._longest)
        size = len(ids) if self._longest is None else self._longest
        rows = {"ids": ids, "mask": [1] * len(ids), "segments": []}
        with self._lock:
            for details in self._roles.values():
                if self._longest is None:
                    self._interpreter.resize_tensor_input(details["index"], (1, size))
            self._interpreter.allocate_tensors()
            for role, details in self._roles.items():
                row = np.zeros((1, size), details["dtype"])
                row[0, : len(rows[role])] = rows[role]
                self._interpreter.set_tensor(details["index"], row)
            self._interpreter.invoke()
            made = self._interpreter.get_tensor(self._output["index"])
        scale, zero_point = self._output["quantization"]
        values = made.astype(np.float32)
        values = (values - np.float32(zero_point)) * np.float32(scale) if scale else values
        if self._pooling == "first":
            values = values[:, 0]
        elif self._pooling == "mean":
            values = values[:, : len(ids)].mean(axis=1)
        return np.asarray(values.reshape(-1), np.float32)


def _encoder(bundle: Bundle) -> str | None:
    """The name of the text encoder; None of the only model."""
    if len(bundle.models) < 2:
        return None
    names = [entry.name for entry in bundle.models if _ENCODER in entry.name]
    if len(names) != 1:
        listed = ", ".join(entry.name for entry in bundle.models)
        raise GenerationError(f"the bundle has no {_ENCODER} but {listed}")
    return names[0]


def _reader(
    bundle: Bundle, tokenizer: str | os.PathLike[str] | None, budgets: Budgets | None
) -> Callable[[str, int | None], Sequence[int]]:
    """What makes numbers of a text, at most so many."""
    start: Sequence[int] | None = None
    if tokenizer is None:
        vocabulary = vocabulary_of(bundle, budgets)
        start, end = embedding_ends(bundle, vocabulary.tokens)
    else:
        library = "tokenizers" if PurePath(tokenizer).suffix == ".json" else "sentencepiece"
        with open(tokenizer, "rb") as stream:
            vocabulary = Vocabulary(library, stream.read())
        vocabulary.ready()

    def numbers(text: str, most: int | None) -> Sequence[int]:
        inner = vocabulary.tokens(text)
        whole = vocabulary.whole(text) if start is None else (*start, *inner, *end)
        if most is None or len(whole) <= most:
            return whole
        # What stands behind the text stays behind it.
        behind = len(whole) - len(inner) - _common(whole, inner)
        last = whole[len(whole) - behind :] if 0 < behind < most else ()
        return (*whole[: most - len(last)], *last)

    return numbers


def _common(whole: Sequence[int], inner: Sequence[int]) -> int:
    """How many numbers stand before the text."""
    places = range(len(whole) - len(inner) + 1)
    return next((at for at in places if tuple(whole[at:][: len(inner)]) == tuple(inner)), 0)


def _roles(inputs: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What each input is: the numbers of tokens, the mask, or the numbers of segments."""
    found = dict[str, dict[str, Any]]()
    for each in inputs:
        name = each["name"].lower()
        role = "mask" if "mask" in name else "segments" if _segments(name) else "ids"
        whole = np.dtype(each["dtype"]).kind in "iub"
        if role in found or len(each["shape"]) != 2 or not whole or each["shape"][0] != 1:
            raise GenerationError(
                f"the model's input {each['name']!r} is no row of numbers of tokens, nor a mask or "
                "segments of one: it is no text encoder that is known here"
            )
        found[role] = each
    if "ids" not in found:
        raise GenerationError("the model has no input for the numbers of tokens")
    return found


def _segments(name: str) -> bool:
    return "segment" in name or "type" in name


def _vector(
    outputs: Sequence[dict[str, Any]], pooling: Pooling | None
) -> tuple[dict[str, Any], Pooling]:
    """The output that is taken, and what is taken of it."""
    whole = [each for each in outputs if len(each["shape"]) == 2]
    by_token = [each for each in outputs if len(each["shape"]) == 3]
    among = whole if pooling == "output" else by_token if pooling else [*whole, *by_token]
    if len(among) != 1 or (pooling is None and by_token):
        listed = ", ".join(f"{each['name']} {each['shape'].tolist()}" for each in outputs)
        raise GenerationError(
            f"of the model's outputs ({listed}) "
            + ("none is" if not among else "several may be")
            + " the vector of a text: pooling='output' takes the one for the text, 'mean' and "
            "'first' take those of its tokens"
        )
    return among[0], pooling or "output"
