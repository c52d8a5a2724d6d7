"""LSTM cells in floats whose state is clipped: an LSTM of ONNX, and a check that it is right.

TFLite can clip the cell state. The ONNX LSTM cannot: its `clip` is for the sums of the gates. So an
If takes the results of the LSTM as long as the state stayed within the clip. The outputs show that,
since an output is the output gate times the tanh of the state. Where they are too near to 1 to show
it, the states are computed once more, with the clip.

B batch, T time, I input, C cells. Here the steps of all sequences are rows [T * B, ...], so that
each product is one Gemm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.cells.directions import direction, recurrent_node, stacked_states
from tflite_ort.opmap.cells.lstm_float_run import Result, Run
from tflite_ort.opmap.cells.lstm_float_step import INPUT, OUTPUT, UPDATE
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.hybrid_products import joined_reals
from tflite_ort.opmap.idioms.scan import Values
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema.values.sizes import is_known

# The error of a recomputed output gate is less; tanh(6.1) is as near to 1.
_MARGIN = 1e-5
# Outputs as near as this lead to the same gates.
_SAME = 5e-6


def guarded(
    g: Graph,
    run: Run,
    lstm: Callable[[ir.Value, ir.Value], Values],
    scanned: Callable[[ir.Value, ir.Value], Result],
) -> Result:
    """The results of the LSTM if the cell state stayed within its clip; else the same outputs with
    clipped states, if these give the same outputs; else those of the Scan. The clipped states take
    a GRU that other runtimes than ONNX Runtime's CPU do not have, and weights once more.

    Args:
        lstm: adds the LSTM, which takes the output and the state [1, B, C] and gives all outputs
            [T, 1, B, C] and the last ones.
        scanned: adds the Scan, which takes them as [B, C].
    """
    sizes, axis = (run.batch, run.cell.size), g.ints([0])
    states = [stacked_states(g, [state], sizes) for state in (run.output_state, run.cell_state)]
    y, h, c = lstm(*states)
    check = _Check.of(g, run, states, y)

    def taken(state: ir.Value) -> Values:
        return [g.op("Identity", check.y), *(g.op("Squeeze", last, axis) for last in (h, state))]

    def again() -> Values:
        y, *last = scanned(*(g.op("Squeeze", state, axis) for state in states))
        return [_rows(g, y, run.cell.size), *last]

    def recomputed() -> Values:
        state, is_same = check.clipped()
        return _either(g, is_same, lambda: taken(state), again)

    other = again if not g.target.only_runs else recomputed
    rows, h, c = _either(g, check.stays_inside(), lambda: taken(c), other)
    return check.steps(rows, run.cell.size), h, c


def _either(
    g: Graph, condition: ir.Value, one: Callable[[], Values], other: Callable[[], Values]
) -> Values:
    then, otherwise = g.body([], lambda _: one()), g.body([], lambda _: other())
    return g.op_multi("If", condition, outputs=3, then_branch=then, else_branch=otherwise)


def _rows(g: Graph, value: ir.Value, width: int) -> ir.Value:
    return g.op("Reshape", value, g.ints([-1, width]))


@record
class _Check:
    """What the outputs of an LSTM without a clip tell.

    Args:
        states: the first output and state, [1, B, C].
        y: the outputs, [T * B, C].
        read: what the gates of each step are computed from, [T * B, I + C].
        shown: the output gates, [T * B, C].
    """

    g: Graph
    run: Run
    states: Values
    y: ir.Value
    read: ir.Value
    shown: ir.Value

    @classmethod
    def of(cls, g: Graph, run: Run, states: Values, y: ir.Value) -> _Check:
        cell = run.cell
        y = _rows(g, y, cell.size)
        matrices = cell.input_weights
        x = [_rows(g, x, m.codes.shape[1]) for x, m in zip(run.x, matrices, strict=True)]
        read = g.op("Concat", *x, _before(g, run, _rows(g, states[0], cell.size), y), axis=1)
        check = cls(g, run, states, y, read, y)
        return replace(check, shown=g.op("Sigmoid", check.sums(OUTPUT, OUTPUT + 1)))

    def sums(self, first: int, end: int) -> ir.Value:
        """What the activations of these gates are given, [T * B, gates * C]."""
        g, cell = self.g, self.run.cell
        weights = joined_reals(cell.matrices)[first * cell.size : end * cell.size]
        bias = g.constant(cell.bias[first:end].reshape(-1))
        return g.op("Gemm", self.read, g.constants.add(weights, "weights"), bias, transB=1)

    def steps(self, rows: ir.Value, width: int) -> ir.Value:
        """Rows as [T, B, width]."""
        g, batch = self.g, self.run.batch
        if is_known(batch):
            return g.op("Reshape", rows, g.ints([-1, batch, width]))
        sizes = g.op("Shape", self.run.x[0], end=2)
        return g.op("Reshape", rows, g.op("Concat", sizes, g.ints([width]), axis=0))

    def stays_inside(self) -> ir.Value:
        """Whether |y| = output gate * tanh|c| is below output gate * tanh(clip) everywhere."""
        g = self.g
        limit = np.float32(math.tanh(self.run.cell.cell_clip) - _MARGIN)
        most = g.op("Mul", self.shown, g.constant(limit))
        excess = g.op("ReduceMax", g.op("Sub", g.op("Abs", self.y), most), keepdims=0)
        return g.op("Less", excess, g.constant(np.float32(-_MARGIN / 10)))

    def clipped(self) -> tuple[ir.Value, ir.Value]:
        """The last state [1, B, C] for the gates that the outputs lead to, and whether the states
        lead to the same outputs.

        The gates of a step see the output of the step before, and no cell state. So where the
        clipped states give the outputs again, step by step, these are the ones that the Scan would
        find.
        """
        g, size = self.g, self.run.cell.size
        gates = g.op("Sigmoid", self.sums(INPUT, UPDATE))
        admit, forget = g.op_multi("Split", gates, outputs=2, axis=1, num_outputs=2)
        added = g.op("Mul", admit, g.op("Tanh", self.sums(UPDATE, OUTPUT)))
        states, last = self._states(g.op("Concat", forget, added, axis=1))
        again = g.op("Mul", self.shown, g.op("Tanh", _rows(g, states, size)))
        most = g.op("ReduceMax", g.op("Abs", g.op("Sub", again, self.y)), keepdims=0)
        return last, g.op("Less", most, g.constant(np.float32(_SAME)))

    def _states(self, given: ir.Value) -> Values:
        """All states c = clip(forget * c + added), [T, 1, B, C], and the last one: by a GRU.

        A GRU makes (1 - z) * n + z * c, with n the activation of reset * c @ R and what it is
        given. Here z is 0, R the identity, `reset` is `forget` as it is, and no activation is left
        but that the sum is clipped. The clip is for the gates too, which are at most 1. They are
        not negative, so that Relu leaves them as they are.
        """
        g, run, size = self.g, self.run, self.run.cell.size
        one, nothing = np.eye(size, dtype=np.float32), np.zeros((size, size), np.float32)
        passed = np.block([[nothing, nothing], [one, nothing], [nothing, one]])[np.newaxis]
        recurrent = np.concatenate([nothing, nothing, one])[np.newaxis]
        return recurrent_node(
            g,
            "GRU",
            self.steps(given, 2 * size),
            [g.constants.add(passed, "pass"), g.constants.add(recurrent, "keep"), None],
            [self.states[1]],
            sizes=(run.batch, size, 2 * size),
            hidden_size=size,
            direction=direction([run]),
            clip=float(run.cell.cell_clip),
            activations=["Relu", "Affine"],
            activation_alpha=[1.0],
            activation_beta=[0.0],
        )


def _before(g: Graph, run: Run, first: ir.Value, y: ir.Value) -> ir.Value:
    """The output that each step begins with; all are rows."""
    if is_known(run.batch):
        back, front = g.ints([-run.batch]), g.ints([run.batch])
    else:
        front = g.op("Shape", run.x[0], start=1, end=2)
        back = g.op("Neg", front)
    if run.reverse:
        rest = g.op("Slice", y, front, g.ints([np.iinfo(np.int64).max]), g.ints([0]))
        return g.op("Concat", rest, first, axis=0)
    return g.op("Concat", first, g.op("Slice", y, g.ints([0]), back, g.ints([0])), axis=0)
