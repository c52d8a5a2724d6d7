"""Finds recurrent cells: tensors that are the next state of an RNN, a GRU or an LSTM.

The states are loop-carried values of WHILE, or tensors of a graph in which the steps stand one
after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.loops.affine_expressions import (
    ACTIVATIONS,
    Affine,
    AffineExpressions,
    fused_activation,
    unbroadcast,
)
from tflite_ort.opmap.loops.loop_carried import LoopCarried
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known, same_elements

Activated = tuple[str, Affine]
# For these f, 1 - f(x) is f(-x).
_SIGMOIDS = ("Sigmoid", "HardSigmoid")


@record(eq=False)
class Gate:
    """An activation of a sum of affine expressions: one of the cell's inputs, one of its state."""

    activation: str
    input: Affine
    recurrent: Affine

    def negative(self) -> Gate:
        """1 less this gate, for an activation in `_SIGMOIDS`."""
        return Gate(self.activation, self.input.scaled(-1), self.recurrent.scaled(-1))


class State(Protocol):
    """A state of a recurrent cell before and after a step."""

    @property
    def argument(self) -> TensorView:
        """Before the step."""

    @property
    def result(self) -> TensorView:
        """After the step."""


@record
class Step:
    """A state whose tensors are those of one graph."""

    argument: TensorView
    result: TensorView


@record(eq=False)
class Cell:
    """States that one ONNX node computes.

    Args:
        op_type: "RNN", "GRU" or "LSTM".
        states: the output of the cell; then, for an LSTM, its cell state.
        gates: in the order of ONNX.
        reset_after: for a GRU, the reset gate multiplies products of the state, not the state.
    """

    op_type: str
    states: Sequence[State]
    activations: Sequence[str]
    gates: Sequence[Gate]
    reset_after: bool = False

    @property
    def sources(self) -> list[int]:
        """The inputs of the cell, by index; its states are not among them."""
        return list({source: None for gate in self.gates for source in gate.input.weights})


def cells(states: Sequence[LoopCarried], expressions: AffineExpressions) -> Iterator[Cell]:
    """The cells that one or two of `states` can be."""
    vectors = [state for state in states if state.argument.rank == 2 and _is_vector(state)]
    for state in vectors:
        for cell in cells_of(state.result, expressions):
            own = [_carried(each, vectors, expressions) for each in cell.states]
            found = [each for each in own if each is not None]
            if len(found) == len(own):
                yield replace(cell, states=found)


def _carried(
    step: State, states: Sequence[LoopCarried], expressions: AffineExpressions
) -> LoopCarried | None:
    """The one of `states` that `step` is."""
    result = expressions.rows(step.result).index
    for state in states:
        if state.argument.index == step.argument.index:
            return state if expressions.rows(state.result).index == result else None
    return None


def cells_of(result: TensorView, expressions: AffineExpressions) -> Iterator[Cell]:
    """The cells whose output `result` can be; their states are `Step`s."""
    for argument in _previous(result, expressions):
        state = Step(argument, result)
        if not _is_vector(state):
            continue
        for cell in (
            _rnn(state, expressions),
            _gru(state, expressions),
            *_lstms(state, expressions),
        ):
            if cell is not None and _is_sound(cell):
                yield cell


def _previous(result: TensorView, expressions: AffineExpressions) -> Iterable[TensorView]:
    """The tensors that can be the state before a step after which it is `result`."""
    gates = [result, *factors(result, Op.MUL, expressions)]
    found = dict[int, TensorView | None]()
    for affine in (each[1] for each in map(expressions.activated, gates) if each is not None):
        found.update((source, expressions.source(source)) for source in affine.weights)
    for _, _, h, _ in _blends(result, expressions):
        found[h.index] = h
    return [tensor for tensor in found.values() if tensor is not None and not tensor.is_constant]


def _is_vector(state: State) -> bool:
    shapes = [t.shape for t in (state.argument, state.result) if t.ranked and t.rank]
    floats = state.argument.type is state.result.type is TensorType.FLOAT32
    return floats and len(shapes) == 2 and _same_rows(*shapes)


