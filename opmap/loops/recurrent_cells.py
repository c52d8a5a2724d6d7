"""Finds recurrent cells among the loop-carried values of WHILE: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tflite_ort.opmap.loops.affine_expressions import (
    ACTIVATIONS,
    Affine,
    AffineExpressions,
    fused_activation,
    unbroadcast,
)
from tflite_ort.opmap.loops.loop_carried import LoopCarried
from tflite_ort.records import record
from tflite_ort.schema import Op, TensorType, TensorView

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


@record(eq=False)
class Cell:
    """Loop-carried values of WHILE that one ONNX node computes.

    Args:
        op_type: "RNN", "GRU" or "LSTM".
        states: the output of the cell; then, for an LSTM, its cell state.
        gates: in the order of ONNX.
        reset_after: for a GRU, the reset gate multiplies products of the state, not the state.
    """

    op_type: str
    states: Sequence[LoopCarried]
    activations: Sequence[str]
    gates: Sequence[Gate]
    reset_after: bool = False

    @property
    def sources(self) -> list[int]:
        """The inputs of the cell, by index in the body; its states are not among them."""
        return sorted({source for gate in self.gates for source in gate.input.weights})


def cells(states: Sequence[LoopCarried], expressions: AffineExpressions) -> Iterator[Cell]:
    """The cells that one or two of `states` can be."""
    vectors = [state for state in states if _is_vector(state)]
    for state in vectors:
        candidates = [_rnn(state, expressions), _gru(state, expressions)]
        candidates += [_lstm(state, other, expressions) for other in vectors if other is not state]
        yield from (cell for cell in candidates if cell is not None and _is_sound(cell))


def _is_vector(state: LoopCarried) -> bool:
    shapes = [t.shape for t in (state.argument, state.result) if not t.dynamic and t.rank == 2]
    floats = state.argument.type is state.result.type is TensorType.FLOAT32
    return floats and len(shapes) == 2 and shapes[0] == shapes[1]


def _is_sound(cell: Cell) -> bool:
    """Whether all gates have as many units as the state, and depend on the previous iteration only
    by the output of the cell."""
    previous = cell.states[0].argument
    for gate in cell.gates:
        units = previous.shape[1]
        if len(gate.input.bias) not in (1, units) or previous.index in gate.input.weights:
            return False
        if set(gate.recurrent.weights) - {previous.index}:
            return False
        matrices = [*gate.input.weights.values(), *gate.recurrent.weights.values()]
        if any(len(weights) != units for weights in matrices):
            return False
    return bool(cell.sources) and len({state.argument.shape for state in cell.states}) == 1


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


def _rnn(state: LoopCarried, expressions: AffineExpressions) -> Cell | None:
    """h' = f(x W + h R + b)."""
    found = expressions.activated(state.result)
    if found is None:
        return None
    return Cell("RNN", [state], [found[0]], [_gate(found, state.argument)])


def _factors(tensor: TensorView, op: Op, expressions: AffineExpressions) -> Sequence[TensorView]:
    """The two inputs of `op` if it computes `tensor` and broadcasts nothing; else none."""
    producer = expressions.producer(tensor)
    if producer is None or producer.op is not op or producer.options.fused_activation_function:
        return ()
    return unbroadcast(producer)


def _either_way(pair: Sequence[TensorView]) -> Sequence[Sequence[TensorView]]:
    return [pair, pair[::-1]] if pair else []


def _sums_of_products(
    tensor: TensorView, expressions: AffineExpressions
) -> Iterator[tuple[TensorView, TensorView, TensorView, TensorView]]:
    """Each (a, b, c, d) such that `tensor` is a * b + c * d."""
    for one, other in _either_way(_factors(tensor, Op.ADD, expressions)):
        first, second = (_factors(term, Op.MUL, expressions) for term in (one, other))
        for a, b in _either_way(first):
            for c, d in _either_way(second):
                yield a, b, c, d


