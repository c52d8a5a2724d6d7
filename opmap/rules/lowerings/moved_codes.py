"""Moves of floats that are codes times a scale, as moves of these codes.

A device that rounds floats moves the codes as they are. What DEQUANTIZE or another such move made
in the same graph are such floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Quantization, TensorType, Untranslatable

_TYPES = {np.dtype(np.uint8): TensorType.UINT8, np.dtype(np.int16): TensorType.INT16}


def moved_codes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A move of floats where the target has no floats as precise.

    Raises:
        Untranslatable: they are no codes.
    """
    input = op.present_inputs()[0]
    if not g.target.no_floats or input.type is not TensorType.FLOAT32 or input.is_constant:
        return ()
    layout = g.layout(input)
    node = g.read(input, layout=layout).producer()
    if node is None or node.op_type != "DequantizeLinear":
        raise Untranslatable(g.target.no_floats)
    codes, scale, zero = map(_constant_of, node.inputs)
    source = node.inputs[0]
    if codes is not None or source is None or scale is None or zero is None or scale.ndim:
        raise Untranslatable(g.target.no_floats)
    found = Quantization(scale.reshape(1), zero.reshape(1).astype(np.int64))
    given, made = (
        replace(each, index=g.fresh_index(), type=_TYPES[zero.dtype], quantization=found)
        for each in (input, op.output)
    )
    g.write(given, source, layout=layout, domain=Domain.STORED)
    inputs = [given if each is input else each for each in op.inputs]
    coded = replace(op, inputs=tuple(inputs), outputs=(made,))
    return [Lowering("codes", {}, partial(_moved, op, coded, g, rest))]


def _moved(op: View, coded: View, g: Graph, rest: Rest) -> None:
    rest(coded)
    layout = g.layout(op.output)
    g.write(op.output, g.read(coded.output, layout=layout), layout=layout)


def _constant_of(value: ir.Value | None) -> np.ndarray | None:
    return None if value is None or value.const_value is None else value.const_value.array
