"""The first step of an unrolled recurrent cell, whose states are zeros before it.

Converters fold what zeros give: a product of the state is its bias, a forget gate is not there, and
1 - z stands alone where it would be added to z h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.loops.affine_expressions import Affine, AffineExpressions
from tflite_ort.opmap.loops.recurrent_cells import (
    Cell,
    Gate,
    activated_sum,
    complemented,
    either_way,
    factors,
    squashed,
)
from tflite_ort.schema import Op, TensorView

Array = npt.NDArray[np.float32]
# Two sums of the same constants in another order differ by no more than this part of their terms.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
# How large the constant is, 3 / 6 of the slope, that is added to them and taken off again.
_OFFSETS = {"HardSigmoid": 2.5}


def zero_step(cell: Cell, expressions: AffineExpressions) -> Sequence[int] | None:
    """The sources of the step before `cell`, if it is the same cell after states of zeros.

    None if the states before `cell` are made otherwise.
    """
    sources = {
        "RNN": _zero_rnn,
        "GRU": _zero_gru,
        "LSTM": _zero_lstm,
    }[cell.op_type](cell, expressions)
    return sources if sources and len(sources) == len(cell.sources) else None


def _zero_rnn(cell: Cell, expressions: AffineExpressions) -> Sequence[int] | None:
    return _Zeros(cell, expressions).of_gate(cell.gates[0], cell.states[0].argument)


def _zero_lstm(cell: Cell, expressions: AffineExpressions) -> Sequence[int] | None:
    """c = i g, h = o tanh(c)."""
    i, o, _, g = cell.gates
    h, c = (state.argument for state in cell.states)
    zeros = _Zeros(cell, expressions)
    for gate, update in either_way(factors(h, Op.MUL, expressions)):
        last, result = squashed(update, expressions)
        if last != cell.activations[2] or result is None or result.index != c.index:
            continue
        for product in _without_zeros(c, expressions):
            for input, new in either_way(factors(product, Op.MUL, expressions)):
                parts = (o, gate), (i, input), (g, new)
                first, *others = (zeros.of_gate(each, tensor) for each, tensor in parts)
                if first is not None and all(each == first for each in others):
                    return first
    return None


def _zero_gru(cell: Cell, expressions: AffineExpressions) -> Sequence[int] | None:
    """h = (1 - z) c."""
    update, _, new = cell.gates
    zeros = _Zeros(cell, expressions)
    for scale, candidate in _scaled(cell.states[0].argument, expressions):
        z, is_rest = scale
        sources = zeros.of_gate(update if is_rest else update.negative(), z)
        if sources is None:
            continue
        if cell.reset_after and new.recurrent.bias.any():
            rest = zeros.of_candidate(candidate)
        else:
            rest = zeros.of_gate(new, candidate)
        if rest == sources:
            return sources
    return None


def _scaled(
    tensor: TensorView, expressions: AffineExpressions
) -> Iterator[tuple[tuple[TensorView, bool], TensorView]]:
    """Each ((z, is_rest), c) such that `tensor` is (1 - z) c, or z c unless `is_rest`."""
    for product in _without_zeros(tensor, expressions):
        for scale, candidate in either_way(factors(product, Op.MUL, expressions)):
            yield complemented(scale, expressions), candidate
    for product, added in either_way(factors(tensor, Op.ADD, expressions)):
        for scale, negative in either_way(factors(product, Op.MUL, expressions)):
            parts = factors(negative, Op.SUB, expressions)
            if not parts or not _is_zero(parts[0]):
                continue
            if expressions.rows(parts[1]).index == expressions.rows(added).index:
                z, is_rest = complemented(scale, expressions)
                yield (z, not is_rest), added


def _without_zeros(tensor: TensorView, expressions: AffineExpressions) -> Iterator[TensorView]:
    """`tensor`, and what is added to a product with zeros to make it."""
    yield tensor
    for product, rest in either_way(factors(tensor, Op.ADD, expressions)):
        if any(map(_is_zero, factors(product, Op.MUL, expressions))):
            yield rest


def _is_zero(tensor: TensorView) -> bool:
    return tensor.data is not None and not tensor.data.any()


@record
class _Zeros:
    """The gates of `cell` where its states are zeros."""

    cell: Cell
    expressions: AffineExpressions

    def of_gate(self, gate: Gate, tensor: TensorView) -> Sequence[int] | None:
        """The sources of `tensor`, if it is `gate`; in the order of the cell."""
        found = self.expressions.activated(tensor)
        if found is None or found[0] != gate.activation:
            return None
        return self._sources(gate, found[1], gate.recurrent.bias)

    def of_candidate(self, tensor: TensorView) -> Sequence[int] | None:
        """The sources of tanh(x W + r b), where b is what a product with zeros leaves."""
        _, reset, new = self.cell.gates
        activation, terms = activated_sum(tensor, self.expressions)
        if activation != new.activation:
            return None
        for given, product in either_way(terms):
            for gate, bias in either_way(factors(product, Op.MUL, self.expressions)):
                constant, input = (self.expressions.affine(each) for each in (bias, given))
                if constant is None or input is None or constant.weights:
                    continue
                if (constant.bias != new.recurrent.bias).any():
                    continue
                sources = self.of_gate(reset, gate)
                if sources is not None and self._sources(new, input) == sources:
                    return sources
        return None

    def _sources(
        self, gate: Gate, found: Affine, added: Array | None = None
    ) -> Sequence[int] | None:
        """The sources of `found`, if it is the input of `gate` and the constants `added`."""
        wanted = [gate.input.weights[source] for source in self.cell.sources]
        if len(wanted) != len(found.weights):
            return None
        if not all(map(np.array_equal, wanted, found.weights.values())):
            return None
        terms = [gate.input.bias] if added is None else [gate.input.bias, added]
        allowed = _ROUNDING * (sum(map(abs, terms)) + _OFFSETS.get(gate.activation, 0))
        return list(found.weights) if (abs(found.bias - sum(terms)) <= allowed).all() else None
