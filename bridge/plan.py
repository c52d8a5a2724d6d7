"""From a specialised subgraph to the steps that an invoke runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.delegates import Delegate
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import PORTABLE, Lowered, Target, Translator, lower
from tflite_ort.partition import NUMPY, Partition, partitions
from tflite_ort.schema import KernelError, ModelError, OperatorView, TensorView, Untranslatable
from tflite_ort.session import Session, exact_weight_type
from tflite_ort.specialization import Specialized, run_kernel
from tflite_ort.versioning.registry import Entry, Registry

Array = npt.NDArray[Any]
Run = Callable[[], None]

_TOP_BIT = np.uint8(128)  # flipping it moves int8 codes to uint8 and back


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
    """

    index: int
    operator: str
    version: int
    runs_on: str
    delegate: str = ""
    partition: int | None = None
    reason: str = ""
    subgraph: int = 0


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
        run: one inference over `arrays`.
        arrays: by tensor index, the fixed buffers of inputs, outputs and what crosses partitions.
        seconds: spent on translating and on making sessions.
    """

    run: Run
    arrays: dict[int, Array]
    placements: tuple[Placement, ...]
    seconds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which runner has which operator, and why the earlier ones do not.

    Args:
        whole: the translation of all operators, when one delegate takes every one of them.
    """

    runners: Mapping[int, str]
    reasons: Mapping[int, str]
    whole: Lowered | None = None


def assign(
    graph: Specialized, delegates: Sequence[Delegate], translators: Registry[Translator]
) -> Assignment:
    """Delegates claim operators in the order given; numpy kernels take the rest."""
    runners = {op.index: NUMPY for op in graph.operators}
    reasons: dict[int, list[str]] = {op.index: [] for op in graph.operators}
    remaining = list(graph.operators)
    for delegate in delegates:
        refusals = {op.index: delegate.refusal(op) for op in remaining}
        claimed = [op for op in remaining if refusals[op.index] is None]
        lowered = _trial(claimed, graph, translators, target_of(delegate))
        refusals.update(lowered.refusals)
        for op in remaining:
            reason = refusals[op.index]
            if reason is None:
                runners[op.index] = delegate.name
            elif reason not in reasons[op.index]:
                reasons[op.index].append(reason)
        if claimed and len(claimed) == len(graph.operators) and not lowered.refusals:
            return Assignment(runners, _joined(reasons), lowered)
        remaining = [op for op in remaining if runners[op.index] == NUMPY]
    return Assignment(runners, _joined(reasons))


def _joined(reasons: Mapping[int, Sequence[str]]) -> dict[int, str]:
    return {index: "; ".join(texts) for index, texts in reasons.items()}


def make_plan(
    graph: Specialized,
    delegates: Sequence[Delegate],
    translators: Registry[Translator],
    kernels: Registry[Kernel],
    num_threads: int,
) -> Plan:
    """Partition `graph` and make every partition ready to run.

    Raises:
        Untranslatable: operators that neither translate nor have a kernel; lists all of them.
        DelegateError: ONNX Runtime could not load a partition.
    """
    started = time.perf_counter()
    assignment = assign(graph, delegates, translators)
    _check_kernels(graph, assignment, kernels)
    parts = partitions(graph.operators, assignment.runners, graph.outputs)
    arrays = _buffers(graph, parts)
    by_name = {delegate.name: delegate for delegate in delegates}
    translate_seconds, session_seconds = time.perf_counter() - started, 0.0
    steps: list[Run] = []
    for part in parts:
        if part.runner == NUMPY:
            steps.append(_kernel_step(part, kernels, arrays))
            continue
        started = time.perf_counter()
        lowered = assignment.whole or lower(
            part.operators,
            part.inputs,
            part.outputs,
            translators,
            target=target_of(by_name[part.runner]),
        )
        translated = time.perf_counter()
        steps.append(_session_step(part, lowered, by_name[part.runner], arrays, num_threads))
        translate_seconds += translated - started
        session_seconds += time.perf_counter() - translated
    return Plan(
        _sequence(steps),
        arrays,
        _placements(graph, assignment, parts),
        (translate_seconds, session_seconds),
    )


def target_of(delegate: Delegate) -> Target:
    """What graphs for `delegate` are made for: on the CPU, what is fastest on this machine."""
    if delegate.name == "CPUExecutionProvider":
        return Target(exact_weight_type(), ort_cpu=True, carried_boundary=True)
    return PORTABLE


def _trial(
    operators: Sequence[OperatorView[Any]],
    graph: Specialized,
    translators: Registry[Translator],
    target: Target,
) -> Lowered:
    """All `operators` as one graph, to learn which of them translate."""
    parts = partitions(operators, {op.index: "trial" for op in operators}, graph.outputs)
    inputs = {tensor.index: tensor for part in parts for tensor in part.inputs}
    outputs = [tensor for part in parts for tensor in part.outputs]
    made = {out.index for op in operators for out in op.outputs}
    outside = [tensor for index, tensor in inputs.items() if index not in made]
    return lower(operators, outside, outputs, translators, target=target)


