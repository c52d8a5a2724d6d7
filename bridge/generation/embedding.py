"""Embeddings of tokens that a bundle has in a model of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.signature_roles import filled
from tflite_ort.interpreter.interpreter import Interpreter

Array = npt.NDArray[Any]


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
