"""Stop tokens: those of several numbers are known only once the last one has come."""

from __future__ import annotations

from collections.abc import Sequence

Stop = tuple[int, ...]


class Waiting:
    """Tokens of an answer that may turn out to be the beginning of a stop token.

    Args:
        stops: each of at least one number.

    >>> waiting = Waiting([(2,), (7, 8)])
    >>> waiting.add(5), waiting.add(7), waiting.add(9), waiting.add(7), waiting.add(8)
    (([5], False), ([], False), ([7, 9], False), ([], False), ([], True))
    """

    def __init__(self, stops: Sequence[Stop]) -> None:
        self._stops = stops
        self._tokens: list[int] = []

    def add(self, token: int) -> tuple[list[int], bool]:
        """The tokens that are part of the answer now, and whether this one ends it."""
        self._tokens.append(token)
        for stop in self._stops:
            if tuple(self._tokens[-len(stop) :]) == stop:
                return self._tokens[: -len(stop)], True
        count = len(self._tokens) - self._held_back()
        ready, self._tokens = self._tokens[:count], self._tokens[count:]
        return ready, False

    def rest(self) -> list[int]:
        """The tokens that still wait, where the answer ends without a stop token."""
        return self._tokens

    def _held_back(self) -> int:
        """How many of the last tokens are the beginning of a stop token."""
        tokens = tuple(self._tokens)
        most = max((len(stop) for stop in self._stops), default=1) - 1
        for count in range(min(most, len(tokens)), 0, -1):
            if any(len(stop) > count and tokens[-count:] == stop[:count] for stop in self._stops):
                return count
        return 0
