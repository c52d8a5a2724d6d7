"""From a specialised subgraph to the steps that an invoke runs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import currentframe
from itertools import dropwhile
from traceback import walk_stack
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels import Kernel
from tflite_ort.fallback_kernels.control_flow import Call
from tflite_ort.opmap import lower
from tflite_ort.plan.assignment import Assignment, assign
from tflite_ort.plan.custom_checks import check_step, checked_operators, with_checked_results
from tflite_ort.plan.device_memory import with_places
from tflite_ort.plan.failures import explained
from tflite_ort.plan.partition import NUMPY, Partition, partitions
from tflite_ort.plan.runtime import Runtime
from tflite_ort.plan.session_step import LeftToTheCPU, session_step
from tflite_ort.plan.steps import Memory, Run, kernel_step, sequence
from tflite_ort.providers.delegates import Delegate
from tflite_ort.providers.trials import check_provider
from tflite_ort.schema import (
    DelegateError,
    DelegateWarning,
    ModelError,
    Op,
    OperatorView,
    Specialized,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.sizes import known_product
from tflite_ort.specialize.called_subgraphs import CALLERS
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]

# Copying as much takes as long as binding another array.
_COPIED_BYTES = 1 << 15


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one operator runs.

    Args:
        index: the operator's position in its subgraph.
        operator: its TFLite name.
        runs_on: ``"ort"``, ``"numpy"``, or ``"constant"`` when its result was computed at load.
        delegate: the delegate that runs it; empty in numpy.
        partition: which partition it is part of; None for a constant.
        reason: why the delegates refused it; empty when the first one took it.
        provider: the execution provider that ONNX Runtime really gave its nodes to, with commas
            where there are several; empty in numpy.
    """

    index: int
    operator: str
    version: int
    runs_on: str
    delegate: str = ""
    partition: int | None = None
    reason: str = ""
    subgraph: int = 0
    provider: str = ""


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """Seconds: reading the file, translating it, making the ONNX Runtime sessions."""

    read: float
    translate: float
    session: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What an invoke does.

    Args:
        run: one inference over `memory`.
        graph: what is run.
        memory: where the tensors stand.
        seconds: spent on translating and on making sessions.
    """

    run: Run
    graph: Specialized
    memory: Memory
    placements: tuple[Placement, ...]
    seconds: tuple[float, float]

    @property
    def arrays(self) -> dict[int, Array]:
        """By tensor index, the buffers of inputs, outputs and what crosses partitions."""
        return self.memory.arrays

    def call(self, given: Sequence[Array]) -> Sequence[Array]:
        """The outputs for these inputs, variables not among them."""
        graph, memory = self.graph, self.memory
        inputs = [index for index in graph.inputs if index not in graph.variables]
        for index, array in zip(inputs, given, strict=True):
            memory.put(graph.tensors[index], array)
        self.run()
        outputs = [index for index in graph.outputs if index not in graph.variables]
        return [memory.value(graph.tensors[index]).copy() for index in outputs]


class _PartitionFailed(Exception):
    """A delegate could not make a partition ready."""

    def __init__(self, part: Partition, error: DelegateError) -> None:
        super().__init__(str(error))
        self.part, self.error = part, error


def make_plan(graph: Specialized, runtime: Runtime) -> Plan:
    """Partition `graph` and make every partition ready to run.

    What a delegate fails to make ready goes to the next one, with a DelegateWarning.

    Raises:
        Untranslatable: operators that neither translate nor have a kernel; lists all of them.
        DelegateError: a delegate failed, and the runtime is strict.
    """
    failures: dict[tuple[str, int], str] = {}
    while True:
        try:
            return _plan(graph, runtime, failures)
        except _PartitionFailed as failure:
            if runtime.strict:
                raise failure.error from failure.error.__cause__
            failures.update(_refusals(failure, runtime))


def _refusals(failure: _PartitionFailed, runtime: Runtime) -> dict[tuple[str, int], str]:
    """By runner and operator, why it does not run there; a provider that cannot run anything is
    noted in `runtime` instead."""
    part, error = failure.part, failure.error
    if isinstance(error, LeftToTheCPU):
        return {(part.runner, op.index): str(error) for op in error.operators}
    delegate, labels = runtime.runners[part.runner], ", ".join(op.label for op in part.operators)
    try:
        check_provider(delegate.provider)
    except DelegateError as error:
        reason = runtime.failed[part.runner] = f"{delegate.name} cannot be used: {error}"
        _warn(f"{reason}; the next delegate takes over")
        return {}
    reason = f"{delegate.name} failed: {failure}"
    _warn(f"{reason}; the next delegate takes over {labels}")
    return {(part.runner, op.index): reason for op in part.operators}


def _warn(text: str) -> None:
    """Warn of a delegate, at the line that called this library."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_stack(currentframe())]
    ours = [level for level, name in enumerate(modules, 1) if name.startswith("tflite_ort.")]
    warnings.warn(text, DelegateWarning, stacklevel=ours[-1] + 1)


