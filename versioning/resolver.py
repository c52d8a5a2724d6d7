"""Resolvers: which translator and which kernel an interpreter uses for (operator, version)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tflite_ort.schema import Model, Op, OperatorCode
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.operators import Key
from tflite_ort.versioning.registration import Registration
from tflite_ort.versioning.registry import Entry, Pair, Registry

F = TypeVar("F", bound=Callable[..., Any])


class OpResolver:
    """Finds what runs exactly an operator and version, never the newest version below.

    Builtin operators go by their `Op`, custom ones by name.

    Attributes:
        registered: what was added here; kernels in TFLite's life cycle and plain functions are
            there alone, since they are made ready for one interpreter each.
    """

    def __init__(self) -> None:
        self.translators: Registry[Any] = Registry("translator")
        self.kernels: Registry[Any] = Registry("kernel")
        self.registered: dict[Pair, Registration] = {}

    def has(self, op: Key, version: int) -> bool:
        """Whether something is registered for this operator and version."""
        return (
            (op, version) in self.registered
            or self.translators.find(op, version) is not None
            or self.kernels.find(op, version) is not None
        )

    def find(self, op: Key, version: int) -> Registration | None:
        """What is registered for this operator and version, else None."""
        if (op, version) in self.registered:
            return self.registered[op, version]
        translator, kernel = self.translators.find(op, version), self.kernels.find(op, version)
        entry = translator or kernel
        if entry is None:
            return None
        return Registration(
            None if translator is None else translator.function,
            None if kernel is None else kernel.function,
            entry.inputs.declared,
            state=None if kernel is None else kernel.state,
        )

    def keeps_state(self, op: Key, version: int) -> bool:
        """Whether a kernel was added here that keeps a state from one invoke to the next."""
        registration = self.registered.get((op, version))
        return registration is not None and registration.state is not None

    def versions(self, op: Key) -> list[int]:
        """The versions that can be found of `op`, ascending."""
        added = {version for key, version in self.registered if key == op}
        return sorted({*self.translators.versions(op), *self.kernels.versions(op), *added})

    def operators(self) -> set[Key]:
        """Every operator of which a version can be found."""
        pairs = (*self.translators.pairs(), *self.kernels.pairs(), *self.registered)
        return {op for op, _ in pairs}

    def narrowed(self, model: Model) -> OpResolver:
        """A resolver of only the operators of `model`."""
        narrow = OpResolver()
        pairs = {(operator_key(code), code.version) for code in model.operator_codes}
        narrow.translators = self.translators.narrowed(pairs)
        narrow.kernels = self.kernels.narrowed(pairs)
        kept = pairs & self.registered.keys()
        narrow.registered = {pair: self.registered[pair] for pair in kept}
        return narrow


class MutableOpResolver(OpResolver):
    """A resolver to add to, empty at first.

    Examples:
        >>> resolver = MutableOpResolver()
        >>> resolver.add_custom("Double", Registration(function=lambda x: x * 2))
        >>> @resolver.custom("Scale", max_version=2)
        ... def scale(x, factor=1.0):
        ...     return x * factor
        >>> resolver.versions("Double"), resolver.versions("Scale")
        ([1], [1, 2])
    """

    def add_builtin(
        self, op: Op, registration: Registration, min_version: int = 1, max_version: int = 1
    ) -> None:
        """Use `registration` for these versions of `op`, in place of anything added before."""
        self._add(Op(op), registration, min_version, max_version)

    def add_custom(
        self, name: str, registration: Registration, min_version: int = 1, max_version: int = 1
    ) -> None:
        """As `add_builtin`, for the custom operator `name`."""
        self._add(name, registration, min_version, max_version)

    def builtin(
        self, op: Op, *, min_version: int = 1, max_version: int = 1, **registration: Any
    ) -> Callable[[F], F]:
        """A decorator that does `add_builtin` of a plain function, or a class with `invoke`.

        Args:
            registration: what else there is to the `Registration`, such as `translate`.
        """
        return self._decorator(Op(op), min_version, max_version, registration)

    def custom(
        self, name: str, *, min_version: int = 1, max_version: int = 1, **registration: Any
    ) -> Callable[[F], F]:
        """As `builtin`, for the custom operator `name`."""
        return self._decorator(name, min_version, max_version, registration)

    def add_all(self, other: OpResolver) -> None:
        """Add everything of `other`, in place of what is here for the same operator and version."""
        for pair in (*other.translators.pairs(), *other.kernels.pairs(), *other.registered):
            self._remove(*pair)
        self.translators.update(other.translators)
        self.kernels.update(other.kernels)
        self.registered.update(other.registered)

    def _decorator(
        self, op: Key, first: int, last: int, registration: Mapping[str, Any]
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            place = "kernel" if hasattr(function, "invoke") else "function"
            given: dict[str, Any] = {place: function, **registration}
            self._add(op, Registration(**given), first, last)
            return function

        return register

    def _add(self, op: Key, registration: Registration, first: int, last: int) -> None:
        _check_registration(registration)
        if first > last:
            raise ValueError(f"min_version {first} is above max_version {last}")
        for version in range(first, last + 1):
            self._remove(op, version)
            self.registered[op, version] = registration
        inputs = Inputs.of(registration.inputs)
        translate = registration.reported_translator
        kernel = registration.reported_kernel
        if translate is not None:
            self.translators.replace(Entry(op, first, last, inputs, translate))
        if kernel is not None:
            of_kernel = inputs.with_constants(())
            self.kernels.replace(Entry(op, first, last, of_kernel, kernel, registration.state))

    def _remove(self, op: Key, version: int) -> None:
        self.translators.remove(op, version)
        self.kernels.remove(op, version)
        self.registered.pop((op, version), None)


def operator_key(code: OperatorCode) -> Key:
    """What resolvers find an operator by: its `Op`, or a custom operator's name."""
    return (code.custom_code or "") if code.builtin_code is Op.CUSTOM else code.builtin_code


def _check_registration(registration: object) -> None:
    if not isinstance(registration, Registration):
        kind = type(registration).__name__
        raise TypeError(f"expected a Registration(function=...), got {kind}")
