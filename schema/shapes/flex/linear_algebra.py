"""Shape rules of TensorFlow's linear algebra."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.arithmetic.einsum import Equation
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, broadcast, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import common, differ, is_known, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def _matrix(op: View, shape: Shape, rank: int = 2) -> Shape:
    if len(shape) < rank:
        raise ModelError(f"{op.label}: rank {len(shape)}, expected at least {rank}")
    return shape


def _square(op: View) -> Shape:
    """The shape of square matrices."""
    shape = _matrix(op, op["input" if "input" in op.names else "matrix"].shape)
    if differ(shape[-1:], shape[-2:-1]):
        raise ModelError(f"{op.label}: matrices of {shape[-2:]} are not square")
    size = common(shape[-1], shape[-2])
    return (*shape[:-2], size, size)


@flex_rule("MatMul", "BatchMatMul", "BatchMatMulV2")
def product(op: View) -> Shapes:
    """The product of the last two dimensions, each transposed first if asked; the others
    broadcast, but with BatchMatMul."""
    node = node_of(op)
    single = node.operator.name == "MatMul"
    names = ("transpose_a", "transpose_b") if single else ("adj_x", "adj_y")
    x, y = (_matrix(op, tensor.shape) for tensor in op.present_inputs())
    rows, depth = x[-1:-3:-1] if node[names[0]] else x[-2:]
    other, columns = y[-1:-3:-1] if node[names[1]] else y[-2:]
    if differ((depth,), (other,)):
        raise ModelError(f"{op.label}: depth is {depth} on the left, {other} on the right")
    broadcasts = node.operator.name == "BatchMatMulV2"
    if (single and len(x) + len(y) > 4) or (not broadcasts and differ(x[:-2], y[:-2])):
        raise ModelError(f"{op.label}: products of {x} and {y}")
    return ((*broadcast(op, x[:-2], y[:-2]), rows, columns),)


@flex_rule("Einsum")
def einsum(op: View) -> Shapes:
    """The sizes of the labels of the output."""
    shapes = [tensor.shape for tensor in op.present_inputs()]
    return (Equation.of(node_of(op)["equation"], shapes).shape,)


@flex_rule("MatrixInverse", "BatchMatrixInverse", "Cholesky", "BatchCholesky")
def square(op: View) -> Shapes:
    """The shape of the matrices, which are square."""
    return (_square(op),)


@flex_rule("MatrixDeterminant", "BatchMatrixDeterminant", "LogMatrixDeterminant")
def determinant(op: View) -> Shapes:
    """A number for each matrix."""
    return (_square(op)[:-2],) * len(op.outputs)


@flex_rule("Qr")
def qr(op: View) -> Shapes:
    """[..., rows, k] and [..., k, columns]."""
    *batch, rows, columns = _matrix(op, op["input"].shape)
    if node_of(op)["full_matrices"]:
        return (*batch, rows, rows), (*batch, rows, columns)
    least = min(rows, columns) if is_known(rows, columns) else unknown_size()
    return (*batch, rows, least), (*batch, least, columns)


@flex_rule("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def solved(op: View) -> Shapes:
    """The shape of the right-hand sides, whose batch broadcasts with that of the matrices."""
    matrix, right = _square(op), _matrix(op, op["rhs"].shape)
    if differ(matrix[-1:], right[-2:-1]):
        raise ModelError(f"{op.label}: matrices of {matrix} with right-hand sides of {right}")
    if op.name == "FlexBatchMatrixTriangularSolve" and differ(matrix[:-2], right[:-2]):
        raise ModelError(f"{op.label}: batches of {matrix} and {right} differ")
    return ((*broadcast(op, matrix[:-2], right[:-2]), *right[-2:]),)


@flex_rule("MatrixBandPart", "BatchMatrixBandPart")
def band_part(op: View) -> Shapes:
    """The shape of the matrices."""
    return (_matrix(op, op["input"].shape),)
