"""Products of codes, which TFLite scales after each factor, in 64-bit integers."""

from __future__ import annotations

from math import prod

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import narrow_multiplier, quantize_multiplier
from tflite_ort.schema.values.semantics import quantized_range

# No product of a result of 32 bits, a code and a multiplier of 15 bits is as large.
_LARGEST = 2**61


def product_of_codes(
    g: Graph, input: TensorView, output: TensorView, axes: tuple[int, ...] | None
) -> ir.Value:
    """The codes, as the file has them, of the products over `axes`, one after another.

    Every factor takes its share of the output's scale. numpy takes less time than a Scan.

    Args:
        axes: None where it is not known how many factors there are.
    """
    if g.target.fallback or axes is None:
        raise Untranslatable("TFLite rounds the product of codes after each factor")
    if not {input.type, output.type} <= {TensorType.INT8, TensorType.INT16}:
        raise Untranslatable(f"products of {input.type.name} codes")
    source, target = input.quantization, output.quantization
    if source is None or target is None:
        raise Untranslatable("a product of codes without a scale")
    count = prod(input.shape[axis] for axis in axes)
    share = source.scalar_scale / target.scalar_scale ** (1.0 / count)
    q15, right = (int(each) for each in narrow_multiplier(*quantize_multiplier(share)))
    if right < 1:
        raise Untranslatable("a product of codes in larger units than the result's")

    def scaled(product: ir.Value) -> ir.Value:
        """Halves upwards; Div rounds towards zero, so that all numbers are made positive before it.
        What exceeds 32 bits wraps."""
        half = g.ints(_LARGEST + (1 << (right - 1)))
        moved = g.op("Add", g.op("Mul", product, g.ints(q15)), half)
        quotient = g.op("Div", moved, g.ints(1 << right))
        turned = g.op("Sub", quotient, g.ints((_LARGEST >> right) - 2**31))
        return g.op("Sub", g.op("Mod", turned, g.ints(2**32)), g.ints(2**31))

    def step(products: Values, factors: Values) -> tuple[Values, Values]:
        return [scaled(g.op("Mul", products[0], factors[0]))], []

    kept = [axis for axis in range(input.rank) if axis not in axes]
    steps = g.cast(g.read(input, domain=Domain.FILE), ir.DataType.INT64)
    steps = g.op("Sub", steps, g.ints(source.scalar_zero_point))
    factors = g.reshape(g.op("Transpose", steps, perm=[*axes, *kept]), (count, -1))
    product = g.op("Gather", factors, g.ints(0), axis=0)
    if count > 1:
        rest = g.op("Slice", factors, *map(g.ints, ([1], [count], [0])))
        types = [ir.DataType.INT64] * 2
        (product,), _ = scan(g, step, [product], [rest], single=count == 2, types=types)
    low, high = quantized_range(output.type)
    codes = g.op("Add", scaled(product), g.ints(target.scalar_zero_point))
    codes = g.smaller(g.larger(codes, g.ints(low)), g.ints(high))
    return g.cast(codes, output.dtype)
