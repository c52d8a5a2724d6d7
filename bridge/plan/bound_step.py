"""A session over the interpreter's arrays, with what is copied before and after it."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.runs import Run
from tflite_ort.plan.session_runs import session_run
from tflite_ort.providers.session import Session
from tflite_ort.schema import TensorView
from tflite_ort.state import mover

# Inputs that are handed on as they are, each with the output that is the same.
Passed = Sequence[tuple[TensorView, TensorView]]


def bound_run(
    session: Session | None,
    inputs: Sequence[BoundaryTensor],
    outputs: Sequence[BoundaryTensor],
    passed: Passed,
    memory: Memory,
    *,
    noted: bool,
) -> Run:
    """A run of `session` with int8 codes moved by 128 before and after it, and with `passed`
    handed on.

    Args:
        session: None where all is handed on.
        noted: more is to run in the invoke, which may fail: values are kept until its end.
    """
    run: Run = _nothing
    if session is not None:
        run = session_run(session, inputs, outputs, memory, noted=noted)
    moves_in = [mover(*x.moved) for x in inputs if x.bound is not x.array]
    moves_out = [mover(*reversed(x.moved)) for x in outputs if x.bound is not x.array]
    if not (moves_in or moves_out or passed):
        return run

    def run_with_copies() -> None:
        for move in moves_in:
            move()
        run()
        for move in moves_out:
            move()
        for source, target in passed:
            memory.put(target, memory.value(source))

    return run_with_copies


def _nothing() -> None:
    """A run of no operator."""
