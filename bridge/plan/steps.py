"""What an invoke runs: bound sessions and numpy kernels over the interpreter's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.partition import only_sets
from tflite_ort.plan.runs import Run, sequence
from tflite_ort.schema import KernelError, Op, OperatorView
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.specialize.computed_sizes import check_results, has_computed_sizes
from tflite_ort.specialize.folding import run_kernel
from tflite_ort.state import State
from tflite_ort.versioning.registry import Entry, Registry

if TYPE_CHECKING:
    from tflite_ort.fallback_kernels.control_flow import Call
    from tflite_ort.plan.profiling import Profile


@record
class Kernels:
    """What numpy steps need beside their operators.

    Args:
        meter: bounds results whose sizes are not known yet.
        profile: where the time of each operator is noted, if it is.
    """

    registry: Registry[Kernel]
    state: State
    meter: Meter
    profile: Profile | None = None


def kernel_step(
    operators: Sequence[OperatorView[Any]],
    memory: Memory,
    subgraphs: Mapping[int, Sequence[Call]],
    around: Kernels,
) -> Run:
    """The kernels of operators in turn.

    Args:
        subgraphs: by operator index, those that it calls; they reach the variables themselves.
    """
    if all(op.op is Op.CALL_ONCE for op in operators):  # most often there is nothing to do
        return sequence([partial(subgraphs[op.index][0], ()) for op in operators])
    calls = [_call(op, around, subgraphs.get(op.index)) for op in operators]
    fixed, state_of_all = frozenset(memory.arrays), around.state
    step = _run_kernel if around.profile is None else around.profile.timed(_run_kernel)

    def run() -> None:
        with np.errstate(all="ignore"):
            for op, entry, state, meter in calls:
                for body in op.bodies:
                    state_of_all.reset(body.subgraph)
                step(op, entry, memory, fixed, state, meter)

    return run


def _call(
    op: OperatorView[Any], around: Kernels, subgraphs: Sequence[Call] | None
) -> tuple[OperatorView[Any], Entry[Kernel], Any, Meter | None]:
    """An operator as its kernel gets it, the kernel, its state or the subgraphs it calls, and what
    bounds its results if their sizes are not known yet."""
    kernels = around.registry
    entry = kernels.of(op)
    if entry is None:
        raise KernelError(f"{op.label} version {op.version} has no numpy kernel")
    if subgraphs is not None:
        return without_variables(op), entry, subgraphs, None
    bound = replace(op, names=entry.inputs.bind(op).names)
    state = entry.state(bound) if entry.state else None
    return bound, entry, state, around.meter if has_computed_sizes(op, kernels) else None


def without_variables(op: OperatorView[Any]) -> OperatorView[Any]:
    """A caller as its kernel gets it: what it calls reaches the variables itself."""
    return replace(op, inputs=op.inputs[: len(op.inputs) - len(op.bodies[0].variables)])


def _run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    memory: Memory,
    fixed: frozenset[int],
    state: Any,
    meter: Meter | None,
) -> None:
    inputs = [
        None if tensor is None or only_sets(op, tensor) else memory.value(tensor)
        for tensor in op.inputs
    ]
    if meter is not None:
        check_results(op, inputs, meter)
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
            memory.hold(tensor, result.copy() if variables else result)
    for tensor, result in zip(variables, results[len(op.outputs) :], strict=True):
        memory.variables[tensor.index].set(result)
