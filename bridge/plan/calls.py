"""Plans of subgraphs that an operator calls, as functions of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tflite_ort.plan.memory import Memory
from tflite_ort.plan.runs import Run
from tflite_ort.schema import TensorView
from tflite_ort.state import State

if TYPE_CHECKING:
    from tflite_ort.fallback_kernels.control_flow import Call

Array = npt.NDArray[Any]


def called(
    run: Run, memory: Memory, inputs: Sequence[TensorView], outputs: Sequence[TensorView]
) -> Call:
    """The outputs of a plan for its inputs, variables not among them; arrays of their own.

    Args:
        run: one inference over `memory`.

    Raises:
        KernelError, DelegateError: from the call; an operator failed, or an input has another
            shape.
    """

    def call(given: Sequence[Array]) -> Sequence[Array]:
        # Of a tensor that is two inputs the last value stays.
        values = {tensor.index: (tensor, x) for tensor, x in zip(inputs, given, strict=True)}
        for tensor, array in values.values():
            memory.put(tensor, array)
        run()
        return [memory.value(tensor).copy() for tensor in outputs]

    return call


def once(call: Call, subgraph: int, state: State) -> Call:
    """A call that does nothing from the second time on."""
    initialized = state.initialized

    def call_once(given: Sequence[Array]) -> Sequence[Array]:
        if subgraph not in initialized:
            call(given)
            state.initialize(subgraph)
        return ()

    return call_once
