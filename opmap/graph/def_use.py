"""What makes and reads the tensors of a run of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tflite_ort.schema import OperatorView, TensorView

View = OperatorView[Any]


class DefUse:
    """Which operators make and read each tensor; they are looked through when somebody asks.

    Args:
        operators: in execution order.
        results: the tensors that are read from outside.
    """

    def __init__(self, operators: Sequence[View], results: Sequence[TensorView]) -> None:
        self.operators, self.results = operators, results

    @cached_property
    def _makers(self) -> Mapping[int, View]:
        return {out.index: op for op in self.operators for out in op.outputs}

    @cached_property
    def _readers(self) -> Mapping[int, Sequence[View]]:
        readers: dict[int, list[View]] = {}
        for op in self.operators:
            for index in {tensor.index for tensor in op.present_inputs()}:
                readers.setdefault(index, []).append(op)
        return readers

    @cached_property
    def _results(self) -> frozenset[int]:
        return frozenset(tensor.index for tensor in self.results)

    def maker(self, tensor: TensorView) -> View | None:
        """The operator that makes `tensor`."""
        return self._makers.get(tensor.index)

    def readers(self, tensor: TensorView) -> Sequence[View]:
        """The operators that read `tensor`."""
        return self._readers.get(tensor.index, ())

    def is_result(self, tensor: TensorView) -> bool:
        """Whether `tensor` is read from outside."""
        return tensor.index in self._results

    def has_one_reader(self, tensor: TensorView) -> bool:
        """Whether one operator reads `tensor`, and nothing from outside."""
        return len(self.readers(tensor)) == 1 and not self.is_result(tensor)
