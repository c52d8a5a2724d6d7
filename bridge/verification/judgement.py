"""From differences to a verdict and its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import (
    Difference,
    Tolerance,
    difference,
    merged,
    steps_text,
)
from tflite_ort.schema import Model, TensorType, TensorView
from tflite_ort.verification.litert import litert_installed
from tflite_ort.verification.results import OperatorResult, OutputResult, Scores, Values, Verdict
from tflite_ort.verification.runtimes import Tensors, variables

# Outputs that are scores of classes: whether the best ones agree.

_TOP = 5


def agreement(got: Array, want: Array) -> Scores | None:
    """How well two results agree; None if they are not vectors of scores."""
    if not (_are_scores(got) and _are_scores(want)):
        return None
    if got.size != want.size:
        return Scores(1, 0, 0)
    pair = _flat(got), _flat(want)
    return Scores(1, int(_agree(*pair, 1)), int(_agree(*pair, _TOP)))


def total(found: Sequence[Scores | None]) -> Scores | None:
    """The scores of several samples together; None without samples or without vectors of scores."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    top1, top5 = sum(each.top1 for each in known), sum(each.top5 for each in known)
    return Scores(sum(each.samples for each in known), top1, top5)


def _are_scores(array: Array) -> bool:
    vector = array.ndim > 0 and array.size == array.shape[-1] and array.size > _TOP
    return vector and array.dtype.kind in "fiu"


def _flat(array: Array) -> npt.NDArray[np.float64]:
    return array.reshape(-1).astype(np.float64)


def _agree(got: npt.NDArray[np.float64], want: npt.NDArray[np.float64], count: int) -> bool:
    """Whether the `count` best of one are best in the other; equal scores may change places."""
    chosen = np.argsort(-got, kind="stable")[:count]
    least = np.sort(want)[-count]
    return bool((want[chosen] >= least).all())


Array = npt.NDArray[Any]

