"""Products of float rows and 8-bit weights that stay codes, where that is faster than floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias
from tflite_ort.opmap.idioms.hybrid import Rounding, input_rounding, is_delegated
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix, keeps_codes, sum_of_products
from tflite_ort.opmap.linear import input_rows, is_asymmetric, write_rows
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowerings.rounded_products import is_rounded, rounded_product
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.sizes import is_known


def coded_rows(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """FULLY_CONNECTED of floats, which become codes of 8 bits, or digits of 8 bits."""
    input, filter = op["input"], op["filter"]
    if input.is_quantized or not filter.is_constant or not filter.shape[1]:
        return ()
    count = math.prod(input.shape) // filter.shape[1] if is_known(*input.shape) else 0
    if filter.type is TensorType.INT4 and (count == 1 or g.target.hybrid != "auto"):
        return ()
    matrix = WeightMatrix.of_codes(filter)
    if matrix is None:
        return ()
    asymmetric, delegated = is_asymmetric(op), is_delegated(op)
    rounds = count == 1 or not asymmetric
    rounds = rounds and is_rounded(g, matrix, count, _sharing(op, g))
    rounding = input_rounding(g, input, filter, asymmetric=asymmetric, delegated=delegated)
    if not rounds and not keeps_codes(g, matrix, rounding, single_row=count == 1):
        return ()

    def build() -> None:
        rows = input_rows(op, g)
        bias = accumulator_bias(g, input, filter, op.get("bias"))
        product = rounded_product if rounds else partial(_product, rounding)
        write_rows(op, g, product(g, rows, matrix, count, bias))

    return [Lowering("codes", {}, build)]


def _product(
    rounding: Rounding | None,
    g: Graph,
    rows: ir.Value,
    matrix: WeightMatrix,
    count: int,
    added: ir.Value | None,
) -> ir.Value:
    """The product of rows that are rounded as TFLite rounds them, or of a single row in digits."""
    terms = [(rows, matrix)]
    return sum_of_products(g, terms, rounding=rounding, single_row=count == 1, added=added)


def _sharing(op: View, g: Graph) -> int:
    """How many layers of the size of `op` read its rows, `op` included."""
    size = op["filter"].shape
    layers = (each for each in g.uses.readers(op["input"]) if each.op is Op.FULLY_CONNECTED)
    alike = sum(
        each["input"].index == op["input"].index
        and each["filter"].shape == size
        and each["filter"].is_constant
        and each["filter"].type is op["filter"].type
        and not each.options.asymmetric_quantize_inputs
        for each in layers
    )
    return max(alike, 1)