def _gru(state: LoopCarried, expressions: AffineExpressions) -> Cell | None:
    """h' = z h + (1 - z) c, or with z and 1 - z exchanged.

    The candidate c is tanh(x W + r (h R + b)), or tanh(x W + (r h) R).
    """
    for kept, h, renewed, candidate in _sums_of_products(state.result, expressions):
        gates = [_complemented(kept, expressions), _complemented(renewed, expressions)]
        if h.index != state.argument.index or {is_rest for _, is_rest in gates} != {True, False}:
            continue
        update, is_rest = _sigmoid(gates[0][0], state.argument, expressions), gates[0][1]
        if gates[0][0].index != gates[1][0].index or update is None:
            continue
        cell = _with_candidate(
            state, update.negative() if is_rest else update, candidate, expressions
        )
        if cell is not None:
            return cell
    return None


def _complemented(tensor: TensorView, expressions: AffineExpressions) -> tuple[TensorView, bool]:
    """(t, True) if `tensor` is 1 - t, else (tensor, False)."""
    producer = expressions.producer(tensor)
    if producer is None or producer.op is not Op.SUB or producer.options.fused_activation_function:
        return tensor, False
    one, rest = producer.present_inputs()
    is_one = one.data is not None and one.data.size == 1 and one.data.item() == 1
    return (rest, True) if is_one else (tensor, False)


def _with_candidate(
    state: LoopCarried, update: Gate, candidate: TensorView, expressions: AffineExpressions
) -> Cell | None:
    whole = expressions.activated(candidate)
    if whole is not None:
        activation, affine = whole
        for source, weights in affine.weights.items():
            reset = _reset(expressions.body.tensors[source], state.argument, expressions)
            if reset is not None and reset.activation == update.activation:
                others = {k: matrix for k, matrix in affine.weights.items() if k != source}
                own = Affine({state.argument.index: weights}, np.zeros_like(affine.bias))
                gates = [update, reset, Gate(activation, Affine(others, affine.bias), own)]
                return Cell("GRU", [state], [update.activation, activation], gates)
        return None
    activation, terms = _activated_sum(candidate, expressions)
    for given, product in _either_way(terms):
        input = expressions.affine(given)
        for gate, rows in _either_way(_factors(product, Op.MUL, expressions)):
            reset, recurrent = _sigmoid(gate, state.argument, expressions), expressions.affine(rows)
            if input and recurrent and reset and reset.activation == update.activation:
                gates = [update, reset, Gate(activation, input, recurrent)]
                names = [update.activation, activation]
                return Cell("GRU", [state], names, gates, reset_after=True)
    return None


def _activated_sum(
    tensor: TensorView, expressions: AffineExpressions
) -> tuple[str, Sequence[TensorView]]:
    """The name of f, and (a, b), if `tensor` is f(a + b)."""
    producer = expressions.producer(tensor)
    if producer is None:
        return "", ()
    if producer.op in ACTIVATIONS:
        return ACTIVATIONS[producer.op], _factors(producer.present_inputs()[0], Op.ADD, expressions)
    fused = fused_activation(producer)
    return fused, unbroadcast(producer) if fused and producer.op is Op.ADD else ()


def _reset(tensor: TensorView, state: TensorView, expressions: AffineExpressions) -> Gate | None:
    """The gate r if `tensor` is r * `state`."""
    for gate, other in _either_way(_factors(tensor, Op.MUL, expressions)):
        found = _sigmoid(gate, state, expressions)
        if other.index == state.index and found is not None:
            return found
    return None


def _lstm(state: LoopCarried, cell: LoopCarried, expressions: AffineExpressions) -> Cell | None:
    """c' = f c + i g, h' = o tanh(c')."""
    h = state.argument
    for gate, squashed in _either_way(_factors(state.result, Op.MUL, expressions)):
        output, last = _sigmoid(gate, h, expressions), _squashed(squashed, cell.result, expressions)
        if output is None or last is None:
            continue
        for forget, c, input, new in _sums_of_products(cell.result, expressions):
            i, f = (_sigmoid(gate, h, expressions) for gate in (input, forget))
            found = expressions.activated(new)
            if c.index != cell.argument.index or i is None or f is None or found is None:
                continue
            if i.activation == f.activation == output.activation:
                gates = [i, output, f, _gate(found, h)]
                return Cell("LSTM", [state, cell], [i.activation, found[0], last], gates)
    return None


def _squashed(tensor: TensorView, source: TensorView, expressions: AffineExpressions) -> str | None:
    """The name of f if `tensor` is f(`source`)."""
    producer = expressions.producer(tensor)
    if producer is None or producer.present_inputs()[0].index != source.index:
        return None
    return ACTIVATIONS.get(producer.op)
