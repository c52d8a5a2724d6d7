"""Matrix products: FULLY_CONNECTED, BATCH_MATMUL."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.float_activation import activated
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.graph.rows import has_rows
from tflite_ort.opmap.idioms.convolution_operands import (
    accumulator_bias,
    check_types,
    symmetric,
    with_repeated,
)
from tflite_ort.opmap.idioms.exact_sums import (
    ExactProduct,
    ExactSums,
    Layer,
    Rounding,
    rounded_once,
    rounded_upwards_twice,
    rounded_wide,
)
from tflite_ort.opmap.idioms.hybrid import hybrid_input, is_delegated
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    BatchMatMulOptions,
    FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.semantics import UNCLAMPED
from tflite_ort.schema.values.sizes import is_known, may_differ

# The types of input and of a filter that has one scale for a block of a row.
BLOCKWISE = (TensorType.FLOAT32, TensorType.INT4)


def check_fully_connected(op: OperatorView[FullyConnectedOptions]) -> None:
    """Refuse weights that TFLite shuffles, and operands that it does not multiply."""
    input, filter, weights = op["input"], op["filter"], op.options.weights_format
    if weights != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise Untranslatable(f"weights format {weights.name}")
    if (input.type, filter.type) != BLOCKWISE or filter.blocks is None:
        check_types(input, filter)


@translator(Op.FULLY_CONNECTED, versions=(1, 14), check=check_fully_connected)
def fully_connected(op: OperatorView[FullyConnectedOptions], g: Graph) -> None:
    """Gemm of the rows of the input and the transposed filter [units, depth].

    LiteRT's own kernel for blockwise weights ignores the fused activation; its default does not.
    TANH and SIGN_BIT, which it ignores elsewhere or refuses, it applies after 8- and 4-bit weights.
    """
    depth, output = op["filter"].shape[1], op.output
    if is_known(depth) and depth == 0:
        zeros = np.zeros(output.shape, output.dtype)
        g.write(output, g.constant(zeros), domain=Domain.FILE)
        return
    codes = _exact_rows(op, g)
    if codes is not None:
        g.write(op.output, _of_rank(g, codes, op.output), domain=Domain.STORED)
        return
    write_rows(op, g, _product(op, g, hybrid_rows(op, g)))


def is_asymmetric(op: OperatorView[FullyConnectedOptions]) -> bool:
    """Whether float rows that meet codes are rounded with a zero point."""
    return op.options.asymmetric_quantize_inputs or op["filter"].blocks is not None


def hybrid_rows(op: OperatorView[FullyConnectedOptions], g: Graph) -> ir.Value:
    """The rows of the input, rounded where TFLite rounds them for its weights."""
    input, filter = op["input"], op["filter"]
    asymmetric, delegated = is_asymmetric(op), is_delegated(op)
    x = input_rows(op, g)
    return hybrid_input(g, x, input, filter, axes=(1,), asymmetric=asymmetric, delegated=delegated)


def write_rows(op: OperatorView[FullyConnectedOptions], g: Graph, y: ir.Value) -> None:
    """Write the products `y`, with the activation."""
    filter, output, activation = op["filter"], op.output, op.options.fused_activation_function
    if activation in UNCLAMPED and filter.blocks is None:
        y = activated(g, y, activation)
    if output.rank == 2 or has_rows(output):
        g.write(output, y, layout=Layout.ROWS, activation=activation)
        return
    # It is quantized before it is reshaped, so that ONNX Runtime fuses Gemm and QuantizeLinear.
    domain = Domain.STORED if output.is_quantized else Domain.REAL
    y = g.quantize(y, output) if output.is_quantized else y
    y = g.reshape(y, output.shape)
    g.write(output, y, domain=domain, activation=activation)


def _of_rank(g: Graph, rows: ir.Value, output: TensorView) -> ir.Value:
    return rows if output.rank == 2 else g.reshape(rows, output.shape)


def input_rows(op: OperatorView[FullyConnectedOptions], g: Graph) -> ir.Value:
    """The real numbers of the input as [rows, depth]."""
    input = op["input"]
    if has_rows(input) and not may_differ(input.shape[-1:], op["filter"].shape[1:]):
        return g.read(input, layout=Layout.ROWS)
    return _rows(op, g, g.read(input))


def _rows(op: OperatorView[FullyConnectedOptions], g: Graph, value: ir.Value) -> ir.Value:
    """`value` of the input as [rows, depth]. Rows that stay the result's may have another length in
    an open size: the product fails then."""
    input, depth = op["input"], op["filter"].shape[1]
    other, stay = may_differ(input.shape[-1:], (depth,)), op.options.keep_num_dims
    if input.rank == 2 and (stay or not other):
        return value
    if stay and other:
        sizes = g.op("Concat", g.ints([-1]), g.size(input.shape[-1]), axis=0)
        return g.op("Reshape", value, sizes)
    return g.op("Reshape", value, g.ints([-1, depth]))


def _exact_rows(op: OperatorView[FullyConnectedOptions], g: Graph) -> ir.Value | None:
    """The codes [rows, units] of 16-bit activations as TFLite rounds them; None if these sums are
    not to be exact."""
    input, filter = op["input"], op["filter"]
    depth, sums = filter.shape[1], exact_sums(op, g)
    if sums is not None:
        rows = _rows(op, g, g.read_steps(input))
        return sums.codes(g, rows, _gemm(g), (-1,))
    plain = op.get("bias") is None and not op.options.fused_activation_function
    if filter.type is not TensorType.INT16 or not plain or not is_known(depth):
        return None
    product = ExactProduct.of(g, input, filter, op.output, depth)
    if product is None:
        return None
    columns = g.op("Transpose", g.read_steps(filter), perm=[1, 0])
    return product.codes(g, _rows(op, g, g.read_steps(input)), columns)


def exact_sums(op: OperatorView[FullyConnectedOptions], g: Graph) -> ExactSums | None:
    """The sums of 16-bit activations; None if they are not to be exact."""
    if op["input"].type is not TensorType.INT16:
        return None
    filter, rounding = op["filter"], _rounding(op)
    channels = filter.quantization is not None and filter.quantization.per_channel
    scales = np.float64 if channels or rounding is rounded_once else np.float32
    return ExactSums.of(op, g, (0, 1), scales, rounding=rounding)


def _rounding(op: OperatorView[FullyConnectedOptions]) -> Rounding:
    """How TFLite rounds sums of 16-bit activations: by its own kernel if the weights have 16 bits
    or the bias has 64, otherwise by ruy, whose accumulator has 32 bits."""
    bias = op.get("bias")
    if op["filter"].type is TensorType.INT16:
        return rounded_wide
    return (
        rounded_once
        if bias is not None and bias.type is TensorType.INT64
        else rounded_upwards_twice
    )


def _gemm(g: Graph) -> Layer:
    return lambda rows, weights: g.op("Gemm", rows, weights, transB=1)


def _product(op: OperatorView[FullyConnectedOptions], g: Graph, rows: ir.Value) -> ir.Value:
    """Gemm; a MatMul for floats and 4-bit weights, which then stay packed."""
    input, filter = op["input"], op["filter"]
    bias = accumulator_bias(g, input, filter, op.get("bias"))
    filter, repeated = symmetric(g, filter, may_repeat=True)
    rows = with_repeated(g, rows, repeated)
    if not filter.is_constant:
        columns = g.read(filter)
        if filter.is_quantized and not is_known(filter.shape[-1]):
            columns = g.apart(columns)  # QGemm of nothing leaves memory as it was
        return g.op("Gemm", rows, columns, bias, transB=1)
    if filter.type is TensorType.INT4 and not input.is_quantized:
        product = g.op("MatMul", rows, g.packed_weights(filter, permutation=(1, 0)))
        return product if bias is None else g.op("Add", product, bias)
    weights = g.weights(filter, real=not input.is_quantized)
    return g.op("Gemm", rows, weights, bias, transB=1)


@translator(Op.BATCH_MATMUL, versions=(1, 4))
def batch_matmul(op: OperatorView[BatchMatMulOptions], g: Graph) -> None:
    """MatMul after the transpositions asked for; an int32 result is that of the bare codes."""
    x, y, options = op["x"], op["y"], op.options
    if not x.type is y.type is TensorType.INT8 or op.output.type is not TensorType.INT32:
        check_types(x, y)
    depth = x.shape[-2 if options.adj_x else -1]
    factors = (x, options.adj_x), (y, options.adj_y)
    if op.output.type is TensorType.INT32:
        codes = (
            transposed(g, g.read(each, domain=Domain.FILE), each, adjoint)
            for each, adjoint in factors
        )
        sums = g.op("MatMulInteger", *codes)
        nothing = g.constant(0, np.int32)
        g.write(op.output, _of_some(g, depth, sums, nothing), domain=Domain.STORED)
        return
    exact = ExactProduct.of(g, x, y, op.output, depth) if is_known(depth) else None
    if exact is not None:
        steps = (transposed(g, g.read_steps(each), each, adjoint) for each, adjoint in factors)
        g.write(op.output, exact.codes(g, *steps), domain=Domain.STORED)
        return
    left = transposed(g, g.read(x), x, options.adj_x)
    asymmetric = options.asymmetric_quantize_inputs
    left = hybrid_input(g, left, x, y, axes=(x.rank - 1,), asymmetric=asymmetric)
    if y.is_constant:
        right = _constant_factor(g, x, y, options.adj_y)
    else:
        right = transposed(g, g.read(y), y, options.adj_y)
    g.write(op.output, g.op("MatMul", left, right))
    if not is_known(depth) and carried_type(op.output) is TensorType.UINT8:
        stored = g.read(op.output, domain=Domain.STORED)
        some = _of_some(g, depth, stored, g.zero_code(op.output))
        g.write(op.output, some, domain=Domain.STORED)


def _of_some(g: Graph, depth: int, sums: ir.Value, nothing: ir.Value) -> ir.Value:
    """Sums of `depth` products of codes, or `nothing`: of no products ONNX Runtime leaves memory
    as it was."""
    if is_known(depth):
        return sums
    return g.op("Where", g.op("Greater", g.size(depth), g.ints(0)), sums, nothing)


def _constant_factor(g: Graph, x: TensorView, y: TensorView, adjoint: bool) -> ir.Value:
    """`y` as the right-hand side; where columns have scales of their own as a matrix, since
    QLinearMatMul takes one scale of weights with more than two dimensions.

    Beside 16-bit activations 8-bit weights are floats: of a DequantizeLinear of weights ONNX
    Runtime makes MatMulNBits, which by default rounds activations to 8 bits.
    """
    permutation = _permutation(y.rank, adjoint)
    axis = permutation.index(y.quantization.axis) if y.quantization is not None else 0
    channels = y.quantization is not None and y.quantization.per_channel
    if not x.is_quantized or (x.type is TensorType.INT16 and y.type is not TensorType.INT16):
        return g.weights(y, permutation=permutation, real=True)
    matrix = axis == y.rank - 1 and x.rank >= y.rank and set(y.shape[:-2]) <= {1}
    if channels and matrix:
        shape = [y.shape[each] for each in permutation[-2:]]
        return g.weights(y, permutation=permutation, shape=shape, axis=1)
    return g.weights(y, permutation=permutation, axis=axis, real=channels)


def transposed(g: Graph, value: ir.Value, tensor: TensorView, adjoint: bool) -> ir.Value:
    """`value` of `tensor` with its last two axes swapped if `adjoint`."""
    return g.op("Transpose", value, perm=_permutation(tensor.rank, True)) if adjoint else value


def _permutation(rank: int, adjoint: bool) -> list[int]:
    """A permutation that swaps the last two axes if `adjoint`."""
    axes = list(range(rank))
    return [*axes[:-2], axes[-1], axes[-2]] if adjoint else axes
