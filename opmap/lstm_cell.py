"""LSTM cells in floats: the ONNX LSTM where it says the same, a Scan of the step where not.

B batch, T time, I input, C cells, O outputs. TFLite clips the cell state, the ONNX LSTM does not
(its `clip` is of the gates' sums). Where a clip is given, the LSTM is taken if nothing came near
it, which its own outputs show: an output is the output gate times the tanh of the state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.scan import Values, scan
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    TensorType,
    Untranslatable,
)
from tflite_ort.schema.lstm_inputs import GATES, PEEPHOLE_GATES
from tflite_ort.schema.semantics import activation_bounds

Array = npt.NDArray[Any]
View = OperatorView[Any]
Result = tuple[ir.Value, ir.Value, ir.Value]  # outputs [T, B, O], last output and cell state

_INPUT, _FORGET, _UPDATE, _OUTPUT = range(4)
_ONNX_GATES = [_INPUT, _OUTPUT, _FORGET, _UPDATE]
_ONNX_PEEPHOLES = [0, 2, 1]
_ONNX_ACTIVATIONS = {ActivationFunctionType.TANH: "Tanh", ActivationFunctionType.RELU: "Relu"}
_NORM_EPSILON = 1e-8
# What the recomputed output gate may be wrong by; tanh(6.1) is as near to 1.
_MARGIN = 1e-5


@dataclass(frozen=True, slots=True)
class Cell:
    """The weights of one LSTM cell, its gates in the order input, forget, update, output.

    Args:
        input_weights: [4, C, I]; the columns of an auxiliary input stand behind.
        recurrent_weights: [4, C, O].
        bias: [4, C].
        peephole: [3, C], of the input, forget and output gate.
        norm: [4, C], coefficients of the layer normalisation.
        projection: [O, C].
        projection_bias: [O].
        activation: of the update and of the cell state.
        cell_clip, proj_clip: 0 for none.
    """

    input_weights: Array
    recurrent_weights: Array
    bias: Array
    peephole: Array | None
    norm: Array | None
    projection: Array | None
    projection_bias: Array | None
    activation: ActivationFunctionType
    cell_clip: float
    proj_clip: float

    @property
    def is_plain(self) -> bool:
        """Whether the ONNX LSTM says the same, but for the clip of the cell state."""
        whole = self.projection is None and self.norm is None
        return whole and self.activation in _ONNX_ACTIVATIONS

    @property
    def size(self) -> int:
        return len(self.bias[0])


@dataclass(frozen=True, slots=True)
class Run:
    """A cell and what it is run on.

    Args:
        x: [T, B, I].
        output_state: [B, O].
        cell_state: [B, C].
        single: T is 1.
    """

    cell: Cell
    x: ir.Value
    output_state: ir.Value
    cell_state: ir.Value
    single: bool
    reverse: bool = False


def read_cell(op: View, prefix: str = "") -> Cell:
    """The cell of an operator whose inputs are named; hybrid weights are dequantised.

    Without an input gate TFLite takes 1 - forget gate. That is sigmoid(-z): an input gate with
    the forget gate's weights negated.
    """
    coupled = op.get(f"{prefix}input_to_input_weights") is None

    def gates(
        pattern: str, names: Sequence[str] = GATES, mirror: int = -1, square: bool = False
    ) -> Array | None:
        found = [reals(op, prefix + pattern.format(gate)) for gate in names]
        kept = [array for array in found[1:] if array is not None]
        if not kept:
            return None
        first = mirror * kept[0] if coupled or found[0] is None else found[0]
        stacked = [first, *kept]
        return np.stack([np.diag(a) if square and a.ndim == 1 else a for a in stacked])

    inputs = [gates("input_to_{}_weights"), gates("aux_input_to_{}_weights")]
    recurrent = gates("recurrent_to_{}_weights", square=True)
    bias = gates("{}_gate_bias")
    if recurrent is None or bias is None:
        raise Untranslatable("gates without weights")
    options = op.options
    if options.fused_activation_function is ActivationFunctionType.NONE:
        _refuse_unfinished(op, prefix)
    return Cell(
        np.concatenate([array for array in inputs if array is not None], axis=2),
        recurrent,
        bias,
        gates("cell_to_{}_weights", PEEPHOLE_GATES),
        gates("{}_layer_norm_coefficients", mirror=1),
        reals(op, f"{prefix}projection_weights"),
        reals(op, f"{prefix}projection_bias"),
        options.fused_activation_function,
        options.cell_clip,
        options.proj_clip,
    )


def _refuse_unfinished(op: View, prefix: str) -> None:
    """Where a float cell without activation gets an update that TFLite leaves half built."""
    auxiliary = f"{prefix}aux_input_to_cell_weights"
    added = auxiliary in op.names and op.get(auxiliary) is not None
    diagonal = op[f"{prefix}recurrent_to_cell_weights"].rank == 1
    real = op[f"{prefix}input_to_cell_weights"].type is TensorType.FLOAT32
    if real and (added or diagonal):
        raise Untranslatable("TFLite leaves out a part of an update without activation")


def reals(op: View, name: str) -> npt.NDArray[np.float32] | None:
    """The constant input `name` as floats, None where there is none; TFLite takes uint8 codes of
    weights for int8 ones, and no zero point."""
    tensor = op.get(name) if name in op.names else None
    if tensor is None:
        return None
    if tensor.data is None:
        raise Untranslatable(f"{name} is not a constant")
    if tensor.type in (TensorType.INT8, TensorType.UINT8):
        if tensor.quantization is None:
            raise Untranslatable(f"{name} has no scale")
        codes = tensor.data.view(np.int8).astype(np.float32)
        return codes * np.float32(tensor.quantization.scale[0])
    return tensor.data.astype(np.float32)


def run_cells(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """Each of `runs`; two directions over the same input are one node if nothing forbids it."""
    cells = [run.cell for run in runs]
    together = len({(run.x.name, run.cell.size, run.cell.activation) for run in runs}) == 1
    peepholes = {cell.peephole is None for cell in cells}
    if together and len(peepholes) == 1 and all(c.is_plain and not c.cell_clip for c in cells):
        return _lstm(g, runs)
    return [_run(g, run) for run in runs]


def _run(g: Graph, run: Run) -> Result:
    cell = run.cell
    if not cell.is_plain:
        return _scanned(g, run)
    if not cell.cell_clip:
        return _lstm(g, [run])[0]
    if cell.activation is not ActivationFunctionType.TANH or cell.peephole is not None:
        return _scanned(g, run)
    if not run.single:
        return _guarded(g, run)
    if np.tanh(np.float32(cell.cell_clip)) < 1:
        return _scanned(g, run)
    y, h, c = _lstm(g, [run])[0]  # the tanh is 1 where the clip acts
    return y, h, _clip(g, c, cell.cell_clip)


def _lstm(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """LSTM of one direction or of two."""
    cells = [run.cell for run in runs]
    first = cells[0]
    zeros = np.zeros(4 * first.size, np.float32)
    biases = [np.concatenate([c.bias[_ONNX_GATES].reshape(-1), zeros]) for c in cells]
    activation = _ONNX_ACTIVATIONS[first.activation]
    activations = None if activation == "Tanh" else ["Sigmoid", activation, activation] * len(runs)
    axis = g.constant([0], np.int64)
    states = [
        _concatenated(g, [g.op("Unsqueeze", value, axis) for value in values])
        for values in ([run.output_state for run in runs], [run.cell_state for run in runs])
    ]
    made = g.op_multi(
        "LSTM",
        runs[0].x,
        _onnx_weights(g, [c.input_weights for c in cells], "input_weights"),
        _onnx_weights(g, [c.recurrent_weights for c in cells], "recurrent_weights"),
        g.constants.add(np.stack(biases), "bias"),
        None,
        *states,
        _onnx_peepholes(g, cells),
        outputs=3,
        hidden_size=first.size,
        direction="bidirectional" if len(runs) == 2 else "reverse" if runs[0].reverse else None,
        activations=activations,
    )
    if len(runs) == 1:
        y, *last = made
        y = last[0] if runs[0].single else g.op("Squeeze", y, g.constant([1], np.int64))
        h, c = (g.op("Squeeze", value, axis) for value in last)
        return [(y, h, c)]
    directions = (g.constant(i, np.int64) for i in range(2))
    y, h, c = made
    return [
        (g.op("Gather", y, i, axis=1), g.op("Gather", h, i, axis=0), g.op("Gather", c, i, axis=0))
        for i in directions
    ]


def _concatenated(g: Graph, values: Values) -> ir.Value:
    return values[0] if len(values) == 1 else g.op("Concat", *values, axis=0)


def _onnx_weights(g: Graph, arrays: Sequence[Array], name: str) -> ir.Value:
    """[directions, 4 * C, columns], the gates in ONNX's order."""
    rows = [array[_ONNX_GATES].reshape(-1, array.shape[2]) for array in arrays]
    return g.constants.add(np.stack(rows), name)


