"""From a specialised subgraph to the steps that an invoke runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record, replace
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import Lowered, lower
from tflite_ort.plan import failures
from tflite_ort.plan.assignment import Assignment, assign
from tflite_ort.plan.calls import called, once
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.custom_checks import check_step, checked_operators, with_checked_results
from tflite_ort.plan.memory import Memory, allocated
from tflite_ort.plan.partition import NUMPY, Partition, partitions, unread
from tflite_ort.plan.placements import Placement
from tflite_ort.plan.refusals import PartitionFailure, Refusals
from tflite_ort.plan.report import Report
from tflite_ort.plan.runs import Run, explained, sequence
from tflite_ort.plan.session_step import session_step
from tflite_ort.plan.steps import kernel_step
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.providers.provider import DeviceMemory
from tflite_ort.schema import (
    DelegateError,
    Op,
    OperatorView,
    Specialized,
    TensorView,
    Untranslatable,
)
from tflite_ort.specialize.called_subgraphs import CALLERS
from tflite_ort.versioning.registry import Registry

if TYPE_CHECKING:
    from tflite_ort.fallback_kernels.control_flow import Call


# Which tensors stay in a device's memory between the sessions of one delegate.


def with_places(
    parts: Sequence[Partition],
    results: Collection[int],
    variables: Collection[int],
    memory_of: Callable[[str], DeviceMemory | None],
) -> list[Partition]:
    """`parts` where what one session makes for another of the same delegate stays on its device;
    what is read elsewhere too is copied to the host's memory beside.

    Args:
        results: tensors that are wanted at the end.
        variables: tensors that any operator may set; they stay in the host's memory.
        memory_of: the memory of a backend's device, None for the host's. Asking may take a session,
            so it is asked only of backends that have something to hand on.
    """
    if len(parts) < 2:
        return list(parts)
    sessions = [part for part in parts if part.backend != NUMPY and _has_known_shapes(part)]
    places = _places(sessions, variables, memory_of)
    if not places:
        return list(parts)
    placed = [_placed(part, places) if part in sessions else part for part in parts]
    read = {t.index for part in placed for t in part.inputs if t.index not in part.places}
    return [_with_copies(part, read.union(results)) for part in placed]


def _places(
    sessions: Sequence[Partition],
    variables: Collection[int],
    memory_of: Callable[[str], DeviceMemory | None],
) -> dict[tuple[str, int], DeviceTensor]:
    """The device memory of tensors that pass between two sessions of one backend."""
    read: dict[str, set[int]] = {}
    for part in sessions:
        read.setdefault(part.backend, set()).update(tensor.index for tensor in part.inputs)
    places: dict[tuple[str, int], DeviceTensor] = {}
    for part in sessions:
        kept = read[part.backend].difference(variables)
        made = [t.index for t in part.outputs if t.index in kept and t.dtype != np.object_]
        memory = memory_of(part.backend) if made else None
        if memory is not None:
            places.update(((part.backend, index), DeviceTensor(memory)) for index in made)
    return places


def _placed(part: Partition, places: dict[tuple[str, int], DeviceTensor]) -> Partition:
    crossing = {tensor.index for tensor in (*part.inputs, *part.outputs)}
    own = {index: place for (name, index), place in places.items() if name == part.backend}
    return replace(part, places={index: own[index] for index in crossing & own.keys()})


def _with_copies(part: Partition, read: Collection[int]) -> Partition:
    return replace(
        part, copies=[t for t in part.outputs if t.index in part.places and t.index in read]
    )


def _has_known_shapes(part: Partition) -> bool:
    return not any(tensor.dynamic for tensor in (*part.inputs, *part.outputs))


Array = npt.NDArray[Any]


@record
class Plan:
    """What an invoke does.

    Args:
        run: one inference over `memory`.
        graph: what is run.
        memory: where the tensors stand.
        report: where each operator runs.
        seconds: spent on translating and on making sessions.
        unusable: by backend, why it can run nothing, as far as that is known now.
    """

    run: Run
    graph: Specialized
    memory: Memory
    report: Report
    seconds: tuple[float, float]
    unusable: Mapping[str, str]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where each operator runs, by subgraph and index."""
        return self.report.placements()

    @property
    def arrays(self) -> dict[int, Array]:
        """The buffers of inputs, outputs and tensors between partitions, by tensor index."""
        return self.memory.arrays

    def call(self) -> Call:
        """The plan as a function of its inputs."""
        return called(self.run, self.memory, *_passed(self.graph))


