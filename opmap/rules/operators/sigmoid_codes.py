"""SiLU of 16-bit codes as one lookup in a table, in place of a lookup and a product with its input.

LOGISTIC is a lookup for 16-bit codes in any case. What MUL makes of a code and of its sigmoid
depends on this code alone.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.activation import of_every_code
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.by_code import every_code, looked_up
from tflite_ort.opmap.idioms.exact_arithmetic import takes_exact_codes
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import Op, TensorType, Untranslatable
from tflite_ort.schema.arithmetic.code_functions import fast_sigmoid_int16
from tflite_ort.schema.arithmetic.fixed_point import rescale
from tflite_ort.schema.values.semantics import quantized_activation_bounds
from tflite_ort.schema.values.sizes import may_differ

_X = Leaf()
_SIGMOID = node(Op.LOGISTIC)(_X)
_SILU = node(Op.MUL)(_X, _SIGMOID)


def _silu(found: Found, around: Surroundings) -> Emit | None:
    x, result = found[_X], found[_SILU]
    types = {tensor.type for tensor in found.tensors.values()}
    if types != {TensorType.INT16} or may_differ(x.shape, result.shape):
        return None
    sigmoid = found.operator(_SIGMOID)

    def emit(g: Graph, op: View) -> None:
        if not takes_exact_codes(op, g):
            raise Untranslatable("products of 16-bit codes that are not exact")
        layout, codes = g.layout(x), every_code(TensorType.INT16).astype(np.int32)
        sigmoids = of_every_code(sigmoid, fast_sigmoid_int16).astype(np.int32)
        first, second, made = (tensor.quantization for tensor in (*op.present_inputs(), op.output))
        assert first is not None and second is not None and made is not None
        multiplier = first.sole_scale * second.sole_scale / made.sole_scale
        activation = op.options.fused_activation_function
        bounds = quantized_activation_bounds(activation, TensorType.INT16, made.scalar_scale, 0)
        results = np.clip(rescale(codes * sigmoids, multiplier), *bounds).astype(np.int16)
        g.write(
            op.output,
            looked_up(g, x, layout, op.output, results),
            layout=layout,
            domain=Domain.STORED,
        )

    return emit


SILU_OF_CODES = (Pattern("SiLU of 16-bit codes", _SILU, _silu),)
