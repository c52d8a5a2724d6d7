"""One step of an integer LSTM cell with partial sums in 8 bits (8x8_8).

All such cells are coupled, normalised, and projected with a bias. G gates in the order forget,
update, output; B batch, C cells, O outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.lstm_integer import looked_up
from tflite_ort.opmap.cells.lstm_integer_weights import BYTE, SHORT, cut
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.fixed_point import (
    TIE_BREAK,
    centred_codes,
    clip,
    exact_product,
    reach,
    refuse_wraps,
    rescaled,
    rounded_upwards,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.arithmetic.fixed_point16 import truncated_logistic, truncated_tanh
from tflite_ort.schema.arithmetic.lstm_scales import (
    NARROW_GATES,
    NarrowScales,
    NarrowSum,
    narrow_scales,
)
from tflite_ort.schema.values.sizes import has_zero

Array = npt.NDArray[Any]
View = OperatorView[Any]

_REACH = 255  # of an 8-bit code less its zero point
_EPSILON = 1e-8


def narrow_lstm(op: View, g: Graph) -> None:
    """The next states and the output of one step [B, I]."""
    _check(op)
    h, c, scales = op["output_state"], op["cell_state"], narrow_scales(op)
    recurrent = _partial_sums(op, g, "recurrent_to_{}_weights", h, scales.recurrent)
    # TFLite multiplies the recurrent sum of the output gate by a wrong number: 0 is left.
    kept = g.constant(np.array([[1.0], [1.0], [0.0]]))
    recurrent = g.op("Mul", recurrent, kept)
    given = _partial_sums(op, g, "input_to_{}_weights", op["input"], scales.input)
    gates = _normalized(op, g, clip(g, g.op("Add", given, recurrent), SHORT), scales)
    forget, update, shown = (
        g.op("Squeeze", gate, g.ints([1]))
        for gate in g.op_multi("Split", gates, outputs=3, axis=1, num_outputs=3)
    )
    logistic = g.constants.once(truncated_logistic(), "truncated_logistic")
    tanh, tanh_of_state = (
        g.constants.once(truncated_tanh(bits), f"truncated_tanh_{bits}") for bits in (12, 15)
    )
    forget, update, shown = (
        looked_up(g, table, gate)
        for table, gate in ((logistic, forget), (tanh, update), (logistic, shown))
    )
    admit = g.op("Sub", g.constant(32767, np.float64), forget)
    state = g.cast(g.read_steps(c), ir.DataType.DOUBLE)
    state = g.op("Add", _product(g, forget, state), _product(g, admit, update))
    state = clip(g, clip(g, state, SHORT), cut(SHORT, scales.cell_limit))
    hidden = clip(g, _product(g, shown, looked_up(g, tanh_of_state, state)), SHORT)
    output = _projected(op, g, hidden, scales)
    for tensor, value in ((h, output), (c, g.cast(state, ir.DataType.FLOAT))):
        g.write(tensor, centred_codes(g, value, tensor), domain=Domain.STORED)
    g.write(op.output, centred_codes(g, output, h), domain=Domain.STORED)


def _check(op: View) -> None:
    if has_zero(*op["recurrent_to_output_weights"].shape):
        raise Untranslatable("a cell without units")
    names = [f"{gate}_layer_norm_coefficients" for gate in NARROW_GATES]
    needed = [*names, "projection_weights", "projection_bias"]
    if any(name not in op.names or op.get(name) is None for name in needed):
        raise Untranslatable("8-bit sums without layer normalisation or projection")


def _codes(op: View, pattern: str) -> list[Array]:
    found = [op[pattern.format(gate)].data for gate in NARROW_GATES]
    if any(data is None for data in found):
        raise Untranslatable(f"{pattern.format('...')} are not constants")
    return [data for data in found if data is not None]


def _partial_sums(
    op: View, g: Graph, pattern: str, source: TensorView, scales: NarrowSum
) -> ir.Value:
    """Products [B, G, C], clipped to 8 bits, then rescaled to the scale of the whole sums."""
    weights = _codes(op, pattern)
    matrix = np.concatenate(weights).T
    products = exact_product(g, g.read_steps(source), matrix, _REACH)
    products = g.reshape(products, (-1, len(NARROW_GATES), len(weights[0])))
    largest = _REACH * reach(matrix)
    refuse_wraps(scales.factor, largest.reshape(len(NARROW_GATES), -1))
    refuse_wraps(scales.to_whole, _REACH)
    held = rescaled(g, products, scales.factor, float(largest.max()), bits=9)
    low, high = (g.constant(bound - scales.zero_point, np.float64) for bound in (-128, 127))
    held = g.op("Min", g.op("Max", held, low), high)
    return rescaled(g, held, scales.to_whole, _REACH)


def _normalized(op: View, g: Graph, sums: ir.Value, scales: NarrowScales) -> ir.Value:
    """The layer normalisation of sums [B, G, C]; the results have 12 fraction bits.

    Sums exceed the integers that float32 holds, so the order of addition matters. A variance below
    0 has no root; TFLite makes a code of 0 of the NaN.
    """
    q31, shift = quantize_multiplier(scales.norm)
    scale = (q31 * 2.0 ** (shift - 31)).astype(np.float32)
    weights = np.stack(_codes(op, "{}_layer_norm_coefficients")).astype(np.float32)
    bias = np.stack(_codes(op, "{}_gate_bias")).astype(np.float32) * (np.float32(2.0**-10) * scale)
    count = g.constant(weights.shape[1], np.float32)
    x = g.cast(sums, ir.DataType.FLOAT)
    mean = g.op("Div", _added_up(g, x), count)
    squares = g.op("Div", _added_up(g, g.op("Mul", x, x)), count)
    variance, zero = g.op("Sub", squares, g.op("Mul", mean, mean)), g.constant(0, np.float32)
    is_positive = g.op("Greater", variance, zero)
    rooted = g.op("Where", is_positive, variance, g.constant(_EPSILON, np.float32))
    real = g.op("Mul", g.op("Sub", x, mean), g.op("Reciprocal", g.op("Sqrt", rooted)))
    real = g.op("Mul", g.op("Mul", real, g.constant(weights)), g.constant(scale))
    real = g.cast(g.op("Add", real, g.constant(bias)), ir.DataType.DOUBLE)
    codes = clip(g, g.op("Round", g.op("Mul", real, g.constant(4096 * TIE_BREAK))), SHORT)
    has_no_root = g.op("Less", variance, zero)
    return g.op("Where", has_no_root, g.constant(0, np.float64), codes)


def _added_up(g: Graph, x: ir.Value) -> ir.Value:
    """The sums [B, G, 1] of rows: CumSum adds one number after the other, as TFLite does."""
    return g.op("Gather", g.op("CumSum", x, g.ints(2)), g.ints([-1]), axis=2)


def _product(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """round(a * b / 2**15), halves away from zero."""
    return g.op("Round", g.op("Mul", g.op("Mul", a, b), g.constant(2.0**-15 * TIE_BREAK)))


def _projected(op: View, g: Graph, hidden: ir.Value, scales: NarrowScales) -> ir.Value:
    """The projected output, codes less their zero point.

    TFLite rounds the multiplier to 16 bits, halves upwards.
    """
    weights, bias, state = op["projection_weights"], op["projection_bias"], op["output_state"]
    if weights.data is None or bias.data is None or state.quantization is None:
        raise Untranslatable("a projection that is not constant")
    sums = g.op("MatMul", hidden, g.constants.add(weights.data.T.astype(np.float64), "projection"))
    sums = g.op("Add", sums, g.constant(bias.data.astype(np.float64)))
    q31, shift = quantize_multiplier(scales.projection)
    q15 = min((int(q31) + 2**15) >> 16, 0x7FFF)
    value = rounded_upwards(g, g.op("Mul", sums, g.constant(q15 * 2.0 ** (int(shift) - 15))))
    zero = state.quantization.scalar_zero_point
    low, high = cut(BYTE, scales.output_limit)
    return g.cast(clip(g, value, (low - zero, high - zero)), ir.DataType.FLOAT)