def make_plan(graph: Specialized, context: PlanContext) -> Plan:
    """Partition `graph` and make every partition ready to run.

    What a delegate fails to make ready goes to the next one, with a DelegateWarning.

    Raises:
        Untranslatable: operators that neither translate nor have a kernel; lists all of them.
        DelegateError: a delegate failed, and the context is strict.
    """
    refusals = Refusals(context.unusable)
    plan = _attempt(graph, context, refusals)
    while isinstance(plan, PartitionFailure):  # each time less is left that can fail
        if context.strict:
            raise plan.error from plan.error.__cause__
        refusals = refusals.after(plan, context.backends[plan.part.backend])
        if context.recorder is not None:
            context.recorder.spoil("a delegate failed, which it may not the next time")
        plan = _attempt(graph, context, refusals)
    if context.tuner is not None:
        context.tuner.save()
    return plan


def _attempt(
    graph: Specialized, context: PlanContext, refusals: Refusals
) -> Plan | PartitionFailure:
    """The plan, or the first partition that its delegate fails to make ready."""
    started = time.perf_counter()
    checked = checked_operators(graph, context.resolver)
    wanted = with_checked_results(graph, checked)
    assignment = assign(wanted, context, refusals)
    _check_kernels(graph, assignment, context.resolver.kernels)
    if assignment.whole is None:
        parts = partitions(graph.operators, assignment.backends, wanted.outputs)
    else:
        parts = [assignment.whole[0]]
    parts = with_places(parts, wanted.outputs, graph.variables, context.device_memory)
    if context.recorder is not None:
        context.recorder.begin(context.scope, assignment.backends)
    memory = allocated(wanted, parts, context.state, called=bool(context.scope))
    continued = context.continued or _continues(parts, checked)
    context = replace(context, unusable=refusals.unusable, continued=continued)
    in_numpy = NUMPY in [part.backend for part in parts]
    idle = unread(graph.operators, wanted.outputs) if in_numpy else frozenset[int]()
    seconds = [time.perf_counter() - started, 0.0]
    steps = _Steps(context, assignment, memory, seconds, idle)
    for part in parts:
        failure = steps.add(part)
        if failure is not None:
            return failure
    steps.add_checks(checked)
    if context.recorder is not None:
        context.recorder.end(context.scope, graph, memory, context.meter, _passed(graph))
    return steps.plan(graph, parts)


def _passed(graph: Specialized) -> tuple[list[TensorView], list[TensorView]]:
    """What a caller gives and takes, in order: variables are not among it."""
    inputs, outputs = (
        [graph.tensors[index] for index in indices if index not in graph.variables]
        for indices in (graph.inputs, graph.outputs)
    )
    return inputs, outputs


