"""LSTM with the basic kernel: one matrix for all gates, in the order input, update, forget, output.

It has floats, or 8-bit activations with a 16-bit state. The integers are computed bit for bit, in
floats that hold them exactly. B batch, I input, C cells.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.cells.lstm_integer import gate_tables, looked_up
from tflite_ort.opmap.cells.lstm_integer_weights import SHORT
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.fixed_point import (
    TIE_BREAK,
    clip,
    exact_product,
    reach,
    refuse_wraps,
    rescaled,
    rounded_upwards,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import LSTMOptions, OperatorView, TensorType, Untranslatable

View = OperatorView[LSTMOptions]

_TYPES = (TensorType.UINT8, TensorType.UINT8, TensorType.UINT8, TensorType.INT32, TensorType.INT16)
_ZERO_POINT = 128  # of all activations
_STATE_SCALE = 2.0**-11
_LOGISTIC, _TANH = 0, 1  # places in the table of gates


def basic_lstm(op: View, g: Graph) -> None:
    """One step of the cell: a Gemm of input and previous output [B, I + C], then the gates."""
    results = _quantized(op, g) if op["input"].is_quantized else _float(op, g)
    variables = [op[name] for name in ("previous_output", "previous_state")]
    for tensor, value in zip(op.outputs, results, strict=True):
        g.write(tensor, value, domain=Domain.STORED)
    for tensor, value in zip(variables, results, strict=False):
        if tensor.is_variable:  # otherwise it is a plain input
            g.write(tensor, value, domain=Domain.STORED)


def _float(op: View, g: Graph) -> tuple[ir.Value, ...]:
    """Output and state [B, C], joined input and output [B, I + C], and sums [B, 4 * C]."""
    joined = g.op("Concat", g.read(op["input"]), g.read(op["previous_output"]), axis=1)
    sums = g.op("Gemm", joined, g.read(op["weights"]), g.read(op["bias"]), transB=1)
    admit, update, forget, shown = g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)
    kept = g.op("Mul", g.op("Sigmoid", forget), g.read(op["previous_state"]))
    state = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", admit), g.op("Tanh", update)))
    return g.op("Mul", g.op("Sigmoid", shown), g.op("Tanh", state)), state, joined, sums


def _quantized(op: View, g: Graph) -> tuple[ir.Value, ...]:
    """As `_float`, in codes; products are rounded to 16 bits, halves upwards."""
    sources = (op["input"], op["previous_output"])
    _check(op)
    codes = [g.read(tensor, domain=Domain.STORED) for tensor in sources]
    joined = g.op("Concat", *codes, axis=1)
    x = g.op("Concat", *(g.read_steps(tensor) for tensor in sources), axis=1)
    sums = _sums(op, g, x)
    parts = g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)
    table = g.constants.once(gate_tables(), "lstm_gates")
    opened = [
        looked_up(g, table, g.op("Add", part, g.constant(place * 65536.0 - SHORT[0])))
        for part, place in zip(parts, (_LOGISTIC, _TANH, _LOGISTIC, _LOGISTIC), strict=True)
    ]
    admit, update, forget, shown = opened
    state = g.cast(g.read_steps(op["previous_state"]), ir.DataType.DOUBLE)
    added = g.op("Mul", _product(g, admit, update), g.constant(2.0**-4 * TIE_BREAK))
    state = g.op("Add", g.op("Round", added), _product(g, forget, state))
    state = clip(g, state, SHORT)
    held = clip(g, g.op("Mul", state, g.constant(2.0)), SHORT)
    activated = looked_up(g, table, g.op("Add", held, g.constant(_TANH * 65536.0 - SHORT[0])))
    real = g.op("Mul", _product(g, shown, activated), g.constant(2.0**-8 * TIE_BREAK))
    output = clip(g, g.op("Round", real), (-128, 127))
    output = g.op("Add", output, g.constant(_ZERO_POINT, np.float64))
    return (
        g.cast(output, ir.DataType.UINT8),
        g.cast(state, ir.DataType.INT16),
        joined,
        g.cast(sums, ir.DataType.INT16),
    )


def _check(op: View) -> None:
    """Refuses what the integer kernel does not check."""
    types = tuple(tensor.type for tensor in op.present_inputs())
    quantizations = [op[name].quantization for name in ("input", "previous_output")]
    state = op["previous_state"].quantization
    if types != _TYPES or state is None or state.scalar_scale != _STATE_SCALE:
        raise Untranslatable("the basic kernel on other codes than uint8 with a 16-bit state")
    if any(q is None or q.scalar_zero_point != _ZERO_POINT for q in quantizations):
        raise Untranslatable(f"the basic kernel on codes whose zero point is not {_ZERO_POINT}")


def _sums(op: View, g: Graph, x: ir.Value) -> ir.Value:
    """[B, 4 * C] with 12 fraction bits."""
    weights, bias = op["weights"], op["bias"]
    if weights.data is None or bias.data is None:
        raise Untranslatable("weights of the basic kernel are not constant")
    if weights.quantization is None or bias.quantization is None:
        raise Untranslatable("weights of the basic kernel have no scale")
    centred = weights.data.astype(np.int32) - weights.quantization.scalar_zero_point
    sums = exact_product(g, x, centred.T, _ZERO_POINT)
    sums = g.op("Add", sums, g.constant(bias.data.astype(np.float64)))
    largest = reach(centred.T) * _ZERO_POINT + np.abs(bias.data, dtype=np.int64)
    factor = 4096 * bias.quantization.scalar_scale
    refuse_wraps(factor, largest)
    rounded = rescaled(g, sums, factor, float(largest.max()), bits=17, upwards=True)
    return clip(g, rounded, SHORT)


def _product(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """round(a * b / 2**15), halves upwards."""
    return rounded_upwards(g, g.op("Mul", g.op("Mul", a, b), g.constant(2.0**-15)))
