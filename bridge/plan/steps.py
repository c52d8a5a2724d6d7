"""What an invoke runs: bound sessions and numpy kernels over the interpreter's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels import Kernel
from tflite_ort.fallback_kernels.control_flow import Call
from tflite_ort.plan.partition import Partition, only_sets
from tflite_ort.plan.runtime import Runtime
from tflite_ort.schema import KernelError, Op, OperatorView, StateError, TensorView
from tflite_ort.specialize.folding import run_kernel
from tflite_ort.state import Variable
from tflite_ort.versioning.registry import Entry

Array = npt.NDArray[Any]
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Memory:
    """Where tensors stand between steps, by tensor index.

    Args:
        arrays: of inputs, outputs and what crosses partitions, whose shapes are known; and, while
            an invoke runs, what kernels made.
        variables: what lasts from one invoke to the next.
        constants: those that kernels read, 4- and 2-bit ones unpacked.
    """

    arrays: dict[int, Array]
    variables: Mapping[int, Variable]
    constants: dict[int, Array] = field(default_factory=dict)

    def value(self, tensor: TensorView) -> Array:
        """The present value of a tensor."""
        if tensor.is_constant:
            return self._constant(tensor)
        if tensor.index not in self.variables:
            return self.arrays[tensor.index]
        value = self.variables[tensor.index].value
        if value is None:
            raise unassigned(tensor)
        return value

    def _constant(self, tensor: TensorView) -> Array:
        """Its values, unpacked once."""
        values = self.constants.get(tensor.index)
        if values is None:
            values = tensor.data
            assert values is not None
            self.constants[tensor.index] = values
        return values

    def put(self, tensor: TensorView, array: Array) -> None:
        """Give an input its value; one that is known to be constant has it."""
        if tensor.is_constant:
            return
        kept = None if tensor.dynamic else self.arrays.get(tensor.index)
        if kept is None:
            self.arrays[tensor.index] = array
        elif kept.shape == array.shape:
            kept[...] = array
        else:
            raise KernelError(
                f"{tensor.name!r} is given shape {list(array.shape)}, expected {list(kept.shape)}"
            )


def unassigned(tensor: TensorView) -> StateError:
    return StateError(f"variable {tensor.name!r} is read before it has a value")


def kernel_step(
    part: Partition,
    memory: Memory,
    subgraphs: Mapping[int, Sequence[Call]],
    runtime: Runtime,
) -> Run:
    """The kernels of a partition in turn.

    Args:
        subgraphs: by operator index, those that it calls; they reach the variables themselves.
    """
    if all(op.op is Op.CALL_ONCE for op in part.operators):  # most often there is nothing to do
        return sequence([partial(subgraphs[op.index][0], ()) for op in part.operators])
    calls: list[tuple[OperatorView[Any], Entry[Kernel], Any]] = []
    for op in part.operators:
        entry = runtime.resolver.kernels.of(op)
        assert entry is not None
        if op.index in subgraphs:
            given = op.inputs[: len(op.inputs) - len(op.bodies[0].variables)]
            calls.append((replace(op, inputs=given), entry, subgraphs[op.index]))
            continue
        bound = replace(op, names=entry.inputs.bind(op).names)
        calls.append((bound, entry, entry.state(bound) if entry.state else None))
    fixed = frozenset(memory.arrays)
    step = _run_kernel if runtime.profile is None else runtime.profile.timed(_run_kernel)

    def run() -> None:
        with np.errstate(all="ignore"):
            for op, entry, state in calls:
                for body in op.bodies:
                    runtime.state.reset(body.subgraph)
                step(op, entry, memory, fixed, state)

    return run


def _run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    memory: Memory,
    fixed: frozenset[int],
    state: Any,
) -> None:
    inputs = [
        None if tensor is None or only_sets(op, tensor) else memory.value(tensor)
        for tensor in op.inputs
    ]
    results = run_kernel(op, entry, inputs, state)
    variables = op.variables()
    for tensor, result in zip(op.outputs, results, strict=False):
        if not tensor.dynamic and result.shape != tensor.shape:
            raise KernelError(
                f"{op.label}: the kernel made shape {result.shape}, expected {tensor.shape}"
            )
        if tensor.index in fixed:
            memory.arrays[tensor.index][...] = result
        else:  # a result may be the variable itself, which is about to change
            memory.arrays[tensor.index] = result.copy() if variables else result
    for tensor, result in zip(variables, results[len(op.outputs) :], strict=True):
        memory.variables[tensor.index].set(result)


def sequence(steps: Sequence[Run]) -> Run:
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run
