"""One runtime held against the reference: collected piece by piece, a result at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy.typing as npt

from tflite_ort.comparison.differences import (
    Difference,
    Tolerance,
    badness,
    difference,
    merged,
    worst,
)
from tflite_ort.plan.placements import Placement
from tflite_ort.schema import BridgeError, Model, OperatorView, TensorView
from tflite_ort.verification.closer import Closer, Look
from tflite_ort.verification.disk_arrays import ArrayFile, DiskArrays
from tflite_ort.verification.extraction import constant_operators
from tflite_ort.verification.judgement import Outputs, is_within, judged, named
from tflite_ort.verification.known import known_difference
from tflite_ort.verification.onnx_runtime import OnnxRuntime
from tflite_ort.verification.real_numbers import RealNumbers
from tflite_ort.verification.results import (
    CONSTANT,
    CalledOperator,
    OperatorResult,
    OutputResult,
    Part,
    RuntimeResult,
    TensorResult,
    Values,
    Verdict,
    option_texts,
)
from tflite_ort.verification.runtimes import (
    Litert,
    NotIsolated,
    OurInterpreter,
    Runtime,
    Sample,
    Tensors,
    results,
)

Array = npt.NDArray[Any]
# Told of each piece of work: what, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]
InFloats = Callable[[Sequence[OperatorView[Any]]], Litert | OurInterpreter | None]


@dataclass
class Reference:
    """What counts as right.

    Args:
        outputs: of each sample and run, outputs and variables by tensor index.
        tensors: of each sample, all after its first run, the inputs too.
        error: why `tensors` has nothing but inputs and outputs.
    """

    name: str
    samples: Sequence[Sample]
    outputs: list[list[DiskArrays]] = field(default_factory=list)
    tensors: list[DiskArrays] = field(default_factory=list)
    error: str = ""
    _file: ArrayFile = field(default_factory=ArrayFile)

    def add(self, runtime: Runtime, sample: Sample) -> None:
        """Run one more sample."""
        runs = [self._file.keep(found.items()) for found in runtime.outputs(sample)]
        try:
            inside = self._file.keep(runtime.tensors(sample))
        except BridgeError as error:
            inside, self.error = self._file.keep(()), str(error)
        inputs = self._file.keep(sample[0].items())
        self.outputs.append(runs)
        self.tensors.append(inputs.over(runs[0].over(inside)))

    def close(self) -> None:
        """Forget all values."""
        self._file.close()


@dataclass
class Comparing:
    """How far a runtime is from the reference, as far as it is known.

    Args:
        views, operators: of the primary subgraph.
        spread: of outputs by tensor index, how far LiteRT's kernels are apart.
        kernels: LiteRT with its other kernels, to measure the spread of one operator; none without
            LiteRT.
        floats: a runtime of the reference's kind in which the hybrid layers among some operators
            multiply floats; None where there are none.
    """

    model: Model
    views: Sequence[TensorView]
    operators: Sequence[OperatorView[Any]]
    runtime: Runtime
    reference: Reference
    tolerance: Tolerance
    spread: Mapping[int, Difference]
    kernels: Sequence[Litert]
    floats: InFloats
    error: str = ""

    def __post_init__(self) -> None:
        self._outputs = Outputs(self.model, self.views, self.reference.outputs)
        self._accumulated: dict[int, list[Difference]] = defaultdict(list)
        self._isolated: dict[int, Difference] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        made = (
            (tensor.index, op.index) for op in reversed(self.operators) for tensor in op.outputs
        )
        self._producers = dict(made)  # of several, the first
        self._together: dict[int, tuple[int, ...]] = {}
        self._reasons: dict[int, str] = {}
        self._looks: dict[int, Look] = {}
        self._explained = False
        self._closer = Closer(
            self.operators,
            self.tolerance,
            self.reference.tensors,
            self.kernels,
            self.floats(self.operators),
            RealNumbers(self.model),
        )
        self._placed: dict[int, tuple[str, str]] = {}
        self._called: list[CalledOperator] = []
        self._times: Mapping[str, float] = {}
        self._worst: tuple[tuple[bool, float], Values] | None = None

    # Collecting --------------------------------------------------------------------------------

    def run(self, progress: Progress, profiled_runs: int = 0) -> None:
        """Compare all; what fails is noted as the runtime's error."""
        try:
            self._run_whole(progress)
            self._run_operators(progress)
            self._explained = self._is_explained()
            if isinstance(self.runtime, OurInterpreter):
                self._note_places(self.runtime, profiled_runs)
        except BridgeError as error:
            self.error = str(error)

    def _run_whole(self, progress: Progress) -> None:
        count = len(self.reference.samples)
        for number, sample in enumerate(self.reference.samples):
            progress(f"{self.runtime.name}: network", number, count)
            self._compare_tensors(number, sample)
            for step, found in enumerate(self.runtime.outputs(sample)):
                self._outputs.add(number, step, found)
        progress(f"{self.runtime.name}: network", count, count)

    def _compare_tensors(self, number: int, sample: Sample) -> None:
        known = self.reference.tensors[number]
        made = set(results(self.model))
        found: dict[int, Difference] = {}
        for index, got in self.runtime.tensors(sample, known):
            if index in known and index in made:
                right = known[index]
                found[index] = self._difference(index, got, right)
                self._shapes[index] = right.shape
        for index, each in found.items():
            self._accumulated[index].append(each)

    def _run_operators(self, progress: Progress) -> None:
        fixed, count = constant_operators(self.model), len(self.operators)
        given = self.reference.tensors
        for op in self.operators:
            progress(f"{self.runtime.name}: operators", op.index, count)
            if op.index in fixed:
                self._reasons[op.index] = CONSTANT
                continue
            try:
                found = self.runtime.isolated(op.index, given)
                self._together[op.index] = found.operators
                self._compare_operator(op, found.outputs)
            except NotIsolated as reason:
                self._reasons[op.index] = str(reason)
            except BridgeError as error:
                self._reasons[op.index] = f"alone it fails: {error}"
        progress(f"{self.runtime.name}: operators", count, count)

    def _compare_operator(self, op: OperatorView[Any], outputs: Iterator[Tensors]) -> None:
        by_tensor: dict[int, list[Difference]] = {tensor.index: [] for tensor in op.outputs}
        for got, right in zip(outputs, self.reference.tensors, strict=True):
            for index, found in by_tensor.items():
                if index in got and index in right:
                    found.append(self._noted(index, got[index], right[index]))
        for index, found in by_tensor.items():
            whole = merged(found)
            if whole is None:
                self._reasons.setdefault(op.index, "the reference has no value of what it makes")
            else:
                self._isolated[index] = whole
        if not self._is_near(op):
            run = partial(self.runtime.isolated, op.index, self.reference.tensors)
            ran = self._together[op.index]
            self._looks[op.index] = self._closer.look(op, ran, self._found(op), run)

    def _is_explained(self) -> bool:
        """Whether hybrid layers that round otherwise are why the outputs are off: with floats in
        them the reference gives these outputs, or is as far from it as the runtime is."""
        hybrid = [self.operators[at] for at, look in self._looks.items() if look.hybrid]
        tolerance, samples = self.tolerance, self.reference.samples
        found = [*chain(*self._outputs.results(self.spread, tolerance))]
        other = self.floats(hybrid)
        if other is None or all(each.verdict is not Verdict.OFF for each in found):
            return False
        try:
            right = [list(other.outputs(sample)) for sample in samples]
        except BridgeError:
            return False
        ours, rounded = (Outputs(self.model, self.views, right) for _ in range(2))
        for number, sample in enumerate(samples):
            for step, got in enumerate(self.runtime.outputs(sample)):
                ours.add(number, step, got)
                rounded.add(number, step, self.reference.outputs[number][step])
        spread = {each.index: each.difference for each in chain(*rounded.results({}, tolerance))}
        return all(
            each.verdict is not Verdict.OFF for each in chain(*ours.results(spread, tolerance))
        )

    def _ran(self, op: OperatorView[Any]) -> list[OperatorView[Any]]:
        """The operators that were run as `op`."""
        return [self.operators[at] for at in self._together.get(op.index, (op.index,))]

    def _within(self, op: OperatorView[Any], isolated: Difference | None) -> bool | None:
        """Whether `op` alone is right; None where it is unknown, or may be."""
        if self._reasons.get(op.index, "").startswith("alone it fails"):
            return False
        if isolated is None:
            return None
        return self._looks[op.index].within if op.index in self._looks else True

    def _is_near(self, op: OperatorView[Any]) -> bool:
        ran = [each.name for each in self._ran(op)]
        return all(
            is_within(each, self.tolerance, tensor, ran, bool(self.kernels))
            for tensor, each in self._found(op)
        )

    def _found(self, op: OperatorView[Any]) -> list[tuple[TensorView, Difference]]:
        """What `op` alone makes, and how far it is."""
        made = (each for each in op.outputs if each.index in self._isolated)
        return [(tensor, self._isolated[tensor.index]) for tensor in made]

    def _note_places(self, runtime: OurInterpreter, profiled_runs: int) -> None:
        inputs = self.reference.samples[0][0]
        for row in runtime.placements(inputs):
            if row.subgraph == 0:
                self._placed[row.index] = row.runs_on, row.reason
            else:
                self._called.append(self._called_operator(row))
        if profiled_runs:
            self._times = runtime.times(inputs, profiled_runs)

    def _called_operator(self, row: Placement) -> CalledOperator:
        graph = self.model.subgraphs[row.subgraph]
        outputs = (graph.tensors[index].name for index in graph.operators[row.index].outputs)
        place = row.runs_on, row.reason
        return CalledOperator(row.subgraph, row.index, row.operator, tuple(outputs), *place)

    def _difference(self, index: int, got: Array, want: Array) -> Difference:
        view = self.views[index]
        return difference(got, want, view.quantization if view.is_quantized else None)

    def _noted(self, index: int, got: Array, want: Array) -> Difference:
        """How far an operator's result is; the values of the worst one are kept."""
        found = self._difference(index, got, want)
        if self._worst is None or badness(found) > self._worst[0]:
            self._worst = badness(found), Values(index, self.views[index].name, want, got)
        return found

    # The result --------------------------------------------------------------------------------

    def result(self) -> RuntimeResult:
        """What is known by now."""
        operators = [self._operator(op) for op in self.operators]
        outputs, state = self._outputs.results(self.spread, self.tolerance)
        has_outputs = bool(self.model.subgraphs[0].outputs)
        verdict, reason = judged(
            outputs,
            state,
            operators,
            self.tolerance,
            has_outputs=has_outputs,
            explained=self._explained,
        )
        first = named(verdict, operators, self.tolerance)
        if not verdict.is_alarm:  # as of small differences that add up
            outputs, state = (
                tuple(_not_off(o, verdict) for o in each) for each in (outputs, state)
            )
        part = self._part(first)
        if self.error:
            verdict, reason = Verdict.OFF, f"It does not run: {self.error}"
        return RuntimeResult(
            self.runtime.name,
            verdict,
            reason,
            outputs,
            state,
            tuple(self._tensor(index) for index in results(self.model)),
            tuple(operators),
            None if first is None else first.index,
            self.error,
            self.reference.error or self.runtime.outputs_only,
            (*self._outputs.values(), *([self._worst[1]] if self._worst else ())),
            {} if first is None else self._fed(first, part),
            tuple(self._called),
            part,
        )

    def _part(self, op: OperatorResult | None) -> Part | None:
        if op is None or not isinstance(self.runtime, OnnxRuntime):
            return None
        try:
            return self.runtime.part(op.index, self.reference.tensors[0])
        except NotIsolated:
            return None

    def _fed(self, op: OperatorResult, part: Part | None) -> dict[int, Array]:
        """What the reference feeds an operator, or `part`, in the first sample."""
        known = self.reference.tensors[0]
        inputs = op.inputs if part is None else part.inputs
        return {i: known[i] for i in inputs if i is not None and i in known}

    def _tensor(self, index: int) -> TensorResult:
        view, accumulated = self.views[index], merged(self._accumulated.get(index, ()))
        quantization = view.quantization
        shape = self._shapes.get(index, tuple(self.model.subgraphs[0].tensors[index].shape))
        return TensorResult(
            index,
            view.name,
            view.type.name,
            shape,
            self._producers.get(index),
            () if quantization is None else tuple(map(float, quantization.scale)),
            () if quantization is None else tuple(map(int, quantization.zero_point)),
            accumulated,
            self._isolated.get(index),
            "" if accumulated else self._unreadable(index),
        )

    def _unreadable(self, index: int) -> str:
        if not any(index in tensors for tensors in self.reference.tensors):
            return f"{self.reference.name} does not give it"
        return self.runtime.unreadable(index)

    def _operator(self, op: OperatorView[Any]) -> OperatorResult:
        made = [tensor.index for tensor in op.outputs]
        isolated = worst([self._isolated[index] for index in made if index in self._isolated])
        whole = [merged(self._accumulated.get(index, ())) for index in made]
        accumulated = worst([each for each in whole if each is not None])
        look = self._looks.get(op.index)
        within = self._within(op, isolated)
        far = within is False and isolated is not None and not isolated.within(self.tolerance)
        runs_on, reason = self._placed.get(op.index, ("", ""))
        return OperatorResult(
            op.index,
            op.name,
            op.version,
            option_texts(op.options),
            tuple(None if tensor is None else tensor.index for tensor in op.inputs),
            tuple(made),
            accumulated,
            isolated,
            None if look is None else look.spread,
            within,
            self._together.get(op.index, ()),
            self._reasons.get(op.index, ""),
            known_difference(op, far),
            look is not None and look.beyond,
            runs_on,
            reason,
            self._times.get(op.label),
        )


def _not_off(output: OutputResult, verdict: Verdict) -> OutputResult:
    return replace(output, verdict=verdict) if output.verdict is Verdict.OFF else output
