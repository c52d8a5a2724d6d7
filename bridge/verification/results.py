"""What a verification found, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import Difference, Tolerance
from tflite_ort.schema import Table
from tflite_ort.schema.file.tables import fields_of

Array = npt.NDArray[Any]


# Why an operator is not run alone, if its result is computed at load.
CONSTANT = "it depends on constants alone"
_LONG = 200  # characters of an option's text


class Verdict(StrEnum):
    """How far the outputs are from the reference's, the best first."""

    EXACT = "exact"
    SPREAD = "within LiteRT's own spread"
    TOLERANCE = "within the tolerance"
    ADDED = "operators right, small differences add up"
    KNOWN = "a known difference"
    INCONCLUSIVE = "inconclusive"
    OPERATOR = "an operator is off"
    OFF = "off"

    @property
    def is_alarm(self) -> bool:
        """Whether something is wrong."""
        return self in (Verdict.OPERATOR, Verdict.OFF)


@dataclass(frozen=True, slots=True)
class Scores:
    """How often the best classes of an output agree, among `samples`.

    Args:
        top1: the best class is the same.
        top5: the five best are the same ones, in any order; equal scores count as the same.
    """

    samples: int
    top1: int
    top5: int


@dataclass(frozen=True, slots=True)
class TensorResult:
    """One tensor that operators make, or an output.

    Args:
        index: in the primary subgraph.
        type: its TFLite type, such as ``"INT8"``.
        shape: as it was in the run.
        producer: the index of the operator that makes it; None for an input.
        accumulated: how far it is as the network runs; None where it cannot be read.
        isolated: how far it is when its operator alone is fed the reference's inputs.
        unreadable: why there is no accumulated difference.
    """

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    producer: int | None
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    accumulated: Difference | None = None
    isolated: Difference | None = None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One operator of the primary subgraph; indices as in the file, composites inlined.

    Args:
        name: such as ``"CONV_2D"``; of a custom operator its own name.
        options: by name, as text.
        inputs, outputs: tensor indices; an input that is left out is None.
        accumulated, isolated: of its worst output.
        spread: where `isolated` leaves the tolerance, how far LiteRT's own kernels are apart.
        within: whether `isolated` is within the tolerance or `spread`; None where it was not run
            alone, or rounds otherwise.
        together: the operators that could only be isolated with this one, itself included.
        not_isolated: why there is no isolated difference.
        known: what is known to differ there, a sentence; empty if nothing is.
        beyond: it differs only where no code stands for the true number.
        runs_on: ``"ort"``, ``"numpy"`` or ``"constant"``; empty in files of others.
        reason: why delegates refused it.
        milliseconds: of one invoke; None where no times were taken.
    """

    index: int
    name: str
    version: int
    options: Mapping[str, str]
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    accumulated: Difference | None = None
    isolated: Difference | None = None
    spread: Difference | None = None
    within: bool | None = None
    together: tuple[int, ...] = ()
    not_isolated: str = ""
    known: str = ""
    beyond: bool = False
    runs_on: str = ""
    reason: str = ""
    milliseconds: float | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it depends on constants alone, and is computed at load."""
        return self.not_isolated == CONSTANT

    @property
    def rounds_otherwise(self) -> bool:
        """Whether it leaves the limits by no more than another way to round explains."""
        return self.isolated is not None and self.within is None

    @property
    def label(self) -> str:
        """As nodes of an exported file are named."""
        return f"{self.name}_{self.index}"


@dataclass(frozen=True, slots=True)
class OutputResult:
    """One output of the model.

    Args:
        difference: over all samples and steps.
        spread: the largest difference between LiteRT's kernels, where it is installed.
        scores: of a vector of scores.
        steps: of a sequence, the difference at each step over all samples.
    """

    index: int
    name: str
    verdict: Verdict
    difference: Difference
    spread: Difference | None = None
    scores: Scores | None = None
    steps: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Values:
    """A tensor's values of the first sample, as the reference and the runtime gave them; the
    latter in the form of the former."""

    index: int
    name: str
    reference: Array
    got: Array


@dataclass(frozen=True, slots=True)
class CalledOperator:
    """One operator of a subgraph that others call; only where it ran is known.

    Args:
        subgraph, index: as in the file.
        outputs: names of its tensors.
        runs_on, reason: as of `OperatorResult`.
    """

    subgraph: int
    index: int
    name: str
    outputs: tuple[str, ...]
    runs_on: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What an ONNX file has of the operator that is named.

    Args:
        inputs, outputs: indices of the tensors that its values stand for, in the file's order.
        content: an ONNX file of its own; weights outside of the file stay there.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class RuntimeResult:
    """How far one runtime is from the reference.

    Args:
        runtime: its name, such as ``"interpreter"`` or a file's.
        reason: one or two sentences that say why the verdict is what it is.
        first: the index of the first operator whose isolated difference leaves the tolerance.
        variables: of a sequence, the state that lasts from step to step.
        error: why the runtime could not run at all; its verdict is then OFF.
        outputs_only: why nothing but outputs was compared; empty where more was.
        values: of the outputs, and of the worst tensor as the last one.
        fed: by index, the reference's values of what the operator `first` reads, of one sample.
        part: of an ONNX file, its nodes that stand for that operator.
        called: the operators of the other subgraphs, of this library's interpreter.
    """

    runtime: str
    verdict: Verdict
    reason: str
    outputs: tuple[OutputResult, ...] = ()
    variables: tuple[OutputResult, ...] = ()
    tensors: tuple[TensorResult, ...] = ()
    operators: tuple[OperatorResult, ...] = ()
    first: int | None = None
    error: str = ""
    outputs_only: str = ""
    values: tuple[Values, ...] = ()
    fed: Mapping[int, Array] = field(default_factory=dict)
    called: tuple[CalledOperator, ...] = ()
    part: Part | None = None

    @property
    def named(self) -> OperatorResult | None:
        """The operator `first` is the index of."""
        return next((each for each in self.operators if each.index == self.first), None)


@dataclass(frozen=True, slots=True)
class Results:
    """A model, and how far runtimes are from a reference on the same inputs.

    Args:
        model: its file name, or what stands for it.
        reference: the name of the runtime that counts as right.
        inputs: what was fed, in words.
        skipped: by runtime, why it did not take part.
        complete: False where the run was interrupted; what was done so far is here.
        versions: of the packages that took part.
        subgraphs: names of the model's subgraphs, the primary one first.
    """

    model: str
    reference: str
    inputs: str
    tolerance: Tolerance
    samples: int
    steps: int
    runtimes: tuple[RuntimeResult, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)
    subgraphs: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the runtimes'."""
        order = list(Verdict)
        return max((each.verdict for each in self.runtimes), key=order.index, default=Verdict.EXACT)


def option_texts(options: Any) -> dict[str, str]:
    """The options of an operator as text, by name; long texts are cut."""
    if isinstance(options, Table):
        pairs = ((name, getattr(options, name)) for name in fields_of(type(options)))
    elif isinstance(options, dict):
        pairs = ((str(name), value) for name, value in options.items())
    else:
        return {}
    return {name: _text(value) for name, value in pairs}


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes) or (isinstance(value, np.ndarray) and value.size > _LONG):
        return f"{len(value)} bytes" if isinstance(value, bytes) else f"{value.size} values"
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