def _onnx_peepholes(g: Graph, cells: Sequence[Cell]) -> ir.Value | None:
    arrays = [c.peephole[_ONNX_PEEPHOLES].reshape(-1) for c in cells if c.peephole is not None]
    return g.constants.add(np.stack(arrays), "peephole") if arrays else None


def _guarded(g: Graph, run: Run) -> Result:
    """The LSTM's results where the cell state stayed inside its clip, else those of the Scan."""
    results = _lstm(g, [run])[0]
    y, h, c = g.op_multi(
        "If",
        _stayed_inside(g, run, results[0]),
        outputs=3,
        then_branch=g.body([], lambda _: [g.op("Identity", value) for value in results]),
        else_branch=g.body([], lambda _: _scanned(g, run)),
    )
    return y, h, c


def _stayed_inside(g: Graph, run: Run, y: ir.Value) -> ir.Value:
    """Whether |y| = output gate * tanh|c| is below output gate * tanh(clip) everywhere."""
    cell = run.cell
    first = g.op("Unsqueeze", run.output_state, g.constant([0], np.int64))
    start, end = (1, np.iinfo(np.int64).max) if run.reverse else (0, -1)
    bounds = (g.constant([bound], np.int64) for bound in (start, end, 0))
    others = g.op("Slice", y, *bounds)
    before = g.op("Concat", *((others, first) if run.reverse else (first, others)), axis=0)
    sums = g.op(
        "Add", _product(g, run.x, cell.input_weights[_OUTPUT]), g.constant(cell.bias[_OUTPUT])
    )
    sums = g.op("Add", sums, _product(g, before, cell.recurrent_weights[_OUTPUT]))
    limit = np.float32(math.tanh(cell.cell_clip) - _MARGIN)
    most = g.op("Mul", g.op("Sigmoid", sums), g.constant(limit))
    excess = g.op("ReduceMax", g.op("Sub", g.op("Abs", y), most), keepdims=0)
    return g.op("Less", excess, g.constant(np.float32(-_MARGIN / 10)))


