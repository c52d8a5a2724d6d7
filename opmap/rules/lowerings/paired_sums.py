"""MEAN and SUM of 16-bit codes as a product with a column of equal weights.

An NPU saturates its sums of such codes inside a network; those of a product it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.reduction import axes_of
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.sizes import is_known

# The code of each weight: the highest one, so that the product is as large as it can be.
WEIGHT = 127


def paired_sums(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """MEAN and SUM of 16-bit codes over known axes."""
    input, output = op["input"], op.output
    types = {input.type, output.type}
    if types != {TensorType.INT16} or not (input.is_quantized and output.is_quantized):
        return ()
    if not op["axes"].is_constant or not is_known(*input.shape) or 0 in input.shape:
        return ()
    return [Lowering("product", {}, partial(_product, op, g))]


def _product(op: View, g: Graph) -> None:
    input, axes = op["input"], axes_of(op)
    terms = prod(input.shape[axis] for axis in axes)
    others = [axis for axis in range(input.rank) if axis not in axes]
    codes, order = g.read(input, domain=Domain.STORED), [*others, *axes]
    if order != sorted(order):
        codes = g.op("Transpose", codes, perm=order)
    rows = g.dequantize(g.reshape(codes, (-1, terms)), input)
    weights = g.constants.add(np.full((terms, 1), WEIGHT, np.int8), "ones")
    count = terms if op.op is Op.MEAN else 1
    unit = g.constants.add(np.array(1 / (WEIGHT * count), np.float32), "unit")
    ones = g.op("DequantizeLinear", weights, unit)
    sums = g.quantize(g.op("MatMul", rows, ones), op.output)
    g.write(op.output, g.reshape(sums, op.output.shape), domain=Domain.STORED)
