"""The registry that translators and kernels share: one entry per (operator, version)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from tflite_ort.schema import ModelError, Op, OperatorView, Untranslatable
from tflite_ort.versioning.known import is_known, known_versions, span

F = TypeVar("F", bound=Callable[..., Any])
Key = Op | str  # a builtin operator, or the name of a custom one
Pair = tuple[Key, int]  # with a version
StateFactory = Callable[[OperatorView[Any]], Any]


@dataclass(frozen=True, slots=True)
class Inputs:
    """An operator's declared inputs: ``filter!`` must be constant, ``bias?`` may be absent,
    a last ``values*`` takes all that remain."""

    declared: tuple[str, ...]
    names: tuple[str, ...]
    constant: frozenset[str]
    required: int
    variadic: bool

    @classmethod
    def parse(cls, declared: tuple[str, ...]) -> Inputs:
        names = tuple(name.rstrip("?!*") for name in declared)
        if len(set(names)) != len(names):
            raise ValueError(f"an input is declared twice: {declared}")
        if any(name.endswith("*") for name in declared[:-1]):
            raise ValueError(f"only the last input may end in '*': {declared}")
        optional = [i for i, name in enumerate(declared) if "?" in name or "*" in name]
        constant = frozenset(name.rstrip("?!") for name in declared if "!" in name)
        variadic = bool(declared) and declared[-1].endswith("*")
        return cls(declared, names, constant, min(optional, default=len(names)), variadic)

    def of_kernel(self) -> Inputs:
        """The same inputs for a kernel, which takes a constant as it takes any other array."""
        return Inputs.parse(tuple(name.replace("!", "") for name in self.declared))

    def bind(self, op: OperatorView[Any]) -> OperatorView[Any]:
        """`op` with its inputs named; refuses a count, a gap or a non-constant not declared."""
        given = len(op.inputs)
        if given < self.required or (given > len(self.names) and not self.variadic):
            expected = f"{self.required} to {len(self.names)}" if self.names else "no"
            raise ModelError(f"{op.label} has {given} inputs, expected {expected}")
        for name, tensor in zip(self.names, op.inputs, strict=False):
            if tensor is None and self.names.index(name) < self.required:
                raise ModelError(f"{op.label}: input {name!r} was optional but was expected")
            if tensor is not None and name in self.constant and not tensor.is_constant:
                raise Untranslatable(f"input {name!r} is not a constant")
        return replace(op, names=self.names)


def key_of(op: OperatorView[Any]) -> Key:
    """What an operator in its graph is registered under."""
    return op.op if op.custom_code is None else op.custom_code


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
        return [(self.op, version) for version in range(self.first, self.last + 1)]


class Registry(Generic[F]):
    """Functions by exact (operator, version).

    Used as a decorator, ``@registry(Op.ADD, versions=(1, 5), inputs=("a", "b"))``, it takes
    builtin operators in versions that TFLite has. A second registration of a pair raises: nothing
    is replaced in silence at import time.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[tuple[Key, int], Entry[F]] = {}

    def __call__(
        self,
        op: Key,
        *,
        versions: tuple[int, int],
        inputs: tuple[str, ...],
        state: StateFactory | None = None,
    ) -> Callable[[F], F]:
        declared = Inputs.parse(inputs)

        def register(function: F) -> F:
            entry = Entry(op, *versions, declared, function, state)
            self._check(entry)
            self.replace(entry)
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

    def narrowed(self, pairs: Collection[tuple[Key, int]]) -> Registry[F]:
        """A registry of only those of `pairs` that are registered here."""
        narrow: Registry[F] = Registry(self.kind)
        narrow._entries = {pair: self._entries[pair] for pair in pairs if pair in self._entries}
        return narrow

    def __iter__(self) -> Iterator[Entry[F]]:
        """Every entry once, in the order of registration."""
        return iter(dict.fromkeys(self._entries.values()))

    def _check(self, entry: Entry[F]) -> None:
        """A range from 1 up, of versions that TFLite has and nothing has taken."""
        name = entry.op.name if isinstance(entry.op, Op) else entry.op
        if not 1 <= entry.first <= entry.last:
            raise ValueError(f"{name}: versions {entry.first, entry.last} are not a range from 1")
        for op, version in entry.pairs:
            if (op, version) in self._entries:
                raise ValueError(f"{name} version {version} has a {self.kind} already")
            if isinstance(op, Op) and not is_known(op, version):
                known = known_versions(op)
                raise ValueError(
                    f"TFLite has {name} in {span(known)}, not {version}"
                    if known
                    else f"TFLite has no kernel for {name}"
                )
