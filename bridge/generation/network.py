"""The network of a language model: tokens in, logits out, caches inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import Bundle, Entry
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.metadata import LanguageMetadata
from tflite_ort.generation.signature_roles import (
    EMBEDDINGS,
    LOCAL_MASK,
    LOGITS,
    MASK,
    PER_LAYER,
    TOKENS,
    Step,
    caches_of,
    filled,
)
from tflite_ort.interpreter.interpreter import Interpreter

# Embeddings of tokens that a bundle has in a model of their own.


class Embedder:
    """Looks tokens up.

    Args:
        interpreter: of a model whose signatures take so many tokens each and return their rows.

    Raises:
        GenerationError: a signature has another number of inputs or outputs than one, or takes no
            tokens.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._by_length: dict[int, tuple[str, Any, Any]] = {}
        for key, names in interpreter.get_signature_list().items():
            if len(names["inputs"]) != 1 or len(names["outputs"]) != 1:
                raise GenerationError(f"the embedder's signature {key!r} has {names}")
            runner = interpreter.get_signature_runner(key)
            ((name, detail),) = runner.get_input_details().items()
            length, dtype = int(np.prod(detail["shape"])), np.dtype(detail["dtype"])
            if length < 1 or dtype.kind not in "iuf":
                raise GenerationError(
                    f"the embedder's signature {key!r} takes {length} tokens of {dtype}"
                )
            self._by_length[length] = name, runner, detail
        if not self._by_length:
            raise GenerationError("the embedder has no signature")

    def rows(self, tokens: Sequence[int], length: int) -> Array:
        """The embeddings [length, ...] of tokens; those of token 0 behind them."""
        wanted = [*map(int, tokens), *[0] * (length - len(tokens))]
        size = max((n for n in self._by_length if n <= length), default=min(self._by_length))
        rows = [self._looked_up(wanted[at : at + size], size) for at in range(0, length, size)]
        return np.concatenate(rows)[:length]

    def _looked_up(self, tokens: Sequence[int], size: int) -> Array:
        name, runner, detail = self._by_length[size]
        (result,) = runner(**{name: filled(detail, tokens)}).values()
        return np.asarray(result).reshape(size, -1)


Array = npt.NDArray[Any]
Names = Mapping[str, Mapping[str, Sequence[str]]]

# By role, what the model is called in the bundle that makes these inputs.
_EMBEDDERS = {EMBEDDINGS: "embedder", PER_LAYER: "per_layer_embedder"}
# Steps of one token take less time than a step of so many times as many places, mostly empty.
_WORTH_PADDING = 8


