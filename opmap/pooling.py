"""Pooling over windows of images: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.quantized_nodes import origin
from tflite_ort.opmap.idioms.convolution_operands import window_padding
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.idioms.pooled_means import is_global, moved_away, step_of_codes, write_means
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Op,
    OperatorView,
    Padding,
    Pool2DOptions,
    TensorType,
    Untranslatable,
)
from tflite_ort.schema.values.semantics import within_reach
from tflite_ort.schema.values.sizes import is_known

# The types that MaxPool takes. Other codes are pooled as real numbers, in the same order.
_POOLED_AS_STORED = frozenset({TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8})


@translator(Op.AVERAGE_POOL_2D, versions=(1, 3))
def average_pool_2d(op: OperatorView[Pool2DOptions], g: Graph) -> None:
    """AveragePool over the cells inside the image.

    TFLite averages the codes, whatever the scales are, and rounds halves away from zero. ONNX
    rounds halves to even. So the codes are read slightly too large, which changes only halves.
    """
    input, output = op["input"], op.output
    if not input.is_quantized and input.type is not TensorType.FLOAT32:
        raise Untranslatable(f"{input.type.name} input without a scale")
    if not input.is_quantized or g.target.paired_codes:
        activation = op.options.fused_activation_function
        mean = _average(op, g, _with_whole(op, g, g.read(input, layout=Layout.FIRST)))
        g.write(output, mean, layout=Layout.FIRST, activation=activation)
        return
    step = step_of_codes(op, op.options.filter_height * op.options.filter_width)
    x = g.read_steps(input, step, layout=Layout.FIRST, from_zero_point=False)
    means = moved_away(g, op, _average(op, g, x))
    write_means(op, g, _with_whole(op, g, g.quantize_codes(means, input)))


@translator(Op.MAX_POOL_2D, versions=(1, 3))
def max_pool_2d(op: OperatorView[Pool2DOptions], g: Graph) -> None:
    """MaxPool of the stored codes."""
    input, activation = op["input"], op.options.fused_activation_function
    moved = moved_domain(input, op.output)
    domain = moved if input.type in _POOLED_AS_STORED else Domain.REAL
    if domain is Domain.REAL and not input.is_quantized:
        raise Untranslatable(f"{input.type.name} input without a scale")
    x = g.read(input, layout=Layout.FIRST, domain=domain)
    before = origin(x)
    if input.type is TensorType.FLOAT32 and before is not None and before.op_type == "Pad":
        # ONNX Runtime would fuse both to one node, whose padding is the lowest number, not 0.
        x = g.apart(x)
    pooled = g.op("MaxPool", _with_whole(op, g, x), **_windows(op))
    if domain is Domain.REAL:
        pooled = g.quantize(pooled, input)
    g.write(op.output, pooled, layout=Layout.FIRST, domain=moved, activation=activation)


@translator(Op.L2_POOL_2D, versions=(1, 1))
def l2_pool_2d(op: OperatorView[Pool2DOptions], g: Graph) -> None:
    """Sqrt(AveragePool(x * x)); LpPool gives a sum, not a mean."""
    input = op["input"]
    if input.type is not TensorType.FLOAT32:
        raise Untranslatable(f"{input.type.name} input, only FLOAT32 is defined")
    x = _with_whole(op, g, g.read(input, layout=Layout.FIRST))
    result = g.finite(g.op("Sqrt", _average(op, g, g.op("Mul", x, x))))
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.FIRST, activation=activation)


def _average(op: OperatorView[Pool2DOptions], g: Graph, x: ir.Value) -> ir.Value:
    if is_global(op):
        return g.op("GlobalAveragePool", x)
    return g.op("AveragePool", x, count_include_pad=0, **_windows(op))


def _with_whole(op: OperatorView[Pool2DOptions], g: Graph, value: ir.Value) -> ir.Value:
    """`value`, in a graph that fails if no whole window fits in an image of an unknown size.

    ONNX Runtime pools a part of a window then, or ends the process in its pools of floats.
    """
    sizes, options = op["input"].shape, op.options
    if options.padding != Padding.VALID or is_known(*sizes[1:3]):
        return value
    least = g.ints([0, options.filter_height, options.filter_width, 0])
    shape = failing(g, g.op("Shape", value), g.op("Less", g.shape(sizes), least))
    return g.op("Reshape", value, shape, allowzero=1)


def _windows(op: OperatorView[Pool2DOptions]) -> dict[str, Any]:
    """The attributes that ONNX pooling operators share."""
    options, sizes = op.options, op["input"].shape[1:3]
    filter = (options.filter_height, options.filter_width)
    kernel = [within_reach(options.padding, *pair) for pair in zip(sizes, filter, strict=True)]
    strides = (options.stride_h, options.stride_w)
    windows = list(zip(sizes, kernel, strides, (1, 1), strict=True))
    padding = window_padding(options.padding, windows)
    if any(map(any, op.edges)):
        padding = {"pads": [pair[side] for side in (0, 1) for pair in op.edges]}
    return {"kernel_shape": kernel, "strides": strides, **padding}
