"""Recurrent cells among the states of a loop, as ONNX has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tflite_ort.opmap.loops.affine_expressions import (
    ACTIVATIONS,
    Linear,
    LinearForms,
    fused_activation,
    unbroadcast,
)
from tflite_ort.opmap.loops.loop_carried import Moving
from tflite_ort.schema import Op, TensorType, TensorView

Activated = tuple[str, Linear]
# Between 0 and 1, and 1 - f(x) is f(-x).
_SIGMOIDS = ("Sigmoid", "HardSigmoid")


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """An activation, and what it is of: a part of the cell's inputs, and one of its state."""

    activation: str
    input: Linear
    recurrent: Linear

    def negative(self) -> Gate:
        return Gate(self.activation, self.input.scaled(-1), self.recurrent.scaled(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """States of a loop that a node of ONNX makes.

    Args:
        states: the first is made of the gates; the others are the cell's own.
        gates: in the order of ONNX.
        reset_after: of a GRU: the reset gate acts on products of the state, not on the state.
    """

    op_type: str
    states: Sequence[Moving]
    activations: Sequence[str]
    gates: Sequence[Gate]
    reset_after: bool = False

    @property
    def sources(self) -> list[int]:
        """The tensors of the body that it takes besides its state."""
        return sorted({source for gate in self.gates for source in gate.input.weights})


def cells(states: Sequence[Moving], forms: LinearForms) -> Iterator[Cell]:
    """The cells that one or two of `states` may be."""
    vectors = [each for each in states if _is_vector(each)]
    for state in vectors:
        candidates = [_rnn(state, forms), _gru(state, forms)]
        candidates += [_lstm(state, other, forms) for other in vectors if other is not state]
        yield from (cell for cell in candidates if cell is not None and _is_sound(cell))


def _is_vector(state: Moving) -> bool:
    shapes = [t.shape for t in (state.taken, state.made) if not t.dynamic and t.rank == 2]
    floats = state.taken.type is state.made.type is TensorType.FLOAT32
    return floats and len(shapes) == 2 and shapes[0] == shapes[1]


def _is_sound(cell: Cell) -> bool:
    """Whether all gates have the units of the state, and take nothing else of the iteration before
    than its first state."""
    taken = cell.states[0].taken
    for gate in cell.gates:
        if len(gate.input.bias) not in (1, taken.shape[1]) or taken.index in gate.input.weights:
            return False
        if set(gate.recurrent.weights) - {taken.index}:
            return False
        every = [*gate.input.weights.values(), *gate.recurrent.weights.values()]
        if any(len(weights) != taken.shape[1] for weights in every):
            return False
    return bool(cell.sources) and len({each.taken.shape for each in cell.states}) == 1


def _gate(found: Activated, state: TensorView) -> Gate:
    activation, linear = found
    weights = dict(linear.weights)
    own = {state.index: weights.pop(state.index)} if state.index in weights else {}
    rest = Linear(weights, linear.bias)
    return Gate(activation, rest, Linear(own, np.zeros_like(linear.bias)))


def _sigmoid(tensor: TensorView, state: TensorView, forms: LinearForms) -> Gate | None:
    """`tensor` as a gate."""
    found = forms.activated(tensor)
    return _gate(found, state) if found is not None and found[0] in _SIGMOIDS else None


def _rnn(state: Moving, forms: LinearForms) -> Cell | None:
    """h' = f(x W + h R + b)."""
    found = forms.activated(state.made)
    if found is None:
        return None
    return Cell("RNN", [state], [found[0]], [_gate(found, state.taken)])


def _factors(tensor: TensorView, op: Op, forms: LinearForms) -> Sequence[TensorView]:
    """The two inputs of the `op` that makes `tensor`, where nothing is broadcast."""
    maker = forms.maker(tensor)
    if maker is None or maker.op is not op or maker.options.fused_activation_function:
        return ()
    return unbroadcast(maker)


def _either_way(pair: Sequence[TensorView]) -> Sequence[Sequence[TensorView]]:
    return [pair, pair[::-1]] if pair else []


def _sums_of_products(
    tensor: TensorView, forms: LinearForms
) -> Iterator[tuple[TensorView, TensorView, TensorView, TensorView]]:
    """Each (a, b, c, d) such that `tensor` is a * b + c * d."""
    for one, other in _either_way(_factors(tensor, Op.ADD, forms)):
        first, second = (_factors(term, Op.MUL, forms) for term in (one, other))
        for a, b in _either_way(first):
            for c, d in _either_way(second):
                yield a, b, c, d


def _gru(state: Moving, forms: LinearForms) -> Cell | None:
    """h' = z h + (1 - z) c, or with z and 1 - z exchanged: c = tanh(x W + r (h R + b)), or
    tanh(x W + (r h) R)."""
    for kept, h, renewed, candidate in _sums_of_products(state.made, forms):
        gates = [_complemented(kept, forms), _complemented(renewed, forms)]
        if h.index != state.taken.index or {is_rest for _, is_rest in gates} != {True, False}:
            continue
        update, is_rest = _sigmoid(gates[0][0], state.taken, forms), gates[0][1]
        if gates[0][0].index != gates[1][0].index or update is None:
            continue
        cell = _with_candidate(state, update.negative() if is_rest else update, candidate, forms)
        if cell is not None:
            return cell
    return None


def _complemented(tensor: TensorView, forms: LinearForms) -> tuple[TensorView, bool]:
    """t and True, if `tensor` is 1 - t."""
    maker = forms.maker(tensor)
    if maker is None or maker.op is not Op.SUB or maker.options.fused_activation_function:
        return tensor, False
    one, rest = maker.present_inputs()
    is_one = one.data is not None and one.data.size == 1 and one.data.item() == 1
    return (rest, True) if is_one else (tensor, False)


def _with_candidate(
    state: Moving, update: Gate, candidate: TensorView, forms: LinearForms
) -> Cell | None:
    whole = forms.activated(candidate)
    if whole is not None:
        activation, linear = whole
        for source, weights in linear.weights.items():
            reset = _reset(forms.body.tensors[source], state.taken, forms)
            if reset is not None and reset.activation == update.activation:
                others = {k: each for k, each in linear.weights.items() if k != source}
                own = Linear({state.taken.index: weights}, np.zeros_like(linear.bias))
                gates = [update, reset, Gate(activation, Linear(others, linear.bias), own)]
                return Cell("GRU", [state], [update.activation, activation], gates)
        return None
    activation, terms = _activated_sum(candidate, forms)
    for given, product in _either_way(terms):
        input = forms.linear(given)
        for gate, rows in _either_way(_factors(product, Op.MUL, forms)):
            reset, recurrent = _sigmoid(gate, state.taken, forms), forms.linear(rows)
            if input and recurrent and reset and reset.activation == update.activation:
                gates = [update, reset, Gate(activation, input, recurrent)]
                names = [update.activation, activation]
                return Cell("GRU", [state], names, gates, reset_after=True)
    return None


def _activated_sum(tensor: TensorView, forms: LinearForms) -> tuple[str, Sequence[TensorView]]:
    """The activation, and a and b, of which `tensor` is made: f(a + b)."""
    maker = forms.maker(tensor)
    if maker is None:
        return "", ()
    if maker.op in ACTIVATIONS:
        return ACTIVATIONS[maker.op], _factors(maker.present_inputs()[0], Op.ADD, forms)
    fused = fused_activation(maker)
    return fused, unbroadcast(maker) if fused and maker.op is Op.ADD else ()


def _reset(tensor: TensorView, state: TensorView, forms: LinearForms) -> Gate | None:
    """The gate r, if `tensor` is r * `state`."""
    for gate, other in _either_way(_factors(tensor, Op.MUL, forms)):
        found = _sigmoid(gate, state, forms)
        if other.index == state.index and found is not None:
            return found
    return None


def _lstm(state: Moving, cell: Moving, forms: LinearForms) -> Cell | None:
    """c' = f c + i g, h' = o tanh(c')."""
    h = state.taken
    for gate, squashed in _either_way(_factors(state.made, Op.MUL, forms)):
        output, last = _sigmoid(gate, h, forms), _squashed(squashed, cell.made, forms)
        if output is None or last is None:
            continue
        for forget, c, input, new in _sums_of_products(cell.made, forms):
            i, f = (_sigmoid(each, h, forms) for each in (input, forget))
            found = forms.activated(new)
            if c.index != cell.taken.index or i is None or f is None or found is None:
                continue
            if i.activation == f.activation == output.activation:
                gates = [i, output, f, _gate(found, h)]
                return Cell("LSTM", [state, cell], [i.activation, found[0], last], gates)
    return None


def _squashed(tensor: TensorView, source: TensorView, forms: LinearForms) -> str | None:
    """The activation that makes `tensor` of `source`."""
    maker = forms.maker(tensor)
    if maker is None or maker.present_inputs()[0].index != source.index:
        return None
    return ACTIVATIONS.get(maker.op)