class Network:
    """A network that reads tokens one after the other.

    Args:
        source: of the bundle: a path or the bytes.
        bundle: the same, opened.
        metadata: what it says.
        cache_length: of the signatures, where there are several sizes of caches; None for the
            longest.
        choices: of `Interpreter`.

    Attributes:
        capacity: how many tokens it reads at most.
        read: how many it has read.

    Raises:
        GenerationError: there is no model in it that generates, or not of the known kind.
        BridgeError: as `Interpreter`.
    """

    def __init__(
        self,
        source: Any,
        bundle: Bundle,
        metadata: LanguageMetadata,
        cache_length: int | None = None,
        **choices: Any,
    ) -> None:
        self._open = partial(_opened, source, choices)
        self._interpreter, keys, caches = self._main(bundle, metadata, cache_length)
        steps = [
            Step.of(key, self._interpreter.get_signature_runner(key, keep=caches[key]), caches[key])
            for key in keys
        ]
        self._decode = steps[0]
        self._prefills = sorted(steps[1:], key=lambda step: -step.length)
        self._window = metadata.window
        self._embedders = self._all_embedders(bundle)
        self._fixed = _has_fixed_states(caches[keys[0]], metadata)
        self.capacity = self._found_capacity(metadata)
        self.read = 0
        self._is_within_step = False

    def reset(self) -> None:
        """Forget what was read."""
        for array in self._decode.runner.kept.values():
            array[...] = np.zeros((), array.dtype)
        self.read = 0
        self._is_within_step = False

    def rewind(self, count: int) -> bool:
        """Go back to when it had read so many tokens; False where that is not possible. A state
        without a place for each token is lost by going back, and by a step that was interrupted."""
        if count > self.read or (self._fixed and (count < self.read or self._is_within_step)):
            return False
        self.read = count
        return True

    def prepare(self, count: int) -> None:
        """Make the sessions ready that read the next `count` tokens."""
        for step, _ in self._steps(count):
            _ = step.runner.kept

    def prefill(self, tokens: Sequence[int]) -> None:
        """Read tokens whose logits nobody needs.

        Raises:
            GenerationError: they do not fit.
        """
        at = 0
        for step, count in list(self._steps(len(tokens))):
            self._run(step, tokens[at : at + count])
            at += count

    def logits(self, token: int) -> Array:
        """Read a token: the logits float32 [vocabulary] of the one that follows.

        Raises:
            GenerationError: it does not fit.
        """
        return self._run(self._decode, [token])[LOGITS].reshape(-1)

    def _steps(self, count: int) -> Iterator[tuple[Step, int]]:
        """The signatures that read the next `count` tokens, and how many each of them reads."""
        at, end = self.read, self.read + count
        while at < end:
            step = self._step_for(at, end - at)
            taken = min(step.length, end - at)
            yield step, taken
            at += taken

    def _step_for(self, at: int, count: int) -> Step:
        """The signature that reads the next of `count` tokens from a position on.

        It may write more places than it reads tokens. What is written behind them is hidden until
        other tokens are written there, but has to fit.
        """
        fit = [step for step in self._prefills if at + step.length <= self.capacity]
        whole = [step for step in fit if step.length <= count]
        if whole:
            return whole[0]
        if fit and not self._fixed and count * _WORTH_PADDING >= fit[-1].length:
            return fit[-1]
        return self._decode

    def _run(self, step: Step, tokens: Sequence[int]) -> dict[str, Array]:
        if self.read + len(tokens) > self.capacity:
            raise GenerationError(f"the model's caches hold {self.capacity} tokens")
        arrays = step.arrays(self.read, len(tokens), self._window)
        if TOKENS in step.inputs:
            arrays[step.inputs[TOKENS]] = filled(step.details[TOKENS], tokens)
        for role, embedder in self._embedders.items():
            rows, detail = embedder.rows(tokens, step.length), step.details[role]
            if rows.size != np.prod(detail["shape"]):
                raise GenerationError(f"the {role} have shape {rows.shape}, not {detail['shape']}")
            arrays[step.inputs[role]] = rows.reshape(detail["shape"]).astype(detail["dtype"])
        self._is_within_step = True
        results: dict[str, Array] = step.runner(**arrays)
        self.read += len(tokens)
        self._is_within_step = False
        return results

    def _main(
        self, bundle: Bundle, metadata: LanguageMetadata, cache_length: int | None
    ) -> tuple[Interpreter, list[str], dict[str, dict[str, str]]]:
        """The model that decodes, its signatures with the one that decodes first, and by signature
        its caches."""
        for entry in bundle.models:
            interpreter = self._open(entry)
            names = interpreter.get_signature_list()
            decodes = [
                key for key in names if key.startswith("decode") and LOGITS in _out(names, key)
            ]
            if not decodes:
                continue
            caches = caches_of(names, metadata)
            found = {key: _shapes(interpreter, key, caches) for key in decodes}
            decode = _of_length(found, metadata, cache_length)
            keys = [
                key
                for key in names
                if key.startswith("prefill") and _shapes(interpreter, key, caches) == found[decode]
            ]
            return interpreter, [decode, *keys], caches
        models = ", ".join(entry.name for entry in bundle.models) or "nothing"
        raise GenerationError(f"no model in the bundle has a signature that decodes: {models}")

    def _all_embedders(self, bundle: Bundle) -> dict[str, Embedder]:
        """The embedders of the inputs that are no tokens, by role."""
        found = {}
        for role, name in _EMBEDDERS.items():
            if role in self._decode.inputs:
                entries = [entry for entry in bundle.models if entry.stem == name]
                if len(entries) != 1:
                    raise GenerationError(f"the bundle has {len(entries)} models called {name!r}")
                found[role] = Embedder(self._open(entries[0]))
        return found

    def _found_capacity(self, metadata: LanguageMetadata) -> int:
        """How many tokens the caches hold, as the mask, a cache or the metadata says."""
        details, sizes = self._decode.details, []
        if MASK in details:
            sizes.append(int(details[MASK]["shape"][-1]))
        kept = self._decode.runner.kept
        for state in metadata.states:
            array = kept.get(state.names[0])
            if array is not None and state.axis is not None and 0 <= state.axis < array.ndim:
                sizes.append(array.shape[state.axis])
        if metadata.most_tokens > 0:
            sizes.append(metadata.most_tokens)
        if not sizes:
            raise GenerationError("nothing says how many tokens the model's caches hold")
        if LOCAL_MASK in details and not self._window:
            raise GenerationError("nothing says how wide the model's local attention is")
        if LOCAL_MASK in details and details[LOCAL_MASK]["shape"][-1] < min(sizes):
            raise GenerationError("caches that are written round are not supported")
        return min(sizes)


