"""Resolvers: which translator and which kernel an interpreter uses for (operator, version)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tflite_ort.schema import Model, Op, OperatorCode
from tflite_ort.versioning.registry import Entry, Inputs, Key, Registry

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Registration:
    """What runs an operator: a translator into ONNX, a numpy kernel, or both.

    Args:
        translate: ``translate(op, graph)``, as for a builtin operator.
        kernel: ``kernel(op, inputs, state) -> outputs``.
        inputs: their names, ``"bias?"`` when it may be left out, ``"filter!"`` when `translate`
            needs a constant, a last ``"values*"`` for all that remain.
    """

    translate: Function | None = None
    kernel: Function | None = None
    inputs: tuple[str, ...] = ("inputs*",)

    def __post_init__(self) -> None:
        if self.translate is None and self.kernel is None:
            raise ValueError("a registration needs a translator or a kernel")


class OpResolver:
    """Finds what runs exactly an operator and version, never the newest version below.

    Builtin operators go by their `Op`, custom ones by name.
    """

    def __init__(self) -> None:
        self.translators: Registry[Any] = Registry("translator")
        self.kernels: Registry[Any] = Registry("kernel")

    def find(self, op: Key, version: int) -> Registration | None:
        """What is registered for this operator and version, else None."""
        translator, kernel = self.translators.find(op, version), self.kernels.find(op, version)
        entry = translator or kernel
        if entry is None:
            return None
        return Registration(
            None if translator is None else translator.function,
            None if kernel is None else kernel.function,
            entry.inputs.declared,
        )

    def versions(self, op: Key) -> list[int]:
        """The versions that can be found of `op`, ascending."""
        return sorted({*self.translators.versions(op), *self.kernels.versions(op)})

    def narrowed(self, model: Model) -> OpResolver:
        """A resolver of only the operators of `model`."""
        narrow = OpResolver()
        pairs = {(operator_key(code), code.version) for code in model.operator_codes}
        narrow.translators = self.translators.narrowed(pairs)
        narrow.kernels = self.kernels.narrowed(pairs)
        return narrow


class MutableOpResolver(OpResolver):
    """A resolver to add to, empty at first.

    Example:
        >>> resolver = MutableOpResolver()
        >>> double = Registration(kernel=lambda op, inputs, state: (inputs[0] * 2,))
        >>> resolver.add_custom("Double", double)
        >>> resolver.versions("Double")
        [1]
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

    def add_all(self, other: OpResolver) -> None:
        """Add everything of `other`, in place of what is here for the same operator and version."""
        for pair in (*other.translators.pairs(), *other.kernels.pairs()):
            self._remove(*pair)
        self.translators.update(other.translators)
        self.kernels.update(other.kernels)

    def _add(self, op: Key, registration: Registration, first: int, last: int) -> None:
        if first > last:
            raise ValueError(f"min_version {first} is above max_version {last}")
        for version in range(first, last + 1):
            self._remove(op, version)
        inputs = Inputs.parse(registration.inputs)
        if registration.translate is not None:
            self.translators.replace(Entry(op, first, last, inputs, registration.translate))
        if registration.kernel is not None:
            entry = Entry(op, first, last, inputs.of_kernel(), registration.kernel)
            self.kernels.replace(entry)

    def _remove(self, op: Key, version: int) -> None:
        self.translators.remove(op, version)
        self.kernels.remove(op, version)


def operator_key(code: OperatorCode) -> Key:
    """What resolvers find an operator by: its `Op`, or a custom operator's name."""
    return (code.custom_code or "") if code.builtin_code is Op.CUSTOM else code.builtin_code
