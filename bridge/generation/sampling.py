"""The next token of logits: the most likely one, or one that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tflite_ort.generation.errors import GenerationError

Array = npt.NDArray[Any]

_MOST = 1 << 31  # tokens of any vocabulary


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen.

    Args:
        temperature: the logits are divided by it; 0 chooses the most likely token.
        top_k: only so many of the most likely tokens are drawn from; 0 for all, 1 for the most
            likely one.
        top_p: only the most likely tokens are drawn from that together have this probability.
        seed: of the random numbers; None for another one each time.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def valid(self) -> Self:
        """This, if its numbers are in their ranges.

        Raises:
            GenerationError: one is not.
        """
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise GenerationError(f"temperature is {self.temperature}, at least 0 is expected")
        if self.top_k < 0:
            raise GenerationError(f"top_k is {self.top_k}, at least 0 is expected")
        if not 0 <= self.top_p <= 1:
            raise GenerationError(f"top_p is {self.top_p}, expected 0 to 1")
        if self.seed is not None and self.seed < 0:
            raise GenerationError(f"seed is {self.seed}, at least 0 is expected")
        return self

    @property
    def is_greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature == 0 or self.top_k == 1


class Sampler:
    """Chooses tokens one after the other.

    Args:
        sampling: how.
        suppressed: tokens that are never chosen; those that no logits are for are passed over.
    """

    def __init__(self, sampling: Sampling, suppressed: Sequence[int] = ()) -> None:
        self._sampling = sampling.valid()
        self._suppressed = np.array([each for each in suppressed if 0 <= each < _MOST], np.int64)
        self._random = np.random.default_rng(sampling.seed)

    def choose(self, logits: Array) -> int:
        """The next token.

        Args:
            logits: float [vocabulary].

        Raises:
            GenerationError: there is no number among them.
        """
        values = np.asarray(logits, np.float64).ravel().copy()
        values[self._suppressed[self._suppressed < values.size]] = -np.inf
        if not values.size or np.isnan(values).any() or values.max() == -np.inf:
            raise GenerationError("the model's logits are no numbers")
        if self._sampling.is_greedy:
            return int(values.argmax())
        # Logits that are infinite share the whole probability.
        tokens, chances = self._likely(np.minimum(values, np.finfo(np.float64).max))
        reached = np.cumsum(chances)
        drawn = np.searchsorted(reached, self._random.random() * reached[-1], "right")
        return int(tokens[min(int(drawn), len(tokens) - 1)])

    def _likely(self, values: Array) -> tuple[Array, Array]:
        """The tokens that are drawn from, the most likely one first, and their probabilities."""
        count = min(self._sampling.top_k or values.size, values.size)
        tokens = np.argpartition(-values, count - 1)[:count]
        tokens = tokens[np.argsort(-values[tokens], kind="stable")]
        with np.errstate(over="ignore"):
            distances = (values[tokens] - values[tokens[0]]) / self._sampling.temperature
        chances = np.exp(distances)
        chances /= chances.sum()
        # The first token that reaches the bound is among them.
        kept = int(np.searchsorted(np.cumsum(chances), self._sampling.top_p)) + 1
        return tokens[:kept], chances[:kept]
