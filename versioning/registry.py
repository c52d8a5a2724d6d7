"""The registry that translators and kernels share: one entry per (operator, version)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tflite_ort.schema import Op, OperatorView
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.operators import INPUTS, Key, key_of
from tflite_ort.versioning.known import is_known, known_versions, span

F = TypeVar("F", bound=Callable[..., Any])
Pair = tuple[Key, int]  # with a version
StateFactory = Callable[[OperatorView[Any]], Any]


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """A function registered for an operator: versions `first` to `last`, both included.

    Args:
        state: makes what a kernel keeps from one invoke to the next, afresh at each allocation;
            None for a kernel whose results follow from its inputs alone.
    """

    op: Key
    first: int
    last: int
    inputs: Inputs
    function: F
    state: StateFactory | None = None

    @property
    def pairs(self) -> list[tuple[Key, int]]:
        """The operator with each of its versions."""
        return [(self.op, version) for version in range(self.first, self.last + 1)]


class Registry(Generic[F]):
    """Functions by exact (operator, version).

    Used as a decorator, ``@registry(Op.ADD, versions=(1, 5))``, it takes builtin operators in
    versions that TFLite has, and custom ones. The function reads the inputs by the names that
    `schema/values/operators.py` declares; it is not called where one of `constants` is computed.
    A second registration of a pair raises: nothing is replaced in silence at import time.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[tuple[Key, int], Entry[F]] = {}

    def __call__(
        self,
        op: Key,
        *,
        versions: tuple[int, int],
        constants: Sequence[str] = (),
        state: StateFactory | None = None,
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            self._check(op, *versions)
            inputs = INPUTS[op].with_constants(constants)
            self.replace(Entry(op, *versions, inputs, function, state))
            return function

        return register

    def replace(self, entry: Entry[F]) -> None:
        """Register `entry`, whatever there was before."""
        self._entries.update(dict.fromkeys(entry.pairs, entry))

    def remove(self, op: Key, version: int) -> None:
        """Forget the pair, if it is there."""
        self._entries.pop((op, version), None)

    def update(self, other: Registry[F]) -> None:
        """Register all of `other`, whatever there was before."""
        self._entries.update(other._entries)

    def find(self, op: Key, version: int) -> Entry[F] | None:
        """The entry of exactly this operator and version, else None."""
        return self._entries.get((op, version))

    def of(self, op: OperatorView[Any]) -> Entry[F] | None:
        """The entry of an operator in its graph; of a custom one by its name."""
        return self.find(key_of(op), op.version)

    def versions(self, op: Key) -> list[int]:
        """The versions known of `op`, ascending; empty for an operator not registered."""
        return sorted(version for known, version in self._entries if known == op)

    def pairs(self) -> list[tuple[Key, int]]:
        """Every (operator, version) registered."""
        return list(self._entries)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same entries."""
        return isinstance(other, Registry) and self._entries == other._entries

    __hash__ = object.__hash__

    def narrowed(self, pairs: Collection[tuple[Key, int]]) -> Registry[F]:
        """A registry of only those of `pairs` that are registered here."""
        narrow: Registry[F] = Registry(self.kind)
        narrow._entries = {pair: self._entries[pair] for pair in pairs if pair in self._entries}
        return narrow

    def __iter__(self) -> Iterator[Entry[F]]:
        """Every entry once, in the order of registration."""
        return iter(dict.fromkeys(self._entries.values()))

    def _check(self, op: Key, first: int, last: int) -> None:
        """A range from 1 up, of versions that TFLite has and nothing has taken, of an operator
        whose inputs are declared."""
        name = op if isinstance(op, str) else op.name
        if not 1 <= first <= last:
            raise ValueError(f"{name}: versions {first, last} are not a range from 1")
        for version in range(first, last + 1):
            if (op, version) in self._entries:
                raise ValueError(f"{name} version {version} has a {self.kind} already")
            if isinstance(op, Op) and not is_known(op, version):
                known = known_versions(op)
                raise ValueError(
                    f"TFLite has {name} in {span(known)}, not {version}"
                    if known
                    else f"TFLite has no kernel for {name}"
                )
        if op not in INPUTS:
            raise ValueError(f"{name} has no row in schema/values/operators.py")
