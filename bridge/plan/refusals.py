"""What delegates fail to make ready although they claim it, learnt as sessions are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.base.records import field, record, replace
from tflite_ort.base.warned import warn_caller
from tflite_ort.plan.partition import Partition
from tflite_ort.providers.delegates import Delegate
from tflite_ort.providers.trials import check_provider
from tflite_ort.schema import DelegateError, DelegateWarning, OperatorView


class LeftToTheCPU(DelegateError):
    """A provider that is fast only where it takes all nodes has not taken those of `operators`."""

    def __init__(self, delegate: Delegate, operators: Sequence[OperatorView[Any]]) -> None:
        super().__init__(f"{delegate.name} leaves nodes of it to ONNX Runtime's CPU provider")
        self.operators = operators


@record
class PartitionFailure:
    """A partition that its delegate could not make ready, and the error.

    Args:
        unusable: by backend, why it can run nothing; found for called subgraphs before.
    """

    part: Partition
    error: DelegateError
    unusable: Mapping[str, str] = field(default_factory=dict)


@record
class Refusals:
    """Why backends do not run operators that they claim.

    Args:
        unusable: by backend, why it can run nothing.
        operators: by backend and operator index, why it does not run this one.
    """

    unusable: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def reason(self, backend: str, index: int) -> str | None:
        """Why `backend` does not run operator `index`; None where nothing is known against it."""
        return self.unusable.get(backend) or self.operators.get((backend, index))

    def after(self, failure: PartitionFailure, delegate: Delegate) -> Refusals:
        """These and what a failure tells, of which a DelegateWarning is given.

        A delegate that leaves operators to the CPU is asked for the others again; one that cannot
        even run the smallest model is asked for nothing.
        """
        part, error = failure.part, failure.error
        known = replace(self, unusable={**self.unusable, **failure.unusable})
        if isinstance(error, LeftToTheCPU):
            return known._with(part.backend, error.operators, str(error))
        try:
            check_provider(delegate.provider)
        except DelegateError as problem:
            reason = f"{delegate.name} cannot be used: {problem}"
            warn_caller(f"{reason}; the next delegate takes over", DelegateWarning)
            return replace(known, unusable={**known.unusable, part.backend: reason})
        reason = f"{delegate.name} failed: {error}"
        labels = ", ".join(op.label for op in part.operators)
        warn_caller(f"{reason}; the next delegate takes over {labels}", DelegateWarning)
        return known._with(part.backend, part.operators, reason)

    def _with(self, backend: str, operators: Sequence[OperatorView[Any]], reason: str) -> Refusals:
        more = {(backend, op.index): reason for op in operators}
        return replace(self, operators={**self.operators, **more})
