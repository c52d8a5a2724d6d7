"""From a specialised subgraph to the steps that an invoke runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.assignment import Assignment, assign, target_of
from tflite_ort.delegates import Delegate
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import Translator, lower
from tflite_ort.partition import NUMPY, Partition, partitions
from tflite_ort.schema import ModelError, Untranslatable
from tflite_ort.specialization import Specialized
from tflite_ort.steps import Run, kernel_step, sequence, session_step
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]


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
            steps.append(kernel_step(part, kernels, arrays))
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
        steps.append(session_step(part, lowered, by_name[part.runner], arrays, num_threads))
        translate_seconds += translated - started
        session_seconds += time.perf_counter() - translated
    return Plan(
        sequence(steps),
        arrays,
        _placements(graph, assignment, parts),
        (translate_seconds, session_seconds),
    )


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
        tensors.update((tensor.index, tensor) for tensor in part.inputs if tensor.is_variable)
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
