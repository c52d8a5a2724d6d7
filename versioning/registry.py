"""The registry that translators and kernels share: one entry per (operator, version)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from tflite_ort.base.optional import load
from tflite_ort.base.records import record
from tflite_ort.schema import Op, OperatorView
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.operators import (
    ANY_FLEX,
    FAMILIES,
    INPUTS,
    Key,
    family_of,
    flex_names,
    is_flex,
    key_of,
)
from tflite_ort.versioning.known import is_known, known_versions, span

F = TypeVar("F", bound=Callable[..., Any])
Pair = tuple[Key, int]  # with a version
StateFactory = Callable[[OperatorView[Any]], Any]
Check = Callable[[OperatorView[Any]], None]


@record
class Entry(Generic[F]):
    """A function registered for an operator: versions `first` to `last`, both included.

    Args:
        state: makes what a kernel keeps from one invoke to the next, afresh at each allocation;
            None for a kernel whose results follow from its inputs alone.
        check: raises what the function would raise for operands that it does not take; it is asked
            before anything is done in place of the function.
    """

    op: Key
    first: int
    last: int
    inputs: Inputs
    function: F
    state: StateFactory | None = None
    check: Check | None = None

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

    Args:
        kind: of the functions, for messages.
        package: whose module of an operator's family is imported when the operator is first looked
            up; none for a registry without families.
    """

    def __init__(self, kind: str, package: str = "") -> None:
        self.kind = kind
        self._package = package
        self._loaded: set[str] = set()
        self._entries: dict[Key, dict[int, Entry[F]]] = {}
        # What `update` took and nobody has looked up since, the last one first in rank.
        self._taken: dict[Key, tuple[Registry[F], ...]] = {}
        # Both are those of a copy too, until one of the two is changed.
        self._is_shared = False

    def __call__(
        self,
        op: Key,
        *,
        versions: tuple[int, int],
        constants: Sequence[str] = (),
        state: StateFactory | None = None,
        check: Check | None = None,
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            self._check(op, *versions)
            inputs = INPUTS[op].with_constants(constants)
            entry = Entry(op, *versions, inputs, function, state, check)
            # Not `replace`: it would import the module that is being imported.
            self._entries.setdefault(op, {}).update(_by_version(entry))
            return function

        return register

    def replace(self, entry: Entry[F]) -> None:
        """Register `entry`, whatever there was before."""
        self._own()
        self._entries[entry.op] = {**self._of(entry.op), **_by_version(entry)}

    def remove(self, op: Key, version: int) -> None:
        """Forget the pair, if it is there."""
        self._own()
        self._entries[op] = {n: entry for n, entry in self._of(op).items() if n != version}

    def copy(self) -> Registry[F]:
        """A registry of the same entries, to which others can be added; of one without families."""
        made: Registry[F] = Registry(self.kind)
        made._entries, made._taken = self._entries, self._taken
        made._is_shared = self._is_shared = True
        return made

    def _own(self) -> None:
        """Make ready to be changed, which a copy does not see."""
        if self._is_shared:
            self._entries, self._taken = dict(self._entries), dict(self._taken)
            self._is_shared = False

    def update(self, other: Registry[F], only: Collection[Key] | None = None) -> None:
        """Register all of `other`, or `only` what it has of these operators, whatever there was
        before."""
        known = other._known() if only is None else only
        self._own()
        if not self._taken:
            self._taken = dict.fromkeys(known, (other,))
            return
        for op in known:
            self._taken[op] = (*self._taken.get(op, ()), other)

    def find(self, op: Key, version: int) -> Entry[F] | None:
        """The entry of exactly this operator and version, else None."""
        return self._of(op).get(version)

    def of(self, op: OperatorView[Any]) -> Entry[F] | None:
        """The entry of an operator in its graph; of a custom one by its name."""
        return self._of(key_of(op)).get(op.version)

    def shares(self, other: Registry[F], op: OperatorView[Any]) -> bool:
        """Whether an operator in its graph has the same entry here as in `other`, or none in
        either; no module is imported to tell where that can be told without."""
        key = key_of(op)
        sources = () if key in self._entries else self._sources(key)
        if len(sources) == 1:
            return sources[0] is other or sources[0].shares(other, op)
        return self.of(op) is other.of(op)

    def versions(self, op: Key) -> list[int]:
        """The versions known of `op`, ascending; empty for an operator not registered."""
        return sorted(self._of(op))

    def pairs(self) -> list[tuple[Key, int]]:
        """Every (operator, version) registered."""
        return [(op, version) for op in self._listed() for version in self._of(op)]

    def __eq__(self, other: object) -> bool:
        """Whether both have the same entries, whatever of them was looked up by now."""
        if not isinstance(other, Registry):
            return False
        known = {*self._known(), *other._known()}
        return all(
            self._told(op) == other._told(op) or self._of(op) == other._of(op) for op in known
        )

    def _told(self, op: Key) -> tuple[Any, Any]:
        """What says the entries of `op`."""
        return self._entries.get(op), self._taken.get(op)

    __hash__ = object.__hash__

    def narrowed(self, pairs: Collection[tuple[Key, int]]) -> Registry[F]:
        """A registry of only those of `pairs` that are registered here."""
        narrow: Registry[F] = Registry(self.kind)
        for op, version in pairs:
            entry = self.find(op, version)
            if entry is not None:
                narrow._entries.setdefault(op, {})[version] = entry
        return narrow

    def __iter__(self) -> Iterator[Entry[F]]:
        """Every entry once, in the order of registration."""
        return iter(dict.fromkeys(e for op in self._listed() for e in self._of(op).values()))

    def names(self) -> set[Key]:
        """The operators that were registered by now; no module is imported to tell."""
        return set(self._entries)

    def _known(self) -> list[Key]:
        """The operators that may be registered here; `ANY_FLEX` stands for TensorFlow's."""
        families = (*FAMILIES, ANY_FLEX) if self._package else ()
        return list(dict.fromkeys((*families, *self._entries, *self._taken)))

    def _listed(self) -> list[Key]:
        """As `_known`, with TensorFlow's operators one by one."""
        known = dict.fromkeys(self._known())
        if ANY_FLEX in known:
            del known[ANY_FLEX]
            known.update(dict.fromkeys(flex_names()))
        return list(known)

    def _sources(self, op: Key) -> tuple[Registry[F], ...]:
        """Whose entries of `op` were taken and not looked up since, the last one first in rank."""
        found = self._taken.get(op)
        if found is None and op not in self._entries and is_flex(op):
            found = self._taken.get(ANY_FLEX)
        return found or ()

    def _of(self, op: Key) -> Mapping[int, Entry[F]]:
        """What is registered of `op`, by version."""
        sources = self._sources(op)
        family = family_of(op) if self._package else None
        if sources:
            found = [source._of(op).items() for source in sources]
            self._entries[op] = {**self._entries.get(op, {}), **dict(chain(*found))}
            self._taken.pop(op, None)
        elif family is not None and family not in self._loaded:
            load(f"{self._package}.{family}")
            self._loaded.add(family)
        return self._entries.get(op, {})

    def _check(self, op: Key, first: int, last: int) -> None:
        """A range from 1 up, of versions that TFLite has and nothing has taken, of an operator
        whose inputs are declared."""
        name = op if isinstance(op, str) else op.name
        if not 1 <= first <= last:
            raise ValueError(f"{name}: versions {first, last} are not a range from 1")
        for version in range(first, last + 1):
            if version in self._entries.get(op, {}):
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


def _by_version(entry: Entry[F]) -> dict[int, Entry[F]]:
    return dict.fromkeys(range(entry.first, entry.last + 1), entry)
