"""LOG_SOFTMAX of floats that are codes times a scale, as one of 16-bit codes.

A device that rounds floats computes it with 16-bit codes more precisely. Its results lie between 0
and what the range of the codes and the length of a row allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowerings.moved_codes import codes_of
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Quantization, TensorType, TensorView, Untranslatable

_TYPE = TensorType.INT16
_ENDS = np.iinfo(np.int16)
_STEPS = 256  # of a 16-bit code in one of 8 bits


def log_softmax_of_codes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """LOG_SOFTMAX of floats where the target has no floats as precise.

    Raises:
        Untranslatable: they are no codes.
    """
    input = op["input"]
    if input.type is not TensorType.FLOAT32 or input.is_constant or not input.rank:
        return ()
    found = codes_of(g, g.read(input))
    if found is None:
        raise Untranslatable(g.target.no_floats)
    codes, quantization, type = found
    given = replace(input, index=g.fresh_index(), type=type, quantization=quantization)
    return [Lowering("codes", {}, partial(_of_codes, op, g, codes, given))]


def _of_codes(op: View, g: Graph, codes: ir.Value, given: TensorView) -> None:
    wide = _widened(given, g.fresh_index())
    x = g.dequantize(codes, given)
    if wide is not given:
        x = g.dequantize(g.quantize(x, wide), wide)
    quantization = wide.quantization
    assert quantization is not None
    steps = int(_ENDS.max) - int(_ENDS.min)
    lowest = steps * quantization.scalar_scale + np.log(given.shape[-1])
    unit, highest = np.array([lowest / steps], np.float32), np.array([_ENDS.max], np.int64)
    made = Quantization(unit, highest)
    result = replace(op.output, index=g.fresh_index(), type=_TYPE, quantization=made)
    y = g.quantize(g.op("LogSoftmax", x, axis=-1), result)
    g.write(op.output, g.dequantize(y, result))


def _widened(given: TensorView, index: int) -> TensorView:
    """A tensor of 16-bit codes for the same numbers as one of unsigned 8-bit codes, all exact."""
    quantization = given.quantization
    assert quantization is not None
    if given.type is _TYPE:
        return given
    zero = quantization.zero_point * _STEPS + _ENDS.min
    wide = Quantization(quantization.scale / np.float32(_STEPS), zero)
    return replace(given, index=index, type=_TYPE, quantization=wide)
