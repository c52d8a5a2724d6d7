"""Reports made by hand: with all that a report can have, and with names that mean harm."""

from __future__ import annotations

import dataclasses

import numpy as np

from tflite_ort.comparison.differences import Difference, Tolerance, difference
from tflite_ort.verification.report import Report
from tflite_ort.verification.results import (
    OperatorResult,
    OutputResult,
    RuntimeResult,
    Scores,
    TensorResult,
    Values,
    Verdict,
)

EXACT = Difference(64, 64, quanta=0.0, mean_quanta=0.0)
OFF = Difference(64, 12, 0.5, 0.125, 0.25)
TWO_QUANTA = Difference(64, 48, 0.25, 0.0625, 0.125, quanta=2.0, mean_quanta=0.25)
NOT_A_NUMBER = Difference(64, 60, 0.0, 0.0, 0.0, nan=3, infinite=1)
OTHER_SHAPE = Difference(0, 0, problem="shape (1, 2), the reference has (1, 3)")

# Names as a file can have them.
HARM = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "</script></style></title><svg onload=alert(1)>",
    "a\u202egnp.exe\u0000\u001b[31m\udc80",
    "x" * 100_000,
    "results",
    "__proto__",
    "",
)


def plentiful() -> Report:
    """Two runtimes: one with differences of every kind, one that could not run."""
    tensors = (
        _tensor(1, "conv/out", 0, "INT8", isolated=TWO_QUANTA, accumulated=TWO_QUANTA),
        _tensor(2, "softmax/out", 1, isolated=OFF, accumulated=OFF),
        _tensor(3, "fused", 2, unreadable="fused away in this runtime"),
        _tensor(4, "image", 3, isolated=NOT_A_NUMBER, accumulated=OTHER_SHAPE),
    )
    operators = (
        _operator(0, "CONV_2D", 1, TWO_QUANTA, TWO_QUANTA, "ort", 0.5, within=False),
        _operator(1, "SOFTMAX", 2, OFF, OFF, "ort", 0.25, within=True),
        _operator(2, "RELU", 3, None, None, "constant", None),
        _operator(3, "ADD", 4, NOT_A_NUMBER, OTHER_SHAPE, "numpy", 12.5, within=False),
    )
    outputs = (
        OutputResult(2, "softmax/out", Verdict.TOLERANCE, OFF, OFF, Scores(4, 4, 3), (EXACT, OFF)),
        OutputResult(4, "image", Verdict.OFF, OTHER_SHAPE),
    )
    off = RuntimeResult(
        "interpreter",
        Verdict.OFF,
        "The output image is off.",
        outputs,
        (OutputResult(5, "state", Verdict.EXACT, EXACT, steps=(EXACT, EXACT)),),
        tensors,
        operators,
        first=0,
        outputs_only="for a test",
        values=_values("image"),
    )
    dead = RuntimeResult("other.onnx", Verdict.OFF, "It did not run.", error="no such file")
    versions = {"tflite-ort": "0.1.0"}
    return Report(
        *("network.tflite", "litert", "random inputs", Tolerance(), 4, 2),
        runtimes=(off, dead),
        complete=False,
        versions=versions,
        skipped={"litert-reference": "it is not installed"},
    )


def hostile() -> Report:
    """Every text of `plentiful` is one of `HARM`, once."""
    runtimes = []
    for name in HARM:
        tensor = _tensor(1, name, 0, name, isolated=TWO_QUANTA, accumulated=TWO_QUANTA)
        unread = dataclasses.replace(tensor, index=2, accumulated=None, unreadable=name)
        operator = dataclasses.replace(
            _operator(0, name, 1, TWO_QUANTA, TWO_QUANTA, name, 0.5, within=False),
            options={name: name},
            reason=name,
            known=name,
            not_isolated=name,
        )
        steps = (EXACT, TWO_QUANTA)
        output = OutputResult(1, name, Verdict.OFF, TWO_QUANTA, steps=steps)
        runtimes.append(
            RuntimeResult(
                *(name, Verdict.OFF, name, (output,), (), (tensor, unread), (operator,), 0),
                error=name,
                outputs_only=name,
                values=_values(name),
            )
        )
    last = HARM[0]
    versions = {name: name for name in HARM}
    return Report(
        *(last, last, last, Tolerance(), 1, 1, tuple(runtimes)),
        versions=versions,
        skipped=versions,
    )


def _tensor(
    index: int,
    name: str,
    producer: int,
    type: str = "FLOAT32",
    *,
    accumulated: Difference | None = None,
    isolated: Difference | None = None,
    unreadable: str = "",
) -> TensorResult:
    scales, zero_points = ((0.125,), (3,)) if type == "INT8" else ((), ())
    return TensorResult(
        *(index, name, type, (1, 8, 8, 1), producer, scales, zero_points),
        *(accumulated, isolated, unreadable),
    )


def _operator(
    index: int,
    name: str,
    output: int,
    accumulated: Difference | None,
    isolated: Difference | None,
    place: str,
    milliseconds: float | None,
    within: bool | None = None,
) -> OperatorResult:
    return OperatorResult(
        *(index, name, 1, {"padding": "SAME"}, (output - 1, None), (output,)),
        accumulated=accumulated,
        isolated=isolated,
        within=within,
        together=(index, index + 1) if index == 2 else (),
        not_isolated="it is fused" if isolated is None else "",
        known="Halves may go either way." if index == 0 else "",
        runs_on=place,
        milliseconds=milliseconds,
    )


def _values(name: str) -> tuple[Values, ...]:
    """An image, a heat map with what is not finite, words, and a list as the worst tensor."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, 16, 24, 3)).astype(np.uint8)
    heat = np.outer(np.arange(12.0), np.arange(9.0)).astype(np.float32)
    spoilt = heat.copy()
    spoilt[0, :3] = [np.nan, np.inf, -np.inf]
    scores = rng.random(100, dtype=np.float32)
    words = np.array([b"a", b"b"], object)
    assert not difference(spoilt, heat).finite
    return (
        Values(10, name, image, 255 - image),
        Values(11, name, heat, spoilt),
        Values(12, name, words, words),
        Values(13, name, scores, scores + np.float32(0.01)),
    )