@record(frozen=False)
class _Steps:
    """The steps of a plan as they are made.

    Args:
        context: what these steps share; it learns what the plans of called subgraphs find.
        seconds: spent on translating and on making sessions by now.
        idle: operators whose results nothing needs: no kernel runs them.
        runs: the steps in order.
        providers: see `Report`.
        inner: `called` of `Report`.
    """

    context: PlanContext
    assignment: Assignment
    memory: Memory
    seconds: list[float]
    idle: frozenset[int]
    runs: list[Run] = field(default_factory=list)
    providers: dict[int, str] = field(default_factory=dict)
    inner: list[tuple[OperatorView[Any], Sequence[Placement]]] = field(default_factory=list)

    def plan(self, graph: Specialized, parts: Sequence[Partition]) -> Plan:
        """The plan of these steps, which are those of all `parts`."""
        reasons, backends = self.assignment.reasons, self.context.backends
        report = Report(graph, reasons, parts, backends, self.providers, self.inner)
        translating, making_sessions = self.seconds
        return Plan(
            sequence(self.runs),
            graph,
            self.memory,
            report,
            (translating, making_sessions),
            self.context.unusable,
        )

    def add(self, part: Partition) -> PartitionFailure | None:
        """Make the next step; what has failed if its delegate cannot."""
        if part.backend != NUMPY:
            return self._add_session(part)
        busy = [op for op in part.operators if op.index not in self.idle]
        if self.context.recorder is not None:
            self.context.recorder.add_kernels(self.context.scope, busy)
        if busy:
            calls = {op.index: self._calls(op) for op in busy if op.op in CALLERS}
            self.runs.append(kernel_step(busy, self.memory, calls, self.context.kernels))
        return None

    def add_checks(self, checked: Sequence[OperatorView[Any]]) -> None:
        """Compare what ONNX Runtime has made of these operators with what their kernels make."""
        for op in checked:
            if self.assignment.backends[op.index] != NUMPY:
                self.runs.append(check_step(op, self.context.resolver, self.memory))

    def _calls(self, op: OperatorView[Any]) -> list[Call]:
        """What the kernel of `op` is given to run each subgraph that it calls."""
        calls, is_once = [], op.op is Op.CALL_ONCE
        context = replace(self.context, continued=True)
        scope = f"{context.scope}/{op.index}"
        if is_once:  # for one run a session is not worth its while
            context = replace(context, delegates=())
        for number, body in enumerate(op.bodies):
            context = replace(context, unusable=self.context.unusable, scope=f"{scope}.{number}")
            plan = make_plan(body, context)
            self.context = replace(self.context, unusable=plan.unusable)
            self.inner.append((op, plan.placements))
            call = plan.call()
            calls.append(once(call, body.subgraph, self.context.state) if is_once else call)
        return calls

    def _add_session(self, part: Partition) -> PartitionFailure | None:
        self.context.meter.check("outputs", len(part.outputs), "the graph")
        started, delegate = time.perf_counter(), self.context.backends[part.backend]
        whole = self.assignment.whole
        lowered = self._lowered(part) if whole is None else whole[1]
        translated = time.perf_counter()
        try:
            step = session_step(part, lowered, delegate, self.memory, self.context)
        except DelegateError as error:
            return PartitionFailure(part, error, self.context.unusable)
        explain = partial(failures.explanation, part=part, memory=self.memory, context=self.context)
        self.runs.append(explained(step.run, explain))
        self.providers.update(step.providers)
        self.seconds[0] += translated - started
        self.seconds[1] += time.perf_counter() - translated
        return None

    def _lowered(self, part: Partition) -> Lowered:
        target = self.context.target(self.context.backends[part.backend])
        outputs, translators = [*part.outputs, *part.copies], self.context.resolver.translators
        return lower(part.operators, part.inputs, outputs, translators, target=target)


def _continues(parts: Sequence[Partition], checked: Sequence[OperatorView[Any]]) -> bool:
    """Whether an invoke has more to run than one partition, what runs once at its start aside."""
    return len(list(dropwhile(_runs_once, parts))) + len(checked) > 1


def _runs_once(part: Partition) -> bool:
    return all(op.op is Op.CALL_ONCE for op in part.operators)


def _check_kernels(graph: Specialized, assignment: Assignment, kernels: Registry[Kernel]) -> None:
    """Refuse a graph with operators that nothing runs.

    Raises:
        Untranslatable: there are some; the message lists all of them.
    """
    missing = [
        f"  {op.label} version {op.version}: "
        + "; ".join(filter(None, (assignment.reasons[op.index], "no numpy kernel")))
        for op in graph.operators
        if assignment.backends[op.index] == NUMPY and kernels.of(op) is None
    ]
    if missing:
        raise Untranslatable("These operators cannot run:\n" + "\n".join(missing))


# Who is told of the plans that run: how it is measured where operators run.

Observer = Callable[[Plan, PlanContext], None]

_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the context `observer` is called for each plan that is made, once, when the plan has
    run for the first time without an error. A plan that the cache has was told when it was made."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observed(plan: Plan, context: PlanContext) -> Plan:
    """`plan`, whose first run without an error is told to all who observe now."""
    if not _observers:
        return plan
    waiting = list(_observers)

    def run() -> None:
        plan.run()
        while waiting:
            waiting.pop()(plan, context)

    return replace(plan, run=run)