def _opened(source: Any, choices: Mapping[str, Any], entry: Entry) -> Interpreter:
    is_content = isinstance(source, (bytes, bytearray, memoryview))
    place = {"model_content" if is_content else "model_path": source}
    return Interpreter(**place, model=entry.name, **choices)


def _out(names: Names, key: str) -> Sequence[str]:
    return names[key]["outputs"]


def _shapes(
    interpreter: Interpreter, key: str, caches: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[int, ...]]:
    details = interpreter.get_signature_runner(key).get_input_details()
    return {name: tuple(details[name]["shape"]) for name in caches[key]}


def _of_length(
    shapes: Mapping[str, Mapping[str, tuple[int, ...]]],
    metadata: LanguageMetadata,
    cache_length: int | None,
) -> str:
    """The signature with caches of this length, or with the largest ones.

    Args:
        shapes: of the caches, by signature.
    """
    if cache_length is None:
        return max(shapes, key=lambda key: sum(map(_product, shapes[key].values())))
    axes = {name: state.axis for state in metadata.states for name in state.names}
    lengths = {key: _told(each, axes) or _own_sizes(key, shapes) for key, each in shapes.items()}
    fitting = [key for key, found in lengths.items() if cache_length in found]
    if not fitting:
        there = ", ".join(map(str, sorted({size for found in lengths.values() for size in found})))
        raise GenerationError(
            f"no signature has caches of {cache_length} tokens; there are {there}"
        )
    return fitting[0]


def _told(shapes: Mapping[str, tuple[int, ...]], axes: Mapping[str, int | None]) -> set[int]:
    """The sizes of the axes of which the metadata say that they are those of the tokens."""
    return {
        shape[axis]
        for name, shape in shapes.items()
        if (axis := axes.get(name)) is not None and 0 <= axis < len(shape)
    }


def _own_sizes(key: str, shapes: Mapping[str, Mapping[str, tuple[int, ...]]]) -> set[int]:
    """The sizes of a signature's caches in which it differs from other signatures; of the only
    signature all."""
    found = set[int]()
    for name, shape in shapes[key].items():
        others = [each[name] for other, each in shapes.items() if other != key and name in each]
        for axis, size in enumerate(shape):
            if not others or any(other[axis : axis + 1] != (size,) for other in others):
                found.add(size)
    return found


def _product(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _has_fixed_states(caches: Mapping[str, str], metadata: LanguageMetadata) -> bool:
    """Whether a cache has no place for each token, so that every token read changes all of it."""
    axes = {state.names[0]: state.axis for state in metadata.states}
    return any(axes.get(name, 0) is None for name in caches)