def _plan(graph: Specialized, runtime: Runtime, failures: Mapping[tuple[str, int], str]) -> Plan:
    started = time.perf_counter()
    translators, kernels = runtime.resolver.translators, runtime.resolver.kernels
    checked = checked_operators(graph, runtime.resolver)
    wanted = with_checked_results(graph, checked)
    assignment = assign(wanted, runtime, failures)
    _check_kernels(graph, assignment, kernels)
    parts = partitions(graph.operators, assignment.runners, wanted.outputs)
    parts = with_places(parts, wanted.outputs, graph.variables, runtime)
    more = len(list(dropwhile(_runs_once, parts))) + len(checked) > 1
    runtime = replace(runtime, continued=runtime.continued or more)
    memory = _memory(wanted, parts, runtime)
    translate_seconds, session_seconds = time.perf_counter() - started, 0.0
    steps: list[Run] = []
    rows: list[Placement] = []
    providers: dict[int, str] = {}
    for part in parts:
        if part.runner == NUMPY:
            calls = {}
            for op in part.operators:
                if op.op in CALLERS:
                    plans = _plans(op, runtime)
                    calls[op.index] = [_call(op, plan, runtime) for plan in plans]
                    rows += [_because(op, row) for plan in plans for row in plan.placements]
            steps.append(kernel_step(part, memory, calls, runtime))
            continue
        runtime.budgets.check("outputs", len(part.outputs), "the graph")
        started, delegate = time.perf_counter(), runtime.runners[part.runner]
        lowered = assignment.whole or lower(
            part.operators,
            part.inputs,
            [*part.outputs, *part.copies],
            translators,
            target=runtime.target(delegate),
        )
        translated = time.perf_counter()
        try:
            step = session_step(part, lowered, delegate, memory, runtime)
        except DelegateError as error:
            raise _PartitionFailed(part, error) from error
        steps.append(explained(step.run, part, memory, runtime))
        providers.update(step.providers)
        translate_seconds += translated - started
        session_seconds += time.perf_counter() - translated
    for op in checked:
        if assignment.runners[op.index] != NUMPY:
            steps.append(check_step(op, runtime.resolver, memory))
    rows += _placements(graph, assignment, parts, runtime.runners, providers)
    rows.sort(key=lambda row: (row.subgraph, row.index))
    return Plan(sequence(steps), graph, memory, tuple(rows), (translate_seconds, session_seconds))


def _runs_once(part: Partition) -> bool:
    return all(op.op is Op.CALL_ONCE for op in part.operators)


def _plans(op: OperatorView[Any], runtime: Runtime) -> list[Plan]:
    """A plan for each subgraph that `op` calls."""
    if op.op is Op.CALL_ONCE:  # for one run a session is not worth its while
        runtime = replace(runtime, delegates=())
    runtime = replace(runtime, continued=True)
    return [make_plan(body, runtime) for body in op.bodies]


