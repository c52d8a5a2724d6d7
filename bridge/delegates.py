"""Delegates: what runs operators in place of the numpy kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from tflite_ort.schema import MissingDelegate, Op, OperatorView
from tflite_ort.session import Provider, available_providers


@dataclass(frozen=True)
class Delegate:
    """Something that can run operators.

    Args:
        name: how `Interpreter.delegation` names it.
        options: passed on to the delegate.
        max_versions: the highest version accepted, by operator; others are not limited.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_versions: Mapping[Op, int] = field(default_factory=dict)

    def refusal(self, op: OperatorView[Any]) -> str | None:
        """Why the delegate does not take `op`; None when it does."""
        limit = self.max_versions.get(op.op)
        if limit is not None and op.version > limit:
            return f"{self.name} takes {op.name} up to version {limit}, this is {op.version}"
        return None


@dataclass(frozen=True)
class ExecutionProviderDelegate(Delegate):
    """An ONNX Runtime execution provider, such as ``CPUExecutionProvider``."""


@unique
class OpResolverType(Enum):
    """Which kernels run what no delegate takes, under the names of ``tf.lite``.

    AUTO, BUILTIN and BUILTIN_WITHOUT_DEFAULT_DELEGATES: those of ONNX Runtime's CPU provider, and
    numpy where it has none. BUILTIN_REF: numpy alone, bit for bit TFLite's reference kernels
    where these compute in integers.
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """The ONNX Runtime execution provider named `library`, for `experimental_delegates`.

    Raises:
        MissingDelegate: the installed onnxruntime has none of this name.
    """
    available = available_providers()
    if library not in available:
        raise MissingDelegate(
            f"Failed to load delegate from {library}: "
            f"no provider {library!r} in this onnxruntime, which has {available}"
        )
    return ExecutionProviderDelegate(library, dict(options or {}))


def chosen_delegates(
    kind: OpResolverType,
    first: Sequence[Delegate],
    providers: Sequence[Provider | Delegate] | None,
) -> list[Delegate]:
    """The delegates of an interpreter, the first choice first.

    Args:
        providers: names, (name, options) pairs or delegates; None: what `kind` stands for.
    """
    if not isinstance(kind, OpResolverType):
        raise ValueError(f"Unrecognized passed in op resolver type: {kind}")
    if providers is None:
        providers = () if kind is OpResolverType.BUILTIN_REF else ("CPUExecutionProvider",)
    return [_delegate(provider) for provider in (*first, *providers)]


def _delegate(provider: Provider | Delegate) -> Delegate:
    if isinstance(provider, str):
        return load_delegate(provider)
    if not isinstance(provider, Delegate):
        return load_delegate(*provider)
    load_delegate(provider.name)  # is it there?
    return provider