def _check_kernels(graph: Specialized, assignment: Assignment, kernels: Registry[Kernel]) -> None:
    missing = [
        f"  {op.label} version {op.version}: {assignment.reasons[op.index]}; no numpy kernel"
        for op in graph.operators
        if assignment.runners[op.index] == NUMPY and kernels.of(op) is None
    ]
    if missing:
        raise Untranslatable("These operators cannot run:\n" + "\n".join(missing))


def _buffers(graph: Specialized, parts: Sequence[Partition]) -> dict[int, Array]:
    """A zeroed array for every tensor that is bound to a session or given by the caller."""
    tensors = {index: graph.tensors[index] for index in (*graph.inputs, *graph.outputs)}
    for part in parts:
        if part.runner != NUMPY:
            tensors.update((tensor.index, tensor) for tensor in (*part.inputs, *part.outputs))
    try:
        return {
            index: np.full(tensor.shape, b"" if tensor.dtype == np.object_ else 0, tensor.dtype)
            for index, tensor in tensors.items()
            if not tensor.is_constant and not tensor.dynamic
        }
    except (MemoryError, ValueError) as error:
        raise ModelError(f"the model's tensors cannot be allocated: {error}") from error


def _session_step(
    part: Partition,
    lowered: Lowered,
    delegate: Delegate,
    arrays: Mapping[int, Array],
    num_threads: int,
) -> Run:
    provider = (delegate.name, dict(delegate.options)) if delegate.options else delegate.name
    session = Session(lowered.model, [provider], num_threads=num_threads)
    target = target_of(delegate)
    inputs = [_Crossing.of(tensor, arrays[tensor.index], target) for tensor in part.inputs]
    outputs = [_Crossing.of(tensor, arrays[tensor.index], target) for tensor in part.outputs]
    session.bind([x.carried for x in inputs], [x.carried for x in outputs])
    flips_in = [(x.codes, x.carried) for x in inputs if x.codes is not x.carried]
    flips_out = [(x.carried, x.codes) for x in outputs if x.codes is not x.carried]
    if not flips_in and not flips_out:
        return session.run

    def run() -> None:
        for codes, carried in flips_in:
            np.bitwise_xor(codes, _TOP_BIT, out=carried)
        session.run()
        for carried, codes in flips_out:
            np.bitwise_xor(carried, _TOP_BIT, out=codes)

    return run


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A tensor where it enters or leaves a session.

    Args:
        codes: the interpreter's array; as uint8 where the session carries it moved by 128.
        carried: what the session is bound to; the same array where nothing is moved.
    """

    codes: Array
    carried: Array

    @classmethod
    def of(cls, tensor: TensorView, array: Array, target: Target) -> _Crossing:
        if target.boundary_dtype(tensor) == array.dtype:
            return cls(array, array)
        return cls(array.view(np.uint8), np.zeros(array.shape, np.uint8))


def _kernel_step(part: Partition, kernels: Registry[Kernel], arrays: dict[int, Array]) -> Run:
    calls = []
    for op in part.operators:
        entry = kernels.of(op)
        assert entry is not None
        bound = replace(op, names=entry.inputs.bind(op).names)
        calls.append((bound, entry, entry.state(bound) if entry.state else None))
    fixed = frozenset(arrays)

    def run() -> None:
        with np.errstate(all="ignore"):
            for op, entry, state in calls:
                _run_kernel(op, entry, arrays, fixed, state)

    return run


def _run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    arrays: dict[int, Array],
    fixed: frozenset[int],
    state: Any,
) -> None:
    inputs = [_value(tensor, arrays) for tensor in op.inputs]
    for tensor, result in zip(op.outputs, run_kernel(op, entry, inputs, state), strict=True):
        if tensor.index not in fixed:
            arrays[tensor.index] = result
        elif result.shape == tensor.shape:
            arrays[tensor.index][...] = result
        else:
            raise KernelError(
                f"{op.label}: the kernel made shape {result.shape}, expected {tensor.shape}"
            )


def _value(tensor: TensorView | None, arrays: Mapping[int, Array]) -> Array | None:
    if tensor is None:
        return None
    return tensor.data if tensor.data is not None else arrays[tensor.index]


def _sequence(steps: Sequence[Run]) -> Run:
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run


def _placements(
    graph: Specialized, assignment: Assignment, parts: Sequence[Partition]
) -> tuple[Placement, ...]:
    rows = [Placement(op.index, op.name, op.version, "constant") for op in graph.folded]
    for number, part in enumerate(parts):
        for op in part.operators:
            in_numpy = part.runner == NUMPY
            rows.append(
                Placement(
                    op.index,
                    op.name,
                    op.version,
                    "numpy" if in_numpy else "ort",
                    "" if in_numpy else part.runner,
                    number,
                    assignment.reasons.get(op.index, ""),
                    op.subgraph,
                )
            )
    return tuple(sorted(rows, key=lambda row: row.index))