def _call(op: OperatorView[Any], plan: Plan, runtime: Runtime) -> Call:
    """What the kernel of a caller is given to run a subgraph."""
    if op.op is not Op.CALL_ONCE:
        return plan.call
    done = runtime.state.initialized

    def call_once(given: Sequence[Array]) -> Sequence[Array]:
        if plan.graph.subgraph not in done:
            plan.call(given)
            runtime.state.initialize(plan.graph.subgraph)
        return ()

    return call_once


def _check_kernels(graph: Specialized, assignment: Assignment, kernels: Registry[Kernel]) -> None:
    missing = [
        f"  {op.label} version {op.version}: {assignment.reasons[op.index]}; no numpy kernel"
        for op in graph.operators
        if assignment.runners[op.index] == NUMPY and kernels.of(op) is None
    ]
    if missing:
        raise Untranslatable("These operators cannot run:\n" + "\n".join(missing))


def _memory(graph: Specialized, parts: Sequence[Partition], runtime: Runtime) -> Memory:
    """A zeroed array for every tensor that a session makes or the caller gives or takes; what a
    kernel makes for a session is copied into one where that is less work than binding it anew."""
    variables = {
        index: runtime.state.variable(key, graph.tensors[index])
        for index, key in graph.variables.items()
    }
    tensors = {index: graph.tensors[index] for index in (*graph.inputs, *graph.outputs)}
    for part in parts:
        if part.runner != NUMPY:
            large = {tensor.index for tensor in part.inputs if _bytes(tensor) > _COPIED_BYTES}
            tensors.update((t.index, t) for t in part.on_host if t.index not in large)
    try:
        arrays = {
            index: _blank(tensor)
            for index, tensor in tensors.items()
            if not tensor.is_constant and not tensor.dynamic and index not in variables
        }
    except (MemoryError, ValueError) as error:
        raise ModelError(f"the model's tensors cannot be allocated: {error}") from error
    return Memory(arrays, variables)


def _blank(tensor: TensorView) -> Array:
    """Zeros, or empty strings; numbers take memory only as they are written."""
    if tensor.dtype == np.object_:
        return np.full(tensor.shape, b"", tensor.dtype)
    return np.zeros(tensor.shape, tensor.dtype)


def _bytes(tensor: TensorView) -> int:
    return known_product(tensor.shape) * tensor.dtype.itemsize


def _because(op: OperatorView[Any], row: Placement) -> Placement:
    """`row` of a subgraph that `op` calls."""
    once = op.op is Op.CALL_ONCE and row.runs_on == "numpy"
    return replace(row, reason=f"{op.label} runs it once") if once else row


def _placements(
    graph: Specialized,
    assignment: Assignment,
    parts: Sequence[Partition],
    delegates: Mapping[str, Delegate],
    providers: Mapping[int, str],
) -> list[Placement]:
    rows = [_row(op, "constant") for op in graph.folded]
    for number, part in enumerate(parts):
        for op in part.operators:
            reason = assignment.reasons.get(op.index, "")
            if part.runner == NUMPY:
                if op.op is Op.CALL_ONCE:
                    reason = "it runs once, which is not worth a session"
                rows.append(_row(op, "numpy", "", number, reason))
            else:
                name = delegates[part.runner].name
                used = providers.get(op.index, name)  # no session where all is handed on
                rows.append(replace(_row(op, "ort", name, number, reason), provider=used))
                rows += [replace(row, provider=used) for row in _inside(op, name, number)]
    return rows


def _inside(op: OperatorView[Any], delegate: str, partition: int) -> list[Placement]:
    """The operators of the subgraphs that are translated with `op`, which calls them."""
    rows = []
    for body in op.bodies if op.op in CALLERS else ():
        rows += [_row(inner, "constant") for inner in body.folded]
        for inner in body.operators:
            rows.append(_row(inner, "ort", delegate, partition))
            rows += _inside(inner, delegate, partition)
    return rows


def _row(op: OperatorView[Any], runs_on: str, *details: Any) -> Placement:
    row = Placement(op.index, op.name, op.version, runs_on, *details)
    return replace(row, subgraph=op.subgraph)
