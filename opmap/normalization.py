"""Normalisation along the channels: L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION."""

from __future__ import annotations

import math

import numpy as np

from tflite_ort.opmap.activation import check_types
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.fixed_point import TIE_BREAK, centred_codes, rounded_upwards
from tflite_ort.opmap.idioms.many_elements import leave_many_to_numpy
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    L2NormOptions,
    LocalResponseNormalizationOptions,
    Op,
    OperatorView,
    TensorType,
    Untranslatable,
)
from tflite_ort.schema.values.sizes import is_known

_T = TensorType
_LARGEST = float(np.finfo(np.float32).max)
# More than a logarithm of a sum of squares is off, and less than those of two sums differ by.
_LOGARITHM_OFF = 2.0**-45


@translator(Op.L2_NORMALIZATION, versions=(1, 2))
def l2_normalization(op: OperatorView[L2NormOptions], g: Graph) -> None:
    """x / Max(ReduceL2(x), 1e-6) along the last axis.

    Codes are read in steps of 1, since squares of their reals could exceed float32. Their limit is
    a tenth of a step. TFLite has none, and only zeros are below this one.
    """
    input, output = op["input"], op.output
    check_types(op, frozenset({_T.FLOAT32, _T.UINT8, _T.INT8}))
    if input.rank < 1 or op.options.fused_activation_function:
        raise Untranslatable("a scalar, or a fused activation")
    layout, limit = g.layout(input), 1e-6
    if input.quantization is not None and output.quantization is not None and input.is_quantized:
        if output.quantization.scalar_scale != 1 / 128:
            raise Untranslatable(
                f"output scale is {output.quantization.scalar_scale}, expected 1/128"
            )
        x, limit = g.read_steps(input, layout=layout), 0.1
    else:
        x = g.read(input, layout=layout)
    axes = g.ints([layout.axis(input.rank - 1, input.rank)])
    if input.type is _T.UINT8 and g.target.exact:
        leave_many_to_numpy(g, input.shape, "codes")
        codes = centred_codes(g, _units_of_bytes(g, x, axes), output)
        g.write(output, codes, layout=layout, domain=Domain.STORED)
        return
    norm = g.op("Max", g.op("ReduceL2", x, axes), g.constant(limit, np.float32))
    g.write(output, g.op("Div", x, norm), layout=layout)


def _units_of_bytes(g: Graph, x: ir.Value, axes: ir.Value) -> ir.Value:
    """128 * x / |x| for steps x of uint8 codes, rounded twice as TFLite does.

    From squares of 128 on it has 1 / |x| as m * 2**-n, with m from 2**-3.5 to 2**-2.5. It rounds
    128 * x * m, and then what 2**n divides.
    """
    wide, one = g.cast(x, ir.DataType.DOUBLE), g.constant(1.0)
    squares = g.op("Max", g.op("ReduceSumSquare", wide, axes), one)
    logarithm = g.op("Mul", g.op("Log", squares), g.constant(1 / math.log(4)))
    n = g.op("Floor", g.op("Add", logarithm, g.constant(_LOGARITHM_OFF - 2.5)))
    power = g.op("Pow", g.constant(2.0), g.op("Relu", n))
    m = g.op("Div", power, g.op("Sqrt", squares))
    first = rounded_upwards(g, g.op("Mul", wide, g.op("Mul", m, g.constant(128.0))))
    second = g.op("Round", g.op("Mul", first, g.op("Div", g.constant(TIE_BREAK), power)))
    return g.cast(second, ir.DataType.FLOAT)


@translator(Op.LOCAL_RESPONSE_NORMALIZATION, versions=(1, 1))
def local_response_normalization(
    op: OperatorView[LocalResponseNormalizationOptions], g: Graph
) -> None:
    """LRN over 2 * radius + 1 channels; ONNX divides alpha by their number.

    ONNX Runtime takes only positive parameters, so others are computed node by node.
    """
    input, options = op["input"], op.options
    check_types(op, frozenset({_T.FLOAT32}))
    if input.rank != 4:
        raise Untranslatable(f"input has rank {input.rank}, expected 4")
    channels = input.shape[3]
    radius = min(options.radius, max(channels, 1)) if is_known(channels) else options.radius
    size = 2 * radius + 1  # ONNX Runtime makes room for it
    outside = options.alpha <= 0 or options.beta <= 0 or options.alpha * size > _LARGEST
    if outside or options.radius < 0:
        g.write(op.output, _response(g, g.read(input), input.shape[3], options))
        return
    result = g.op(
        "LRN",
        g.read(input, layout=Layout.FIRST),
        size=size,
        alpha=options.alpha * size,
        beta=options.beta,
        bias=options.bias,
    )
    g.write(op.output, result, layout=Layout.FIRST)


def _response(
    g: Graph, x: ir.Value, channels: int, options: LocalResponseNormalizationOptions
) -> ir.Value:
    """x * (bias + alpha * sums of squares nearby) ** -beta; a band matrix gives the sums."""
    places = np.arange(channels)
    band = options.alpha * (np.abs(places - places[:, np.newaxis]) <= options.radius)
    sums = g.op("MatMul", g.op("Mul", x, x), g.constant(band, np.float32))
    scale = g.op("Add", sums, g.constant(options.bias, np.float32))
    return g.op("Mul", x, g.op("Pow", scale, g.constant(-options.beta, np.float32)))
