"""What the inputs of a language model's signatures are, told by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.metadata import LanguageMetadata
from tflite_ort.interpreter.signatures import SignatureRunner

Array = npt.NDArray[Any]
Detail = Mapping[str, Any]

TOKENS, POSITIONS, MASK, LOCAL_MASK = "tokens", "positions", "mask", "local mask"
EMBEDDINGS, PER_LAYER, PLACES = "embeddings", "per-layer embeddings", "places"
# By role, the names that exporters use.
NAMES = {
    TOKENS: ("tokens", "token_ids"),
    POSITIONS: ("input_pos", "positions"),
    MASK: ("mask", "attn_mask"),
    LOCAL_MASK: ("local_mask", "attn_mask_local", "local_attn_mask"),
    EMBEDDINGS: ("embeddings",),
    PER_LAYER: ("per_layer_embeddings",),
    PLACES: ("param_tensor",),
}
_ROLES = {name: role for role, names in NAMES.items() for name in names}
LOGITS = "logits"
# What a float mask adds to scores that do not count; it leaves room for them.
_HIDDEN = -0.7


@dataclass(frozen=True, slots=True)
class Step:
    """A signature that takes tokens one after the other.

    Args:
        runner: keeps the caches.
        length: how many tokens it takes at once.
        inputs: by role, the name of an input.
        details: by role, what is known of it.
    """

    runner: SignatureRunner
    length: int
    inputs: Mapping[str, str]
    details: Mapping[str, Detail] = field(repr=False)

    @classmethod
    def of(cls, key: str, runner: SignatureRunner, caches: Mapping[str, str]) -> Step:
        """The step of a signature.

        Raises:
            GenerationError: it has other inputs, is not told which tokens it takes, or an input
                has another type or size than those of its role.
        """
        found = runner.get_input_details()
        given = [name for name in found if name not in caches]
        if unknown := [name for name in given if name not in _ROLES]:
            raise GenerationError(f"signature {key!r} has inputs of no known role: {unknown}")
        inputs = {_ROLES[name]: name for name in given}
        details = {role: found[name] for role, name in inputs.items()}
        if POSITIONS not in inputs or not (TOKENS in inputs or EMBEDDINGS in inputs):
            raise GenerationError(f"signature {key!r} takes no tokens and positions: {given}")
        length = int(np.prod(details[POSITIONS]["shape"]))
        for role, detail in details.items():
            if not _fits(role, detail, length):
                dtype, shape = np.dtype(detail["dtype"]), [*map(int, detail["shape"])]
                said = f"{inputs[role]!r} of {dtype} {shape} cannot be its {role}"
                raise GenerationError(f"signature {key!r} takes {length} tokens: {said}")
        return cls(runner, length, inputs, details)

    def arrays(self, start: int, count: int, window: int) -> dict[str, Array]:
        """The inputs of a call that follow from where its tokens stand.

        Args:
            start: the position of the first token.
            count: of tokens; positions of the others are 0.
            window: of local attention.
        """
        positions = np.zeros(self.details[POSITIONS]["shape"], self.details[POSITIONS]["dtype"])
        positions.reshape(-1)[:count] = np.arange(start, start + count)
        arrays = {self.inputs[POSITIONS]: positions}
        for role in (MASK, LOCAL_MASK):
            if role in self.inputs:
                span = window if role == LOCAL_MASK else 0
                arrays[self.inputs[role]] = mask_of(self.details[role], start, count, span)
        if PLACES in self.inputs:  # where the new rows begin and end, and where all end
            places = np.zeros(self.details[PLACES]["shape"], self.details[PLACES]["dtype"])
            places.reshape(-1)[:3] = start, start + count, start + count
            arrays[self.inputs[PLACES]] = places
        return arrays


def _fits(role: str, detail: Detail, length: int) -> bool:
    """Whether a tensor can be an input of this role, of a signature that takes so many tokens."""
    dtype, size = np.dtype(detail["dtype"]), int(np.prod(detail["shape"]))
    if role in (MASK, LOCAL_MASK):
        return len(detail["shape"]) >= 2 and (dtype == np.bool_ or _is_float(dtype))
    least = {TOKENS: length, POSITIONS: 1, PLACES: 3}.get(role, 0)
    return size >= least and (dtype.kind in "iu" or _is_float(dtype))


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def filled(detail: Detail, tokens: Sequence[int]) -> Array:
    """Tokens as an input, with 0 behind them.

    Raises:
        GenerationError: its dtype does not hold one of them.
    """
    array: Array = np.zeros(detail["shape"], detail["dtype"])
    try:
        if array.dtype.kind in "iu":  # before numpy 2 a number beyond it wraps
            info = np.iinfo(array.dtype)
            if any(not info.min <= token <= info.max for token in tokens):
                raise OverflowError
        array.reshape(-1)[: len(tokens)] = tokens
    except OverflowError as error:
        said = f"token {max(tokens, key=abs)} is none that an input of {array.dtype} takes"
        raise GenerationError(said) from error
    return array


def mask_of(detail: Detail, start: int, count: int, window: int) -> Array:
    """A causal mask [..., length, capacity]: True or 0 where a token looks.

    Args:
        detail: shape and dtype.
        window: a token looks at so many tokens, itself among them; 0 for all before it.
    """
    shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
    length, capacity = shape[-2:]
    rows, columns = np.arange(length)[:, np.newaxis] + start, np.arange(capacity)
    seen = (columns <= rows) & (rows < start + count)
    if window:
        seen &= columns > rows - window
    if dtype == np.bool_:
        return np.broadcast_to(seen, shape)
    largest: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    hidden = dtype.type(_HIDDEN * float(largest.max))
    return np.broadcast_to(np.where(seen, dtype.type(0), hidden), shape)


def caches_of(
    signatures: Mapping[str, Mapping[str, Sequence[str]]], metadata: LanguageMetadata
) -> dict[str, dict[str, str]]:
    """The cache inputs of each signature, with the outputs that are their next values.

    Raises:
        GenerationError: prefill and decode signatures call a cache differently.
    """
    named: dict[str, str] = {}
    for state in metadata.states:
        first, second, third, fourth = state.names
        if (first, second) != (third, fourth):
            raise GenerationError(f"the cache {first!r} is {third!r} when tokens are decoded")
        named[first] = second
    return {
        key: {
            name: named.get(name, name)
            for name in each["inputs"]
            if named.get(name, name) in each["outputs"]
        }
        for key, each in signatures.items()
    }