def _same_rows(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are known to have as many rows, of one known length, as each other."""
    known = is_known(one[-1], other[-1]) and one[-1] == other[-1]
    return known and same_elements(one[:-1], other[:-1])


def _is_sound(cell: Cell) -> bool:
    """Whether all gates have as many units as the state, and depend on the previous iteration only
    by the output of the cell."""
    previous = cell.states[0].argument
    units = previous.shape[-1]
    for gate in cell.gates:
        if len(gate.input.bias) not in (1, units) or previous.index in gate.input.weights:
            return False
        if set(gate.recurrent.weights) - {previous.index}:
            return False
        matrices = [*gate.input.weights.values(), *gate.recurrent.weights.values()]
        if any(len(weights) != units for weights in matrices):
            return False
    return bool(cell.sources) and all(
        _same_rows(previous.shape, state.argument.shape) for state in cell.states
    )


def _gate(found: Activated, state: TensorView) -> Gate:
    activation, affine = found
    weights = dict(affine.weights)
    own = {state.index: weights.pop(state.index)} if state.index in weights else {}
    rest = Affine(weights, affine.bias)
    return Gate(activation, rest, Affine(own, np.zeros_like(affine.bias)))


def _sigmoid(tensor: TensorView, state: TensorView, expressions: AffineExpressions) -> Gate | None:
    """`tensor` as a gate; None if it is no sigmoid."""
    found = expressions.activated(tensor)
    return _gate(found, state) if found is not None and found[0] in _SIGMOIDS else None


def _rnn(state: State, expressions: AffineExpressions) -> Cell | None:
    """h' = f(x W + h R + b)."""
    found = expressions.activated(state.result)
    if found is None:
        return None
    return Cell("RNN", [state], [found[0]], [_gate(found, state.argument)])


def factors(tensor: TensorView, op: Op, expressions: AffineExpressions) -> Sequence[TensorView]:
    """The two inputs of `op` if it computes `tensor` and broadcasts nothing; else none."""
    producer = expressions.producer(tensor)
    if producer is None or producer.op is not op or producer.options.fused_activation_function:
        return ()
    return unbroadcast(producer)


def either_way(pair: Sequence[TensorView]) -> Sequence[Sequence[TensorView]]:
    return [pair, pair[::-1]] if pair else []


def _sums_of_products(
    tensor: TensorView, expressions: AffineExpressions
) -> Iterator[tuple[TensorView, TensorView, TensorView, TensorView]]:
    """Each (a, b, c, d) such that `tensor` is a * b + c * d."""
    for one, other in either_way(factors(tensor, Op.ADD, expressions)):
        first, second = (factors(term, Op.MUL, expressions) for term in (one, other))
        for a, b in either_way(first):
            for c, d in either_way(second):
                yield a, b, c, d


def _blends(
    tensor: TensorView, expressions: AffineExpressions
) -> Iterator[tuple[TensorView, bool, TensorView, TensorView]]:
    """Each (z, is_rest, a, b) such that `tensor` is z a + (1 - z) b, or (1 - z) a + z b if
    `is_rest`."""
    for kept, a, renewed, b in _sums_of_products(tensor, expressions):
        (z, is_rest), (other, is_other) = (
            complemented(each, expressions) for each in (kept, renewed)
        )
        if is_rest is not is_other and expressions.rows(z).index == expressions.rows(other).index:
            yield z, is_rest, expressions.rows(a), b
    for product, added in either_way(factors(tensor, Op.ADD, expressions)):
        for scale, difference in either_way(factors(product, Op.MUL, expressions)):
            parts = factors(difference, Op.SUB, expressions)
            if parts and expressions.rows(parts[1]).index == expressions.rows(added).index:
                z, is_rest = complemented(scale, expressions)
                yield z, is_rest, expressions.rows(parts[0]), added
                yield z, not is_rest, expressions.rows(added), parts[0]


def _gru(state: State, expressions: AffineExpressions) -> Cell | None:
    """h' = z h + (1 - z) c, or with z and 1 - z exchanged.

    The candidate c is tanh(x W + r (h R + b)), or tanh(x W + (r h) R).
    """
    for z, is_rest, h, candidate in _blends(state.result, expressions):
        if h.index != state.argument.index:
            continue
        update = _sigmoid(z, state.argument, expressions)
        if update is None:
            continue
        cell = _with_candidate(
            state, update.negative() if is_rest else update, candidate, expressions
        )
        if cell is not None:
            return cell
    return None


def complemented(tensor: TensorView, expressions: AffineExpressions) -> tuple[TensorView, bool]:
    """(t, True) if `tensor` is 1 - t, else (tensor, False)."""
    producer = expressions.producer(tensor)
    if producer is None or producer.op is not Op.SUB or producer.options.fused_activation_function:
        return tensor, False
    one, rest = producer.present_inputs()
    is_one = one.data is not None and bool((one.data == 1).all())
    return (rest, True) if is_one and unbroadcast(producer) else (tensor, False)


def _with_candidate(
    state: State, update: Gate, candidate: TensorView, expressions: AffineExpressions
) -> Cell | None:
    whole = expressions.activated(candidate)
    linear = expressions.affine(candidate) if whole is None else None
    if linear is not None:
        whole = "Affine", linear
    if whole is not None:
        activation, affine = whole
        for source, weights in affine.weights.items():
            product = expressions.source(source)
            reset = None if product is None else _reset(product, state.argument, expressions)
            if reset is not None and reset.activation == update.activation:
                others = {k: matrix for k, matrix in affine.weights.items() if k != source}
                own = Affine({state.argument.index: weights}, np.zeros_like(affine.bias))
                gates = [update, reset, Gate(activation, Affine(others, affine.bias), own)]
                return Cell("GRU", [state], [update.activation, activation], gates)
        return None
    activation, terms = activated_sum(candidate, expressions)
    for given, product in either_way(terms):
        input = expressions.affine(given)
        for gate, rows in either_way(factors(product, Op.MUL, expressions)):
            reset, recurrent = _sigmoid(gate, state.argument, expressions), expressions.affine(rows)
            if input and recurrent and reset and reset.activation == update.activation:
                gates = [update, reset, Gate(activation, input, recurrent)]
                names = [update.activation, activation]
                return Cell("GRU", [state], names, gates, reset_after=True)
    return None


def activated_sum(
    tensor: TensorView, expressions: AffineExpressions
) -> tuple[str, Sequence[TensorView]]:
    """The name of f, and (a, b), if `tensor` is f(a + b); "Affine" where f is nothing."""
    producer = expressions.producer(tensor)
    if producer is None:
        return "", ()
    if producer.op in ACTIVATIONS:
        return ACTIVATIONS[producer.op], factors(producer.present_inputs()[0], Op.ADD, expressions)
    fused = fused_activation(producer)
    if fused and producer.op is Op.ADD:
        return fused, unbroadcast(producer)
    return "Affine", factors(tensor, Op.ADD, expressions)


def _reset(tensor: TensorView, state: TensorView, expressions: AffineExpressions) -> Gate | None:
    """The gate r if `tensor` is r * `state`."""
    for gate, other in either_way(factors(tensor, Op.MUL, expressions)):
        found = _sigmoid(gate, state, expressions)
        if expressions.rows(other).index == state.index and found is not None:
            return found
    return None


def _lstms(state: State, expressions: AffineExpressions) -> Iterator[Cell]:
    """c' = f c + i g, h' = o tanh(c')."""
    h = state.argument
    for gate, update in either_way(factors(state.result, Op.MUL, expressions)):
        output, (last, result) = _sigmoid(gate, h, expressions), squashed(update, expressions)
        if output is None or result is None:
            continue
        for forget, c, input, new in _sums_of_products(result, expressions):
            i, f = (_sigmoid(gate, h, expressions) for gate in (input, forget))
            found = expressions.activated(new)
            cell = Step(expressions.rows(c), result)
            if c.is_constant or i is None or f is None or found is None or not _is_vector(cell):
                continue
            if i.activation == f.activation == output.activation:
                gates = [i, output, f, _gate(found, h)]
                yield Cell("LSTM", [state, cell], [i.activation, found[0], last], gates)


def squashed(tensor: TensorView, expressions: AffineExpressions) -> tuple[str, TensorView | None]:
    """The name of f and x if `tensor` is f(x)."""
    producer = expressions.producer(tensor)
    if producer is None or producer.op not in ACTIVATIONS:
        return "", None
    return ACTIVATIONS[producer.op], expressions.rows(producer.present_inputs()[0])
