"""One subgraph made ready for the shapes of its inputs, and run again and again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy.typing as npt

from tflite_ort.plan.build import Plan, make_plan
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.observers import observed
from tflite_ort.plan.profiling import OperatorTime, Profile
from tflite_ort.plan.report import LoadTimes
from tflite_ort.schema import Specialized, TensorType
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.specialize.specialization import Shape, specialize
from tflite_ort.state import State, Variable, initial_value

Array = npt.NDArray[Any]


class SubgraphExecutor:
    """A subgraph, its input shapes, and the plan for these shapes once it is allocated.

    Args:
        subgraph: which of the subgraphs of the context's model.
        context: what the interpreter's plans share.
    """

    def __init__(self, subgraph: int, context: PlanContext) -> None:
        self.subgraph = subgraph
        self._model = context.resolver.model
        self._declared = self._model.subgraphs[subgraph]
        self._context = context
        self._shapes: dict[int, Shape] = {}
        self._resized: set[int] = set()
        self._graph: Specialized | None = None
        self._arrays: dict[int, Array] = {}
        self._last_shapes: dict[int, Shape] = {}
        self._variables: Mapping[int, Variable] = {}
        self.plan: Plan | None = None

    def resize(self, index: int, shape: Shape) -> None:
        """Give a tensor another shape; `allocate` has to follow unless it has it already."""
        if index in self._arrays and self._arrays[index].shape == shape:
            return
        self._shapes[index] = shape
        self._resized.add(index)
        self._arrays = {key: array for key, array in self._arrays.items() if key != index}
        self.plan = None

    def allocate(self) -> None:
        """Make the plan for the present shapes, unless it is there.

        Raises:
            ModelError: an operator cannot take the shapes that reach it; names the operator.
        """
        if self.plan is not None:
            return
        if self._graph is None or self._resized:
            self._specialize()
            self._context.state.reset(self.subgraph)
        assert self._graph is not None
        graph = _with_all_results(self._graph) if self._context.keep_all else self._graph
        self.plan = observed(make_plan(graph, self._context), self._context)
        self._context = replace(self._context, unusable=self.plan.unusable)
        self._last_shapes |= {index: array.shape for index, array in self._arrays.items()}
        self._arrays, self._variables = self.plan.arrays, self.plan.memory.variables
        self._resized.clear()

    def reset_variables(self) -> None:
        """Give the variable tensors of all subgraphs their first value again, and inputs that the
        file calls variables."""
        self._context.state.reset()
        for index in self._declared.inputs:
            if self._graph is not None and self._declared.tensors[index].is_variable:
                self.assign(index, initial_value(self._graph.tensors[index]))

    def shape(self, index: int) -> Shape:
        """The shape a tensor has now: as resized, as the last invoke made it, or as declared."""
        if index in self._resized:
            return self._shapes[index]
        if index in self._arrays:
            return self._arrays[index].shape
        if self._graph is not None and not self._graph.tensors[index].dynamic:
            return self._graph.tensors[index].shape
        return self._last_shapes.get(index, self._declared.tensors[index].shape)

    def element_type(self, index: int) -> TensorType:
        """The element type a tensor has now: as its operator makes it, or as declared."""
        tensors = self._declared.tensors if self._graph is None else self._graph.tensors
        return tensors[index].type

    def array(self, index: int) -> Array | None:
        """The buffer that is kept for a tensor, also while `allocate` has to follow."""
        if index in self._variables:
            return self._variables[index].value
        return self._arrays.get(index)

    def assign(self, index: int, value: Array) -> None:
        """Copy `value` into the buffer that is kept for a tensor."""
        if index in self._variables:
            self._variables[index].assign(value)
        else:
            self._arrays[index][...] = value

    def constant(self, index: int) -> Array | None:
        """The value of a tensor that is the same at every invoke; None for any other."""
        if self._graph is None:
            return tensor_views(self._model, self.subgraph)[index].data
        return self._graph.tensors[index].data

    def load_times(self, read: float) -> LoadTimes:
        """Of the last allocation; `read` is what reading the file took."""
        assert self.plan is not None
        translate, session = self.plan.seconds
        return LoadTimes(read, self._specialize_seconds + translate, session)

    def profiled(self, runs: int) -> Sequence[OperatorTime]:
        """The times of `runs` invokes over the present inputs, by a plan and a state of their own;
        tensors have to be allocated."""
        assert self._graph is not None
        with TemporaryDirectory() as folder:
            profile = Profile(Path(folder))
            plan = make_plan(self._graph, replace(self._context, profile=profile, state=State()))
            for index in self._graph.inputs:
                array = self.array(index)
                if array is not None and index not in self._variables:
                    plan.memory.put(self._graph.tensors[index], array)
            for _ in range(runs):
                plan.run()
            return profile.times()

    def _specialize(self) -> None:
        started = time.perf_counter()
        self._graph = specialize(
            self._model,
            self.subgraph,
            self._shapes,
            self._context.resolver.kernels,
            self._context.resolver.preparers(),
        )
        self._specialize_seconds = time.perf_counter() - started


def _with_all_results(graph: Specialized) -> Specialized:
    """`graph` with everything that its operators make as outputs, its own outputs first."""
    made = [out.index for op in graph.operators for out in op.outputs]
    return replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *made))))