# So few elements say nothing about a share.
_FEW = 3
# All numbers are measured: `python -m benchmarks.kernel_spread`, see docs/verify.md.
# The spread is that of a few samples. That of others is larger by more than this in 31 % of the
# networks' outputs.
SAMPLED = 1.5
# How much larger the share of one channel may be than that of all.
_CROWD = 50
# One quantum may be off in so many elements where LiteRT's kernels cannot be asked: they differ
# from each other in up to 9.5 % of the results of a convolution.
_UNMEASURED = 0.1
# So much of a channel may be one quantum off by rounding; of one with a wrong bias it is more.
_COLUMN = 0.5
# Of MoveNet's SUB half of the results are halves, which LiteRT and its reference kernels round to
# different codes. A result that is one quantum off as a whole is in all.
_MOSTLY_HALVES = 0.75
# Many of these results are halves, and every runtime rounds halves in its own way: LiteRT's kernels
# differ in up to 8.9 % of a resized picture.
_HALVES = frozenset({"AVERAGE_POOL_2D", "MEAN", "RESIZE_BILINEAR", "SUB"})
# Operators in which LiteRT's kernels never differ: each result is moved, or takes one step of
# float32.
_ONE_STEP = frozenset(
    {
        *("ADD", "SUB", "MUL", "DIV", "NEG", "SQUARE", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"),
        *("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "PRELU", "SELECT", "SELECT_V2"),
        *("MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN", "TOPK_V2", "RESIZE_NEAREST_NEIGHBOR"),
        *("BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "EXPAND_DIMS", "GATHER", "GATHER_ND"),
        *("MIRROR_PAD", "PACK", "PAD", "PADV2", "RESHAPE", "REVERSE_V2", "SLICE", "SPACE_TO_DEPTH"),
        *("SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE", "UNPACK"),
    }
)
# What ONNX Runtime's Sigmoid is off, see docs/numbers.md: much of a result near 0.
_SIGMOID = 1e-7
_ORDER = tuple(Verdict)
_ADDED = "Every operator is right by itself: small differences add up."
_EXPLAINED = (
    "These outputs are what the reference gives with floats in such layers, or are no further from "
    "it than the reference's own."
)
_BEYOND = "The true number is NaN there, or beyond the last code, where integers may wrap."
_NOT_INSTALLED = "Install ai-edge-litert to see how far LiteRT's own kernels are apart there."
_NOT_ASKED = "How far LiteRT's own kernels are apart there is not known: they were not run."


class Outputs:
    """The outputs of a runtime beside those of the reference; what they were is not kept, but for
    the first sample."""

    def __init__(
        self, model: Model, views: Sequence[TensorView], reference: Sequence[Sequence[Tensors]]
    ) -> None:
        self._reference, self._views = reference, views
        self._outputs = list(dict.fromkeys(model.subgraphs[0].outputs))
        self._variables = [index for index in variables(model) if index not in self._outputs]
        self._found: dict[int, _Output] = {}

    def add(self, sample: int, step: int, found: Tensors) -> None:
        """Compare what one run gave."""
        right = self._reference[sample][step]
        for index in (*self._outputs, *self._variables):
            if index in found and index in right:
                so_far = self._found.setdefault(index, _Output(self._views[index]))
                so_far.add(step, found[index], right[index])

    def results(
        self, spread: Mapping[int, Difference], tolerance: Tolerance
    ) -> tuple[tuple[OutputResult, ...], tuple[OutputResult, ...]]:
        """The results of the outputs and of the variables."""
        outputs, state = (
            tuple(
                self._found[index].result(spread.get(index), tolerance)
                for index in indices
                if index in self._found
            )
            for indices in (self._outputs, self._variables)
        )
        return outputs, state

    def values(self) -> Iterator[Values]:
        """The values of the first sample."""
        yield from (self._found[index].first for index in self._outputs if index in self._found)


class _Output:
    """One output over all samples and steps."""

    def __init__(self, view: TensorView) -> None:
        self._view = view
        self._steps: dict[int, list[Difference]] = defaultdict(list)
        self._scores: list[Scores | None] = []
        self.first: Values

    def add(self, step: int, got: Array, want: Array) -> None:
        if not self._steps:
            self.first = Values(self._view.index, self._view.name, want, got)
        quantization = self._view.quantization if self._view.is_quantized else None
        self._steps[step].append(difference(got, want, quantization))
        self._scores.append(agreement(got, want))

    def result(self, spread: Difference | None, tolerance: Tolerance) -> OutputResult:
        steps = [merged(at_step) for at_step in self._steps.values()]
        by_step = [each for each in steps if each is not None]
        found = merged(by_step) or Difference(0, 0)
        return OutputResult(
            self._view.index,
            self._view.name,
            verdict_of(found, spread, tolerance),
            found,
            spread,
            total(self._scores),
            tuple(by_step) if len(by_step) > 1 else (),
        )


def verdict_of(found: Difference, spread: Difference | None, tolerance: Tolerance) -> Verdict:
    """The verdict on one output."""
    if found.exact:
        return Verdict.EXACT
    if spread is not None and found.as_near_as(spread, SAMPLED):
        return Verdict.SPREAD
    return Verdict.TOLERANCE if found.within(tolerance) else Verdict.OFF


def is_within(
    found: Difference,
    tolerance: Tolerance,
    tensor: TensorView,
    operators: Sequence[str],
    measured: bool = True,
) -> bool:
    """Whether one operator's result, which was fed right inputs, is near enough.

    Args:
        operators: names of those that ran; more than one where it could not be run alone.
        measured: LiteRT's other kernels can be asked how far they are apart.
    """
    if found.exact or not found.finite:
        return found.exact
    if found.quanta is None:
        exactly = _ONE_STEP.issuperset(operators)
        near = found.relative <= tolerance.isolated * (0.1 if exactly else 1.0)
        return near or ("LOGISTIC" in operators and found.largest <= _SIGMOID)
    if not tensor.is_quantized:
        return False
    if found.quanta > tolerance.quanta or tensor.type is TensorType.INT16:
        return found.quanta <= tolerance.quanta  # of 65536 codes one is nothing
    if not measured or _HALVES.intersection(operators):
        return found.changed <= max(_UNMEASURED, tolerance.share)
    few = found.elements - found.equal <= _FEW
    spread_out = found.crowded <= _CROWD * tolerance.share
    return few or (found.changed <= tolerance.share and spread_out)


def may_round(
    found: Difference, tensor: TensorView, tolerance: Tolerance, measured: bool = False
) -> bool:
    """Whether one operator's result may be right but rounded in another way.

    Args:
        measured: LiteRT's kernels are known to be nearer to each other. Then one quantum may be off
            in some elements. Where they cannot be asked it may be in most.
    """
    if measured and (found.quanta is None or found.crowded > _COLUMN):
        return False
    if found.quanta is not None and found.changed > (_UNMEASURED if measured else _MOSTLY_HALVES):
        return False
    return (
        found.finite and (found.quanta is None or tensor.is_quantized) and found.within(tolerance)
    )


def is_near(found: Difference, spread: Difference) -> bool:
    """Whether one operator's result is as near as LiteRT's kernels are to each other."""
    few = found.elements - found.equal <= _FEW
    alike = found.changed <= 2 * spread.changed and found.crowded <= 2 * spread.crowded
    if found.quanta is None:
        return found.as_near_as(spread, SAMPLED)
    return found.as_near_as(spread) and (few or alike)


def named(
    verdict: Verdict, operators: Sequence[OperatorResult], tolerance: Tolerance
) -> OperatorResult | None:
    """The operator that a verdict is about: the first one that is off by itself; where none is, and
    the outputs are off or it is a known difference, the first one that rounds otherwise."""
    first = first_off(operators, tolerance)
    if first is not None or verdict not in (Verdict.OFF, Verdict.KNOWN):
        return first
    rounds = [op for op in operators if op.rounds_otherwise]
    return next((op for op in rounds if op.beyond), rounds[0] if rounds else None)


def first_off(operators: Sequence[OperatorResult], tolerance: Tolerance) -> OperatorResult | None:
    """The first operator that is off by itself. One that leaves the tolerance of outputs comes
    before those that round many elements the other way."""
    off = [op for op in operators if op.within is False]
    far = (op for op in off if op.isolated is None or not op.isolated.within(tolerance))
    return next(far, off[0] if off else None)


def judged(
    outputs: Sequence[OutputResult],
    state: Sequence[OutputResult],
    operators: Sequence[OperatorResult],
    tolerance: Tolerance,
    *,
    has_outputs: bool = True,
    explained: bool = False,
) -> tuple[Verdict, str]:
    """The verdict on a runtime, and why.

    Args:
        has_outputs: the model has some; where it has none, its operators alone are judged.
        explained: outputs are off because hybrid layers round otherwise.
    """
    everything = (*outputs, *state)
    first = first_off(operators, tolerance)
    rounds = [op for op in operators if op.rounds_otherwise]
    if not has_outputs:
        said = ["The model has no output: only its operators were compared."]
        verdict = Verdict.OFF if first or rounds else Verdict.EXACT
    elif not everything:
        return Verdict.OFF, "No output could be compared."
    else:
        verdict = max((each.verdict for each in everything), key=_ORDER.index)
        said = [_of_outputs(verdict, everything, tolerance)]
        if verdict is Verdict.OFF and first is None and explained:
            return Verdict.KNOWN, f"{said[0]} {_of_rounding(rounds[0], len(rounds))} {_EXPLAINED}"
        if verdict is Verdict.OFF and (unsettled := _unsettled(everything, operators)):
            return unsettled[0], f"{said[0]} {unsettled[1]}"
    if first is not None:
        verdict = max(verdict, Verdict.OPERATOR, key=_ORDER.index)
        said.append(_of_operator(first))
    elif verdict is Verdict.OFF and rounds:
        said.append(_of_rounding(rounds[0], len(rounds)))
    elif verdict is Verdict.OFF and any(op.isolated for op in operators):
        said.append("No operator alone leaves the tolerance: small differences add up.")
    elif verdict is not Verdict.OFF and (beyond := [op for op in rounds if op.beyond]):
        verdict = max(verdict, Verdict.KNOWN, key=_ORDER.index)
        said.append(f"{_of_rounding(beyond[0], len(beyond))} {_BEYOND}")
    return verdict, " ".join(said)


def _unsettled(
    outputs: Sequence[OutputResult], operators: Sequence[OperatorResult]
) -> tuple[Verdict, str] | None:
    """The verdict and its reason where outputs that leave the tolerance may be right.

    No operator is off by itself, and how much LiteRT's kernels make of small differences is not
    known. Besides, some operators round otherwise, or all were checked.
    """
    off = [each for each in outputs if each.verdict is Verdict.OFF]
    known = any(each.spread is not None or not each.difference.finite for each in off)
    if known or any(op.within is False for op in operators):
        return None
    hint = _NOT_ASKED if litert_installed() else _NOT_INSTALLED
    if rounds := [op for op in operators if op.rounds_otherwise]:
        return Verdict.INCONCLUSIVE, f"{_of_rounding(rounds[0], len(rounds))} {hint}"
    checked = {at for op in operators if op.isolated for at in (op.index, *op.together)}
    if checked and all(op.index in checked or op.is_constant for op in operators):
        return Verdict.ADDED, f"{_ADDED} {hint}"
    return None


def _of_outputs(verdict: Verdict, outputs: Sequence[OutputResult], tolerance: Tolerance) -> str:
    if verdict is Verdict.EXACT:
        return "All outputs are the same."
    named = [each for each in outputs if each.verdict is verdict]
    far = max(named, key=lambda each: (not each.difference.finite, each.difference.relative))
    text = f"Output {far.name!r} differs by {far.difference.words}"
    if verdict is Verdict.SPREAD and far.spread is not None:
        return f"{text}; LiteRT's own kernels by {far.spread.words}."
    allowed = steps_text(tolerance.quanta) if _in_quanta(far) else f"{tolerance.relative:g}"
    beside = "" if far.spread is None else f", LiteRT's own kernels by {far.spread.words}"
    return f"{text}{beside}; {allowed} {'are' if allowed.endswith('quanta') else 'is'} allowed."


def _in_quanta(output: OutputResult) -> bool:
    return output.difference.quanta is not None


def _of_operator(op: OperatorResult) -> str:
    if op.isolated is None:
        return f"{op.label} is the first operator that fails: {op.not_isolated}."
    others = [str(index) for index in op.together if index != op.index]
    beside = f" (together with operators {', '.join(others)})" if others else ""
    return (
        f"{op.label}{beside} is the first operator that is off by itself: fed the reference's "
        f"inputs, it differs by {op.isolated.words}."
    )


def _of_rounding(op: OperatorResult, count: int) -> str:
    words = "" if op.isolated is None else op.isolated.words
    more = f", the first of {count}," if count > 1 else ""
    return (
        f"No operator is certainly off by itself, but {op.label}{more} rounds otherwise: fed the "
        f"reference's inputs, it differs by {words}."
    )
