"""Tables of which a process needs few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class MadeOnce(Mapping[K, V]):
    """Values that are made when they are first looked up.

    Args:
        makers: by key, what makes the value.
        others: makes those of other keys, which are not listed; None where there is none.
    """

    def __init__(
        self, makers: Mapping[K, Callable[[], V]], others: Callable[[K], V | None] | None = None
    ) -> None:
        self._makers, self._others = makers, others
        self._made: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._made:
            other = None if key in self._makers or not self._others else self._others(key)
            self._made[key] = self._makers[key]() if other is None else other
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        if key in self._makers or key in self._made:
            return True
        return self._others is not None and self._others(key) is not None  # type: ignore[arg-type]  # of any type as in a dictionary

    def __iter__(self) -> Iterator[K]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
