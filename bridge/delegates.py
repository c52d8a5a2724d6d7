"""Delegates: what runs operators in place of the numpy kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tflite_ort.schema import Op, OperatorView


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
