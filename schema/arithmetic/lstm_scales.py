"""What brings the sums of an integer LSTM cell to the scales that they are held in: in 16 bits
(8x8_16), or narrow, in 8 (8x8_8).

LiteRT multiplies the scales in float32 and in this order; only so do the factors agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.lstm import GATES, PEEPHOLE_GATES
from tflite_ort.schema.values.view import OperatorView, Quantization, TensorView

View = OperatorView[Any]
Factors = npt.NDArray[np.float32]

HIDDEN = 4  # the intermediate between the cell and its projection


@record
class CellScales:
    """Factors of one cell with G gates.

    Args:
        input, recurrent: [G], to the scales of the gates' sums.
        peephole: [G], 0 for the cell gate; None without.
        norm: [G]; None without layer normalisation.
        hidden: of output gate times activated cell state, and the zero point of what results.
        projection: of that to the output; 1 without.
        cell_bits: the cell state is in units of ``2**-cell_bits``.
        cell_limit, output_limit: the clips as codes, 0 for none.
    """

    input: Factors
    recurrent: Factors
    peephole: Factors | None
    norm: Factors | None
    hidden: np.float32
    hidden_zero_point: int
    projection: np.float32
    cell_bits: int
    cell_limit: int
    output_limit: int


def cell_scales(op: View, gates: Sequence[str]) -> CellScales:
    """The factors of an operator whose inputs are named, for `gates` in this order."""
    normalized = given_input(op, "forget_layer_norm_coefficients") is not None
    projected = given_input(op, "projection_weights") is not None
    sums, state = _sums(op, gates, normalized), _scale(op, "output_state")
    hidden = quantization(op.intermediates[HIDDEN])
    hidden_scale = np.float32(hidden.scalar_scale)
    cell, output = _scale(op, "cell_state"), np.float32(quantization(op.output).scalar_scale)
    bits = -round(float(np.log2(cell)))
    projection = _scale(op, "projection_weights") * hidden_scale / state if projected else None
    return CellScales(
        input=_scales(op, gates, "input_to_{}_weights") * _scale(op, "input") / sums,
        recurrent=_scales(op, gates, "recurrent_to_{}_weights") * state / sums,
        peephole=_peephole(op, gates, sums, bits),
        norm=_scales(op, gates, "{}_layer_norm_coefficients") if normalized else None,
        hidden=np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15),
        hidden_zero_point=hidden.scalar_zero_point,
        projection=np.float32(1) if projection is None else projection,
        cell_bits=bits,
        cell_limit=code_limit(op.options.cell_clip, cell, np.int16),
        output_limit=code_limit(op.options.proj_clip, output, np.int8) if projected else 0,
    )


NARROW_GATES = ("forget", "cell", "output")
# Intermediates of a narrow gate's whole sum; those of its two parts come after it.
_NARROW_SUMS = (3, 6, 9)


@record
class NarrowSum:
    """A product of a narrow cell, held in 8 bits: [G, 1] each.

    Args:
        factor: to the scale that it is held in.
        zero_point: of what is held.
        to_whole: from there to the scale of the gate's sum.
    """

    factor: Factors
    zero_point: npt.NDArray[np.int32]
    to_whole: Factors


@record
class NarrowScales:
    """Factors of a narrow cell.

    Args:
        norm: [G, 1].
        projection: of what the cell shows to its output.
        cell_limit, output_limit: the clips as codes, 0 for none.
    """

    input: NarrowSum
    recurrent: NarrowSum
    norm: Factors
    projection: np.float32
    cell_limit: int
    output_limit: int


def narrow_scales(op: View) -> NarrowScales:
    """The factors of an operator whose inputs are named."""
    options = op.options
    # A limit of 1 or more is beyond what the state's codes reach.
    cell_clip = options.cell_clip if options.cell_clip < 1 else 0
    projection = float(_scale(op, "projection_weights")) * 2**-15
    return NarrowScales(
        input=_narrow_sum(op, "input_to_{}_weights", "input", 1),
        recurrent=_narrow_sum(op, "recurrent_to_{}_weights", "output_state", 2),
        norm=_scales(op, NARROW_GATES, "{}_layer_norm_coefficients")[:, np.newaxis],
        projection=np.float32(projection / float(_scale(op, "output_state"))),
        cell_limit=code_limit(cell_clip, _scale(op, "cell_state"), np.int16),
        output_limit=code_limit(
            options.proj_clip, np.float32(quantization(op.output).scalar_scale), np.int8
        ),
    )


def _narrow_sum(op: View, pattern: str, source: str, part: int) -> NarrowSum:
    """Part 1 or 2 of the gates' sums, of vectors quantized as `source`."""
    parts = [quantization(op.intermediates[whole + part]) for whole in _NARROW_SUMS]
    wholes = [quantization(op.intermediates[whole]).scalar_scale for whole in _NARROW_SUMS]
    held = np.array([[each.scalar_scale] for each in parts], np.float32)
    weights = _scales(op, NARROW_GATES, pattern)[:, np.newaxis]
    return NarrowSum(
        factor=weights * _scale(op, source) / held,
        zero_point=np.array([[each.scalar_zero_point] for each in parts], np.int32),
        to_whole=held / np.array(wholes, np.float32)[:, np.newaxis],
    )


def code_limit(clip: float, scale: np.float32, dtype: npt.DTypeLike) -> int:
    """A clip in units of `scale`, at most the highest code of `dtype`; 0 is none."""
    highest = np.float32(np.iinfo(np.dtype(dtype)).max)
    return int(np.minimum(np.float32(clip) / scale, highest)) if clip > 0 else 0


def quantization(tensor: TensorView) -> Quantization:
    """The scales of `tensor`, which has to have some.

    Raises:
        ModelError: it has none.
    """
    if tensor.quantization is None:
        raise ModelError(f"{tensor.name!r} has no scale")
    return tensor.quantization


def given_input(op: View, name: str) -> TensorView | None:
    """An input by name; None where it is left out, or old files have no such input."""
    return op.get(name) if name in op.names else None


def _scale(op: View, name: str) -> np.float32:
    return np.float32(quantization(op[name]).scalar_scale)


def _scales(op: View, gates: Sequence[str], pattern: str) -> Factors:
    return np.array([_scale(op, pattern.format(gate)) for gate in gates], np.float32)


def _sums(op: View, gates: Sequence[str], normalized: bool) -> Factors:
    """The scales of the gates' sums: one for each of all four gates, there or not."""
    if not normalized:
        return np.full(len(gates), 2.0**-12, np.float32)
    scales = dict(zip(GATES, op.intermediates, strict=False))
    return np.array([quantization(scales[gate]).scalar_scale for gate in gates], np.float32)


def _peephole(op: View, gates: Sequence[str], sums: Factors, bits: int) -> Factors | None:
    if given_input(op, "cell_to_output_weights") is None:
        return None
    factors = [
        2.0**-bits * float(_scale(op, f"cell_to_{gate}_weights")) / float(unit)
        if gate in PEEPHOLE_GATES
        else 0.0
        for gate, unit in zip(gates, sums, strict=True)
    ]
    return np.array(factors, np.float32)
