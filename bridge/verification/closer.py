"""A closer look at an operator whose result is not near: what else may explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import (
    Difference,
    Tolerance,
    difference,
    largest,
    merged,
    real_values,
    worst,
)
from tflite_ort.schema import BridgeError, OperatorView, TensorView
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.verification.judgement import SAMPLED, is_near, is_within, may_round
from tflite_ort.verification.known import is_hybrid
from tflite_ort.verification.real_numbers import RealNumbers
from tflite_ort.verification.runtimes import Isolated, Litert, OurInterpreter, Tensors

Array = npt.NDArray[Any]


# By operator: its output, and how far that is.
Apart = Sequence[tuple[TensorView, Difference]]


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen.

    Args:
        spread: how far LiteRT's kernels are apart when they are fed the same; None if they fail.
        within: whether the result is right; None where it rounds otherwise, or is beyond codes.
        hybrid: its activations are rounded in another way than the reference's, or not at all, and
            it is about as near to the product of floats as the reference is.
        beyond: it differs only where no code stands for the true number.
    """

    spread: Difference | None
    within: bool | None
    hybrid: bool = False
    beyond: bool = False


@dataclass(frozen=True)
class Closer:
    """Looks closer.

    Args:
        operators: of the primary subgraph.
        given: of each sample, the reference's tensors.
        kernels: LiteRT with its other kernels; none without LiteRT.
        floats: a runtime of the reference's kind in which hybrid layers multiply floats; None where
            there are none.
        reals: a runtime of operators on real numbers.
    """

    operators: Sequence[OperatorView[Any]]
    tolerance: Tolerance
    given: Sequence[Tensors]
    kernels: Sequence[Litert]
    floats: Litert | OurInterpreter | None
    reals: RealNumbers

    def look(
        self,
        op: OperatorView[Any],
        together: Sequence[int],
        found: Apart,
        run: Callable[[], Isolated],
    ) -> Look:
        """What explains the result of `op`.

        Args:
            together: the operators that are run as `op`.
            found: how far it is from the reference.
            run: runs them alone on `given`.
        """
        one = _One(self, op, [self.operators[at] for at in together], run)
        spread, isolated = one.spread(), worst([each for _, each in found])
        near = spread is not None and isolated is not None and is_near(isolated, spread)
        if near or one.is_as_kernels():
            return Look(spread, True)
        if one.is_hybrid():
            return Look(spread, None, hybrid=True)
        measured = spread is not None
        if all(may_round(each, tensor, self.tolerance, measured) for tensor, each in found):
            return Look(spread, None)
        beyond = one.is_beyond()
        return Look(spread, None if beyond else False, beyond=beyond)


