"""What an interpreter tells of its plan: where each operator runs, and how long loading took."""

from __future__ import annotations

from tflite_ort.base.records import record


@record
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
        choice: with ``providers="auto"``, what each device took and why this one was chosen.
        precision: of floats in its session: ``"full"``, ``"bf16"`` or ``"fp16"``, or ``"own
            options"`` where those that the provider was given say something else. Empty in numpy,
            and where it is not known what the provider does.
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
    choice: str = ""
    precision: str = ""


@record
class LoadTimes:
    """Seconds: reading the file, translating it, making the ONNX Runtime sessions."""

    read: float
    translate: float
    session: float
