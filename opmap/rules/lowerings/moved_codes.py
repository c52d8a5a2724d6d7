"""Moves of floats that are codes times a scale, as moves of these codes.

A device that rounds floats moves the codes as they are. What DEQUANTIZE or another such move made
in the same graph are such floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Quantization, TensorType, Untranslatable

_TYPES = {np.dtype(np.uint8): TensorType.UINT8, np.dtype(np.int16): TensorType.INT16}
_PARAMETERS = 3


def moved_codes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A move of floats where the target has no floats as precise.

    Raises:
        Untranslatable: they are no codes.
    """
    input = op.present_inputs()[0]
    if input.type is not TensorType.FLOAT32 or input.is_constant:
        return ()
    layout = g.layout(input)
    found = codes_of(g, g.read(input, layout=layout))
    if found is None:
        raise Untranslatable(g.target.no_floats)
    codes, quantization, type = found
    given, made = (
        replace(each, index=g.fresh_index(), type=type, quantization=quantization)
        for each in (input, op.output)
    )
    g.write(given, codes, layout=layout, domain=Domain.STORED)
    inputs = [given if each is input else each for each in op.inputs]
    coded = replace(op, inputs=tuple(inputs), outputs=(made,))
    return [Lowering("codes", {}, partial(_moved, op, coded, g, rest))]


def _moved(op: View, coded: View, g: Graph, rest: Rest) -> None:
    rest(coded)
    layout = g.layout(op.output)
    codes = g.read(coded.output, layout=layout, domain=Domain.STORED)
    g.write(op.output, g.dequantize(codes, coded.output), layout=layout)


def codes_of(g: Graph, reals: ir.Value) -> tuple[ir.Value, Quantization, TensorType] | None:
    """The codes of one scale that floats stand for, in another layout too; None where they stand
    for none."""
    node = reals.producer()
    if node is not None and node.op_type == "Transpose" and node.inputs[0] is not None:
        found = codes_of(g, node.inputs[0])
        if found is None:
            return None
        order: Any = node.attributes["perm"]
        return g.op("Transpose", found[0], perm=order), *found[1:]
    if node is None or node.op_type != "DequantizeLinear" or len(node.inputs) != _PARAMETERS:
        return None
    codes, scale, zero = node.inputs
    constants = [None if each is None else each.const_value for each in (codes, scale, zero)]
    if codes is None or constants[0] is not None or None in constants[1:]:
        return None
    unit, least = (each.array for each in constants[1:] if each is not None)
    if unit.ndim or least.dtype not in _TYPES:
        return None
    quantization = Quantization(unit.reshape(1), least.reshape(1).astype(np.int64))
    return codes, quantization, _TYPES[least.dtype]