@dataclass(frozen=True)
class _One:
    """One operator.

    Args:
        ran: the operators that were run as `op`.
        run: runs them alone.
    """

    closer: Closer
    op: OperatorView[Any]
    ran: Sequence[OperatorView[Any]]
    run: Callable[[], Isolated]

    def spread(self) -> Difference | None:
        """How far LiteRT's kernels are apart."""
        found = list[Difference]()
        for kernels in self.closer.kernels:
            with suppress(BridgeError):
                found += [each for _, each in self._each(self._other(kernels), self.closer.given)]
        return largest(found)

    def is_as_kernels(self) -> bool:
        """Whether it gives what one of LiteRT's other kernels gives."""
        return any(self._is_as(kernels) for kernels in self.closer.kernels)

    def is_hybrid(self) -> bool:
        """Whether it gives the product of floats, or is as near to it as the reference, which
        rounds."""
        floats = self.closer.floats if any(map(is_hybrid, self.ran)) else None
        if floats is None:
            return False
        if self._is_as(floats):
            return True
        ours = self._apart(self._ours, lambda: self._other(floats))
        right = self._apart(self._reference, lambda: self._other(floats))
        return (
            bool(ours)
            and len(ours) == len(right)
            and all(
                each.as_near_as(other, SAMPLED) and each.mean <= SAMPLED * other.mean
                for (_, each), (_, other) in zip(ours, right, strict=True)
            )
        )

    def is_beyond(self) -> bool:
        """Whether it differs only where no code stands for the true number, and has the last code
        there."""
        outputs = self.op.outputs
        return all(tensor.is_quantized for tensor in outputs) and self._are_within(
            self._apart(self._ours, self._with_last_codes)
        )

    def _with_last_codes(self) -> Iterator[Tensors]:
        """What the reference has, with the last codes where no code stands for the true number."""
        true, relative = self._other(self.closer.reals), self.closer.tolerance.isolated
        for got, right, real in zip(self._ours(), self.closer.given, true, strict=True):
            made = [tensor for tensor in self.op.outputs if tensor.index in real]
            triples = [(real[each.index], right[each.index], got[each.index]) for each in made]
            yield {
                each.index: _last_codes(each, *triple, relative)
                for each, triple in zip(made, triples, strict=True)
            }

    def _is_as(self, other: Litert | OurInterpreter) -> bool:
        return self._are_within(self._apart(self._ours, lambda: self._other(other)))

    def _are_within(self, found: Apart) -> bool:
        names = [each.name for each in self.ran]
        near = (is_within(each, self.closer.tolerance, tensor, names) for tensor, each in found)
        return bool(found) and all(near)

    def _ours(self) -> Iterable[Tensors]:
        return self.run().outputs

    def _reference(self) -> Iterable[Tensors]:
        return self.closer.given

    def _other(self, runtime: Litert | OurInterpreter) -> Iterable[Tensors]:
        among = [each.index for each in self.ran]
        return runtime.isolated(self.op.index, self.closer.given, among).outputs

    def _apart(
        self, one: Callable[[], Iterable[Tensors]], other: Callable[[], Iterable[Tensors]]
    ) -> Apart:
        """How far the results of both are apart; nothing if one cannot be run."""
        found: dict[int, list[Difference]] = {}
        try:
            for tensor, apart in self._each(one(), other()):
                found.setdefault(tensor.index, []).append(apart)
        except BridgeError:
            return []
        wholes = [(tensor, merged(found.get(tensor.index, ()))) for tensor in self.op.outputs]
        return [(tensor, whole) for tensor, whole in wholes if whole is not None]

    def _each(
        self, one: Iterable[Tensors], other: Iterable[Tensors]
    ) -> Iterator[tuple[TensorView, Difference]]:
        """How far they are apart in each sample."""
        for got, want in zip(one, other, strict=True):
            for tensor in self.op.outputs:
                if tensor.index in got and tensor.index in want:
                    codes = tensor.quantization if tensor.is_quantized else None
                    yield tensor, difference(got[tensor.index], want[tensor.index], codes)


def _last_codes(
    tensor: TensorView, true: Array, right: Array, got: Array, relative: float
) -> Array:
    """`right`, the reference's codes, but the last code where the true number is beyond it. Where
    that is NaN either end is right, the one that is nearer to `got`. Where the last bits of floats,
    `relative` of the largest number, are more than a code, `got` may be off by so much."""
    if not true.shape == right.shape == got.shape or tensor.quantization is None:
        return right
    low, high = quantized_range(tensor.type)
    ends = np.asarray([low, high], right.dtype)
    lowest, highest = (
        real_values(end.reshape((1,) * right.ndim), tensor.quantization) for end in ends
    )
    whole = got.dtype.kind in "iu"
    reals = real_values(got, tensor.quantization) if whole else got
    side = np.where(reals > (lowest + highest) / 2, np.inf, -np.inf)
    aim = np.where(np.isnan(true), side, true)
    want = np.where(aim < lowest, ends[0], np.where(aim > highest, ends[1], right))
    last_bits = relative * np.max(np.abs(true), where=np.isfinite(true), initial=0)
    if not whole or last_bits * (high - low) <= np.min(highest - lowest):
        return want
    return np.where(np.abs(reals - true) <= last_bits, got.astype(right.dtype), want)