def _product(g: Graph, x: ir.Value, weights: Array) -> ir.Value:
    """`x` times the transpose of `weights` [rows, columns]."""
    return g.op("MatMul", x, g.constants.add(weights.T, "weights"))


def _scanned(g: Graph, run: Run) -> Result:
    """Scan of the step; what the input adds to the gates' sums is computed beforehand."""
    cell = run.cell
    sums = _product(g, run.x, cell.input_weights.reshape(4 * cell.size, -1))
    if cell.norm is None:
        sums = g.op("Add", sums, g.constant(cell.bias.reshape(-1)))
    step = _Step(g, cell)
    states = (run.output_state, run.cell_state)
    (h, c), (y,) = scan(g, step, states, (sums,), single=run.single, reverse=run.reverse)
    return y, h, c


class _Step:
    """One step: (h [B, O], c [B, C]) and what the input adds to the sums [B, 4 * C]."""

    def __init__(self, g: Graph, cell: Cell) -> None:
        rows = cell.recurrent_weights.reshape(4 * cell.size, -1)
        self.g, self.cell = g, cell
        self.recurrent_weights = g.constants.add(rows.T, "recurrent_weights")

    def __call__(self, states: Values, slices: Values) -> tuple[Values, Values]:
        g, cell, (h, c) = self.g, self.cell, states
        sums = g.op("Gemm", h, self.recurrent_weights, *slices)
        z = g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)
        kept = g.op("Mul", self._gate(_FORGET, z, c), c)
        update = activated(g, self._normalized(_UPDATE, z[_UPDATE]), cell.activation)
        added = g.op("Mul", self._gate(_INPUT, z, c), update)
        c = _clip(g, g.op("Add", kept, added), cell.cell_clip)
        # TFLite's NONE does not even copy: what is left in the buffer is the update.
        is_none = cell.activation is ActivationFunctionType.NONE
        shown = update if is_none else activated(g, c, cell.activation)
        h = g.op("Mul", self._gate(_OUTPUT, z, c), shown)
        if cell.projection is not None:
            h = self._projected(h, cell.projection)
        return (h, c), (h,)

    def _gate(self, gate: int, z: Values, c: ir.Value) -> ir.Value:
        value, peephole = z[gate], self.cell.peephole
        if peephole is not None:
            weights = peephole[min(gate, len(peephole) - 1)]
            value = self.g.op("Add", value, self.g.op("Mul", c, self.g.constant(weights)))
        return self.g.op("Sigmoid", self._normalized(gate, value))

    def _normalized(self, gate: int, value: ir.Value) -> ir.Value:
        if self.cell.norm is None:
            return value
        scale, bias = self.g.constant(self.cell.norm[gate]), self.g.constant(self.cell.bias[gate])
        return self.g.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=_NORM_EPSILON)

    def _projected(self, h: ir.Value, projection: Array) -> ir.Value:
        value = _product(self.g, h, projection)
        if self.cell.projection_bias is not None:
            value = self.g.op("Add", value, self.g.constant(self.cell.projection_bias))
        return _clip(self.g, value, self.cell.proj_clip)


def _clip(g: Graph, value: ir.Value, limit: float) -> ir.Value:
    """Clip to +-limit; 0 is no limit."""
    if not limit:
        return value
    return g.op("Clip", value, g.constant(-limit, np.float32), g.constant(limit, np.float32))


def activated(g: Graph, value: ir.Value, activation: ActivationFunctionType) -> ir.Value:
    """`value` after an activation function of recurrent operators."""
    if activation is ActivationFunctionType.TANH:
        return g.op("Tanh", value)
    if activation is ActivationFunctionType.SIGN_BIT:
        negative = g.op("Less", value, g.constant(0, np.float32))
        return g.op("Cast", negative, to=ir.DataType.FLOAT)
    low, high = activation_bounds(activation)
    if (low, high) == (0.0, None):
        return g.op("Relu", value)
    bounds = [None if bound is None else g.constant(bound, np.float32) for bound in (low, high)]
    return g.op("Clip", value, *bounds) if low is not None else value
