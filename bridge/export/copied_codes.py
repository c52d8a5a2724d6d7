"""Codes that TFLite copies to a tensor of another scale, where they stand for other numbers.

Operators that move codes do not look at scales. An integer LSTM rounds its output to the codes of
its hidden state. It reads these as codes of its output state in the next step, and its output has
them too, whatever the scales of both are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph.quantized_nodes import dequantized
from tflite_ort.schema import ExportError, Op, OperatorView, TensorView
from tflite_ort.schema.arithmetic.lstm_scales import HIDDEN, given_input, quantization
from tflite_ort.schema.values.lstm import GATES, LstmKind
from tflite_ort.schema.values.view import Quantization

View = OperatorView[Any]
Reals = npt.NDArray[np.float32]

# What comes out of these was clipped before, where the scales are the same.
MOVES = frozenset(
    {
        *(Op.AVERAGE_POOL_2D, Op.BATCH_TO_SPACE_ND, Op.BROADCAST_TO, Op.CONCATENATION),
        *(Op.DEPTH_TO_SPACE, Op.DYNAMIC_UPDATE_SLICE, Op.EXPAND_DIMS, Op.GATHER, Op.GATHER_ND),
        *(Op.MAXIMUM, Op.MAX_POOL_2D, Op.MINIMUM, Op.MIRROR_PAD, Op.PACK, Op.PAD, Op.PADV2),
        *(Op.REDUCE_MAX, Op.REDUCE_MIN, Op.RESHAPE, Op.RESIZE_BILINEAR),
        *(Op.RESIZE_NEAREST_NEIGHBOR, Op.REVERSE_V2, Op.SELECT_V2, Op.SLICE, Op.SPACE_TO_BATCH_ND),
        *(Op.SPACE_TO_DEPTH, Op.SPLIT, Op.SPLIT_V, Op.SQUEEZE, Op.STRIDED_SLICE, Op.TILE),
        *(Op.TOPK_V2, Op.TRANSPOSE, Op.UNPACK),
    }
)
# Of these, all but CONCATENATION give codes to a tensor of another scale as they are.
COPIES = MOVES - {Op.CONCATENATION}
_LSTMS = frozenset({Op.LSTM, Op.UNIDIRECTIONAL_SEQUENCE_LSTM})


class Reading(NamedTuple):
    """What numbers become if their codes are read in another quantization: each number times a
    factor, plus a term; `steps` is what the steps of codes grow by."""

    factor: float
    term: float
    steps: int

    @classmethod
    def of(cls, codes: Quantization | None, read: Quantization | None) -> Reading | None:
        """Of codes that are read as those of another tensor; None: they are the same numbers."""
        if codes is None or read is None or codes.equals(read):
            return None
        if codes.per_channel or read.per_channel:
            return None
        scale, steps = read.scalar_scale, codes.scalar_zero_point - read.scalar_zero_point
        return cls(float(scale / codes.scalar_scale), float(steps * scale), steps)


def copied(op: View, inputs: Sequence[int | None]) -> Iterator[tuple[int, int, Reading]]:
    """The inputs whose codes an operator copies to an output of another scale: position and tensor.

    Args:
        inputs: the tensors of floats that it has as inputs.

    Raises:
        ExportError: its outputs have several scales.
    """
    if op.op not in COPIES:
        return
    output = op.outputs[0].quantization
    others = [each.quantization for each in op.outputs if each.is_quantized]
    if output is not None and not all(map(output.equals, others)):
        raise ExportError(f"{op.label}: its outputs have several scales, and floats have none")
    for position, (view, source) in enumerate(zip(op.inputs, inputs, strict=True)):
        if view is None or source is None or not view.is_quantized:
            continue
        if (reading := Reading.of(view.quantization, output)) is not None:
            yield position, source, reading


def _hidden(op: View) -> Quantization:
    """The quantization of the codes that an integer LSTM makes."""
    if given_input(op, "projection_weights") is not None:
        return quantization(op["output_state"])
    return quantization(op.intermediates[HIDDEN])


def _is_integer_lstm(op: View) -> bool:
    return op.op in _LSTMS and LstmKind.of(op) is not LstmKind.FLOAT


def shown(op: View) -> Reading | None:
    """How the output of an integer LSTM reads what its cell makes."""
    if not _is_integer_lstm(op):
        return None
    return Reading.of(_hidden(op), op.output.quantization)


def recurrent_constants(op: View) -> Iterator[tuple[TensorView, Reals]]:
    """Weights and biases of an integer LSTM such that it reads its hidden state as TFLite reads the
    codes: by the scale of the output state. The codes of a bias have the scale of the products with
    the input, whatever scale it has itself.

    The first step reads a state of 0 as if it were a hidden state, so it is off by what the zero
    points differ. With layer normalization, biases are no part of the sums, and all stays as it is.
    """
    if not _is_integer_lstm(op) or given_input(op, "forget_layer_norm_coefficients") is not None:
        return
    state, scale = quantization(op["output_state"]), quantization(op["input"]).scalar_scale
    reading = Reading.of(_hidden(op), state) or Reading(1.0, 0.0, 0)
    for gate in GATES:
        names = (f"input_to_{gate}_weights", f"recurrent_to_{gate}_weights", f"{gate}_gate_bias")
        given, recurrent, bias = map(op.get, names)
        if given is None or recurrent is None or bias is None:  # there are three gates
            continue
        if recurrent.data is None or bias.data is None:
            continue
        rows = dequantized(recurrent.data, quantization(recurrent))
        yield recurrent, rows * np.float32(reading.factor)
        sums = bias.data * (scale * quantization(given).scalar_scale)
        yield bias, (sums + rows.sum(axis=1, dtype=np.float64) * reading.term).astype(np.float32)
