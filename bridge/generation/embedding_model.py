"""`EmbeddingModel`: texts as vectors, by a text encoder and its tokenizer."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from tflite_ort.prediction.row_model import RowModel
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import Budgets

Array = npt.NDArray[Any]
Pooling = Literal["output", "mean", "first"]

# Of the models in a bundle, what the names have in them.
_ENCODER, _EMBEDDER = "text_encoder", "embedder"
_EMBEDDED = "embedded"
_WHOLE = (np.int32, np.int64)
_POOLINGS = ("output", "mean", "first")


class EmbeddingModel:
    """Makes vectors of texts, whose products are cosines.

    Args:
        model: a ``.tflite`` text encoder, or a ``.litertlm`` bundle that holds one, whose inputs
            are the numbers of tokens, a mask, and the numbers of segments, or the first alone.
            Where it takes vectors of tokens, the bundle holds a model that makes them.
        tokenizer: a ``tokenizer.json`` or a SentencePiece model; default: the one in the bundle.
        pooling: which vector is taken: ``output``, the one that the model gives for a text;
            ``mean`` or ``first`` of those that it gives for tokens. None: the only one that can be.
        hybrid: as of `Interpreter`; by default vectors do not depend on how many texts there are.
        providers, precision, num_threads, cache, budgets: as of `Interpreter`.

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
        hybrid: str = "float",
        cache: CacheChoice | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        if pooling is not None and pooling not in _POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(_POOLINGS)}, got {pooling!r}")
        opened = open_bundle(model, budgets=budgets)
        self._tokens = _reader(opened, tokenizer, budgets)
        arguments: dict[str, Any] = {
            "providers": providers,
            "precision": precision,
            "hybrid": hybrid,
            "cache": cache,
            "budgets": budgets,
        }
        content = opened.model_content(_encoder(opened))
        self._interpreter = Interpreter(model_content=content, num_threads=num_threads, **arguments)
        inputs = self._interpreter.get_input_details()
        self._roles = _roles(inputs)
        self._embedder: RowModel | None = None
        if _EMBEDDED in self._roles:
            embedder = opened.model_content(_named(opened, _EMBEDDER))
            self._embedder = _embedder(embedder, num_threads, arguments)
        outputs = self._interpreter.get_output_details()
        self._output, self._pooling = _vector(outputs, pooling)
        self._place = next(at for at, each in enumerate(outputs) if each is self._output)
        size = int(inputs[0]["shape_signature"][1])
        self._longest = size if size >= 0 else None
        # Of several texts; made when they come.
        self._batches: RowModel | None = None
        self._make_batches = partial(RowModel, content, None, num_threads, arguments)
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
        """The vectors of texts, float32 [N, D]; of one text [D]. Several texts run in batches.

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
        ids = [self._tokens(text, self._longest) for text in texts]
        width = int(self._output["shape"][-1])
        vectors = self._vectors(ids) if ids else np.zeros((0, width), np.float32)
        if dimensions is not None and not 1 <= dimensions <= vectors.shape[1]:
            raise ValueError(f"dimensions must be 1 to {vectors.shape[1]}, got {dimensions}")
        vectors = vectors[:, :dimensions]
        if not normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Array = vectors / np.where(lengths > 0, lengths, 1)
        return unit

    def _vectors(self, ids: Sequence[Sequence[int]]) -> Array:
        """The vectors of texts, given their tokens."""
        if len(ids) == 1 or self._longest is None:
            return np.concatenate([self._one(each) for each in ids])
        with self._lock:
            self._batches = self._batches or self._make_batches()
        made = self._batches.run(self._inputs_of(ids, self._longest))[self._place]
        return self._pooled(made, [len(each) for each in ids])

    def _one(self, ids: Sequence[int]) -> Array:
        """The vector of a text [1, D], by an interpreter that uses all threads."""
        size = len(ids) if self._longest is None else self._longest
        columns = self._inputs_of([ids], size)
        with self._lock:
            for details, column in zip(self._roles.values(), columns, strict=True):
                if self._longest is None:
                    self._interpreter.resize_tensor_input(details["index"], column.shape)
            self._interpreter.allocate_tensors()
            for details, column in zip(self._roles.values(), columns, strict=True):
                self._interpreter.set_tensor(details["index"], column)
            self._interpreter.invoke()
            made = self._interpreter.get_tensor(self._output["index"])
        return self._pooled(made, [len(ids)])

    def _inputs_of(self, ids: Sequence[Sequence[int]], size: int) -> list[Array]:
        """The inputs [N, size, ...] in the order of the model, filled up with zeros."""
        rows = np.zeros((len(ids), size), np.int64)
        mask = np.zeros((len(ids), size), bool)
        for row, seen, each in zip(rows, mask, ids, strict=True):
            row[: len(each)], seen[: len(each)] = each, True
        made = {"ids": rows, "mask": mask, "segments": np.zeros_like(rows)}
        if self._embedder is not None:
            made[_EMBEDDED] = self._embedded(rows)
        return [made[role].astype(each["dtype"]) for role, each in self._roles.items()]

    def _embedded(self, rows: Array) -> Array:
        """The vectors of tokens [N, size], by the model that makes them."""
        assert self._embedder is not None
        (column,) = self._embedder.inputs
        sizes = [size if size >= 0 else rows.shape[1] for size in column.row]
        at_once = max(math.prod(sizes), 1)
        flat = np.zeros(-(-rows.size // at_once) * at_once, column.details["dtype"])
        flat[: rows.size] = rows.reshape(-1)
        (made,) = self._embedder.run([flat.reshape(-1, *sizes)])
        vectors: Array = made.reshape(flat.size, -1)[: rows.size].reshape(*rows.shape, -1)
        return vectors

    def _pooled(self, made: Array, counts: Sequence[int]) -> Array:
        """The vectors of texts out of an output [N, ...], as real numbers."""
        scale, zero_point = self._output["quantization"]
        values = made.astype(np.float32)
        values = (values - np.float32(zero_point)) * np.float32(scale) if scale else values
        if self._pooling == "first":
            values = values[:, 0]
        elif self._pooling == "mean":
            each = [row[:count].mean(axis=0) for row, count in zip(values, counts, strict=True)]
            values = np.stack(each)
        return np.asarray(values.reshape(len(counts), -1), np.float32)


def _encoder(bundle: Bundle) -> str | None:
    """The name of the text encoder; None of the only model."""
    return None if len(bundle.models) < 2 else _named(bundle, _ENCODER)


def _named(bundle: Bundle, wanted: str) -> str:
    """The name of the only model whose name has this in it."""
    names = [entry.name for entry in bundle.models if wanted in entry.name]
    if len(names) != 1:
        listed = ", ".join(entry.name for entry in bundle.models)
        raise GenerationError(f"the bundle has no {wanted} but {listed}")
    return names[0]


def _embedder(content: Any, threads: int | None, arguments: Mapping[str, Any]) -> RowModel:
    """A model that makes vectors of tokens."""
    made = RowModel(content, None, threads, arguments)
    given, found = made.inputs, made.outputs
    if len(given) != 1 or len(found) != 1 or given[0].details["dtype"] not in _WHOLE:
        raise GenerationError(
            f"the model for single tokens has {len(given)} inputs and {len(found)} outputs, "
            "expected one of whole numbers and one of vectors"
        )
    return made


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
    """What each input is, in the order of the model: the numbers of tokens or vectors of them, the
    mask, or the numbers of segments."""
    found = dict[str, dict[str, Any]]()
    for each in inputs:
        name, kind, axes = each["name"].lower(), np.dtype(each["dtype"]).kind, len(each["shape"])
        role = "mask" if "mask" in name else "segments" if _segments(name) else "ids"
        if role == "ids" and kind == "f" and axes == 3:
            role = _EMBEDDED
        fits = role == _EMBEDDED or (axes == 2 and kind in "iub")
        if role in found or not fits or each["shape"][0] != 1:
            raise GenerationError(
                f"the model's input {each['name']!r} is no row of tokens, nor a mask or segments "
                "of one: it is no text encoder that is known here"
            )
        found[role] = each
    if ("ids" in found) == (_EMBEDDED in found):
        raise GenerationError("the model has no input for the numbers of tokens, or two of them")
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
