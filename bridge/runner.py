"""One subgraph made ready for the shapes of its inputs, and run again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from tflite_ort.delegates import Delegate
from tflite_ort.plan import LoadTimes, Plan, make_plan
from tflite_ort.schema import Model, TensorView
from tflite_ort.schema.inlining import inlined
from tflite_ort.specialization import Shape, specialize
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the subgraphs of one interpreter share.

    Args:
        delegates: the first choice first; numpy kernels take what none of them does.
        num_threads: threads within an operator; 0 leaves it to ONNX Runtime.
    """

    delegates: Sequence[Delegate]
    resolver: OpResolver
    num_threads: int = 0


class SubgraphRunner:
    """A subgraph, its input shapes, and the plan for these shapes once it is allocated.

    Args:
        model: as read; composites are inlined here.
        subgraph: which of its subgraphs.

    Raises:
        ModelError: an operator cannot take the shapes that reach it; names the operator.
    """

    def __init__(self, model: Model, subgraph: int, runtime: Runtime) -> None:
        self.declared_tensors = model.subgraphs[subgraph].tensors
        self.subgraph = subgraph
        self._model = inlined(model, subgraph)
        self._runtime = runtime
        self._shapes: dict[int, Shape] = {}
        self._resized = False
        self.plan: Plan | None = None
        self._specialize()

    def resize(self, index: int, shape: Shape) -> None:
        """Give an input another shape; `allocate` has to follow."""
        self._shapes[index] = shape
        self.plan, self._resized = None, True

    def allocate(self) -> None:
        """Make the plan for the present shapes, unless it is there."""
        if self.plan is None:
            if self._resized:
                self._specialize()
                self._resized = False
            resolver = self._runtime.resolver
            self.plan = make_plan(
                self.graph,
                self._runtime.delegates,
                resolver.translators,
                resolver.kernels,
                self._runtime.num_threads,
            )

    def view(self, index: int) -> TensorView:
        """A tensor with the shape it has now: as resized, or as the last invoke made it."""
        view = self.graph.tensors[index]
        if index in self._shapes:
            return replace(view, shape=self._shapes[index])
        if view.dynamic and self.plan is not None and index in self.plan.arrays:
            return replace(view, shape=self.plan.arrays[index].shape)
        return view

    def value(self, index: int) -> Array | None:
        """A constant's array, or the buffer that is kept for a tensor; None where none is."""
        data = self.graph.tensors[index].data
        if data is not None or self.plan is None:
            return data
        return self.plan.arrays.get(index)

    def load_times(self, read: float) -> LoadTimes:
        """Of the last allocation; `read` is what reading the file took."""
        assert self.plan is not None
        translate, session = self.plan.seconds
        return LoadTimes(read, self._specialize_seconds + translate, session)

    def _specialize(self) -> None:
        started = time.perf_counter()
        self.graph = specialize(
            self._model, self.subgraph, self._shapes, self._runtime.resolver.kernels
        )
        self._specialize_seconds = time.perf_counter() - started
