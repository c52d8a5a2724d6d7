"""The registry that translators and kernels share: one entry per (operator, version)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from tflite_ort.schema import ModelError, Op, OperatorView, Untranslatable

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Inputs:
    """An operator's declared inputs: ``filter!`` must be constant, ``bias?`` may be absent,
    a last ``values*`` takes all that remain."""

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
        return cls(names, constant, min(optional, default=len(names)), variadic)

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


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """A function registered for an operator: versions `first` to `last`, both included."""

    op: Op
    first: int
    last: int
    inputs: Inputs
    function: F


class Registry(Generic[F]):
    """Functions by exact (operator, version).

    Used as a decorator, ``@registry(Op.ADD, versions=(1, 5), inputs=("a", "b"))``. A second
    registration of a pair raises: nothing is replaced in silence at import time.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[tuple[Op, int], Entry[F]] = {}

    def __call__(
        self, op: Op, *, versions: tuple[int, int], inputs: tuple[str, ...]
    ) -> Callable[[F], F]:
        declared = Inputs.parse(inputs)

        def register(function: F) -> F:
            first, last = versions
            if not 1 <= first <= last:
                raise ValueError(f"{op.name}: versions {versions} are not a range from 1 up")
            entry = Entry(op, first, last, declared, function)
            for version in range(first, last + 1):
                if (op, version) in self._entries:
                    raise ValueError(f"{op.name} version {version} has a {self.kind} already")
                self._entries[op, version] = entry
            return function

        return register

    def find(self, op: Op, version: int) -> Entry[F] | None:
        """The entry of exactly this operator and version, else None."""
        return self._entries.get((op, version))

    def versions(self, op: Op) -> list[int]:
        """The versions known of `op`, ascending; empty for an operator not registered."""
        return sorted(version for known, version in self._entries if known == op)

    def __iter__(self) -> Iterator[Entry[F]]:
        """Every entry once, in the order of registration."""
        return iter(dict.fromkeys(self._entries.values()))
